//! `adead`: shows the machine, runs programs, verifies every device's bits, measures. `docs/cli.md` describes it.

mod args;
mod asm;
mod bench;
mod calibrate;
#[cfg(feature = "models")]
mod chat;
mod color;
#[cfg(feature = "models")]
mod compare;
#[cfg(feature = "models")]
mod convert;
#[cfg(feature = "models")]
mod curve;
mod dispatch;
mod doctor;
#[cfg(feature = "models")]
mod embed;
mod explain;
mod failure;
mod files;
mod format;
#[cfg(feature = "models")]
mod generate;
#[cfg(feature = "models")]
mod gguf;
mod help;
mod info;
mod kernel;
mod man;
mod nearest;
mod npy;
mod progress;
mod push;
mod report;
mod run;
#[cfg(feature = "models")]
mod search;
#[cfg(feature = "models")]
mod sentences;
mod source;
#[cfg(feature = "models")]
mod text;
#[cfg(feature = "models")]
mod train;
mod verify;

use adead::Status;
use adead::config::Config;
use adead::log::LevelFilter;
use args::{Cli, Command};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use failure::Failure;
use std::io::Write;
use std::panic::{catch_unwind, set_hook};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    // A panic is a fault of adead itself. It is reported in one line too, with its own exit code.
    set_hook(Box::new(|panic| failure::complain(format_args!("{panic} (internal); please report it"))));
    files::remove_unfinished_when_interrupted();
    // Errors in the configuration are reported by the commands that need it.
    if let Ok(level) = Config::load().map(|config| config.log) {
        adead::log::to_stderr(level.unwrap_or(LevelFilter::Off));
    }
    match catch_unwind(|| execute(&cli)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => ExitCode::from(failure::code(Status::Internal)),
    }
}

fn execute(cli: &Cli) -> failure::Result<()> {
    let device = &cli.device;
    if let Some(option) = device.given().filter(|_| !cli.command.computes()) {
        return Err(Failure::Usage(format!("'{option}' is not accepted: this command does not use a device")));
    }
    match &cli.command {
        Command::Info(args) => info::run(args, device),
        Command::Doctor(args) => doctor::run(args, device),
        Command::Run(args) => run::run(args, device),
        Command::Asm(args) => asm::assemble(args),
        Command::Disasm(args) => asm::disassemble(args),
        Command::Verify(args) => verify::run(args, device),
        Command::Explain(args) => explain::run(args, device),
        Command::Kernel(args) => kernel::show(args),
        Command::Dispatch(args) => dispatch::run(args, device),
        Command::Bench(args) => bench::run(args, device),
        Command::Calibrate(args) => calibrate::run(args, device),
        #[cfg(feature = "models")]
        Command::Embed(args) => embed::run(args, device),
        #[cfg(feature = "models")]
        Command::Search(args) => search::run(args, device),
        #[cfg(feature = "models")]
        Command::Generate(args) => generate::run(args, device),
        #[cfg(feature = "models")]
        Command::Chat(args) => chat::run(args, device),
        #[cfg(feature = "models")]
        Command::Gguf(args) => gguf::show(args),
        #[cfg(feature = "models")]
        Command::Train(args) => train::run(args, device),
        #[cfg(feature = "models")]
        Command::Convert(args) => convert::run(args),
        Command::Man(args) => man::run(args),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "adead", &mut script);
            failure::write(&script)
        }
    }
}

/// Prints help and versions to stdout, and errors in the command line to stderr after `adead: `.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match failure::open_from_the_start().and_then(|()| error.print()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe.report(),
            Err(error) => Failure::io("stdout", &error).report(),
        };
    }
    let mut err = std::io::stderr();
    let _ = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && std::env::args_os().len() == 1 {
        err.write_all(help::FIRST.as_bytes())
    } else {
        // A command that needs a command of its own gets its help, without a prefix.
        let prefix = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand { "" } else { "adead: " };
        let text = error.render();
        if color::shows(&err) { write!(err, "{prefix}{}", text.ansi()) } else { write!(err, "{prefix}{text}") }
    };
    ExitCode::from(2)
}
