//! The `skillcell` command: arguments, output and exit codes. The work is done by the libraries.

mod args;
mod args_audit;
mod args_audit_export;
mod args_audit_query;
mod args_deps;
mod args_policy;
mod args_serve;
mod commands;
mod output;
mod post;
mod schemas;
mod sink;
mod table;
mod when;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A cell's PID 1 is this binary again; it does nothing else.
    let argv: Vec<String> = std::env::args_os()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    if argv.first().map(String::as_str) == Some(skillcell_linux::cell::INIT_ARGV0) {
        skillcell_linux::cell::init_main(&argv[1..]);
    }
    if argv.first().map(String::as_str) == Some(skillcell_supervisor::NURSERY_ARGV0) {
        return skillcell_supervisor::nursery_main(skillcell_linux::probe::quick);
    }
    match args::Cli::try_parse() {
        Ok(cli) => commands::dispatch(cli),
        Err(error) => output::usage_error(&error),
    }
}
