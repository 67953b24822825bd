//! The Rust runner: every case on the CPU; `--list` prints the ids that it runs.

use adead_core::Context;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--list") {
        return match adead_conformance::cases() {
            Ok(cases) => {
                cases.iter().for_each(|case| println!("{}", case.id));
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        };
    }
    let ctx = match Context::open("cpu") {
        Ok(ctx) => ctx,
        Err(error) => return fail(&error.to_string()),
    };
    match adead_conformance::run_all(&ctx, |id, text| println!("FAIL {id}: {text}")) {
        Ok(summary) => {
            println!("{summary}");
            if summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &str) -> ExitCode {
    eprintln!("adead-conformance: {error}");
    ExitCode::FAILURE
}
