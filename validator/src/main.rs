//! The binary: environment in, exit code out. Everything else is in the library.

use std::ffi::OsString;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use fleetc_validate::cli::{self, Environment, ExitStyle};

fn main() -> ExitCode {
    // A panic is a bug of ours: it must neither look like a verdict nor print a bare backtrace.
    std::panic::set_hook(Box::new(|info| {
        let _ = writeln!(
            std::io::stderr().lock(),
            "fleetc-validate: this is a bug of ours: {info}\n\
             please report it with the command line, the intent folder and the snapshot"
        );
    }));
    let run = || {
        let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
        cli::run(std::env::args_os(), environment(), &mut out, &mut err)
    };
    let code = std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let args: Vec<OsString> = std::env::args_os().collect();
        ExitStyle::of_args(&args).code(cli::EXIT_BUG)
    });
    ExitCode::from(code)
}

/// What may name the node besides `--node`.
#[expect(
    clippy::disallowed_methods,
    reason = "slurmd and the kubelet's downward API name the node here; it reaches no output but \
              as the name of the node that is judged. The time stands in metrics and conditions, \
              which say when. The id tells who holds the lock of a fix"
)]
fn environment() -> Environment {
    Environment {
        slurmd_nodename: std::env::var_os("SLURMD_NODENAME"),
        node_name: std::env::var_os("NODE_NAME"),
        host_name: std::fs::read_to_string("/proc/sys/kernel/hostname").ok(),
        now: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
        pid: std::process::id(),
    }
}
