//! One file per command.

mod audit;
mod check;
mod completions;
mod daemon;
mod deps;
mod doctor;
mod explain;
mod policy;
mod run;
mod schema;
mod serve;

use crate::args::{Cli, Command};
use std::process::ExitCode;

pub(crate) fn dispatch(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Explain(args) => explain::explain(*args),
        Command::Check(args) => check::check(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Policy(args) => policy::policy(args.command),
        Command::Audit(args) => audit::audit(args.command),
        Command::Deps(args) => deps::deps(args.command),
        Command::Serve(args) => serve::serve(*args),
    }
}
