//! The binary `fleetc`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let run = || {
        let (mut out, mut err) = (anstream::stdout().lock(), anstream::stderr().lock());
        fleetc::cli::run(std::env::args_os(), &mut out, &mut err)
    };
    match std::panic::catch_unwind(run) {
        Ok(code) => ExitCode::from(code),
        Err(_) => {
            eprintln!(
                "fleetc: this is a bug of ours: please report it with the spec and the lines above"
            );
            ExitCode::from(fleetc::cli::BUG)
        }
    }
}
