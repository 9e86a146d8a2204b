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

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A cell's PID 1 is this binary again; it does nothing else.
    let words: Vec<OsString> = std::env::args_os().collect();
    if words
        .first()
        .is_some_and(|word| word == skillcell_linux::cell::INIT_ARGV0)
    {
        let args = words[1..].iter().map(|w| w.to_string_lossy().into_owned());
        skillcell_linux::cell::init_main(&args.collect::<Vec<String>>());
    }
    if words
        .first()
        .is_some_and(|word| word == skillcell_supervisor::NURSERY_ARGV0)
    {
        return skillcell_supervisor::nursery_main(skillcell_linux::probe::quick);
    }
    match args::Cli::from_words(&words) {
        Ok(cli) => commands::dispatch(cli),
        Err(error) => output::usage_error(&error),
    }
}
