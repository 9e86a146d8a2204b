//! One file per command.

mod run;

use crate::args::{Cli, Command};
use std::process::ExitCode;

pub(crate) fn dispatch(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Run(args) => run::run(*args),
    }
}
