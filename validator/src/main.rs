//! The binary: environment in, exit code out. Everything else is in the library.

use std::ffi::OsString;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use fleetc_validate::cli::{self, Environment, ExitStyle};
use fleetc_validate::observe;

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
        // The program starts itself for each probe of the node. That is no command of anyone else,
        // and comes first, since a node has many.
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next().is_some_and(|word| word == "probe") {
            let code = observe::run_probe(&arguments.collect::<Vec<_>>());
            if code != 0 {
                let _ = writeln!(std::io::stderr(), "fleetc-validate: `probe` is its own business");
            }
            return code;
        }
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
              which say when"
)]
fn environment() -> Environment {
    Environment {
        slurmd_nodename: std::env::var_os("SLURMD_NODENAME"),
        node_name: std::env::var_os("NODE_NAME"),
        host_name: std::fs::read_to_string("/proc/sys/kernel/hostname").ok(),
        // This very program, also if its file has been replaced meanwhile.
        program: Some("/proc/self/exe".into()),
        now: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
    }
}
