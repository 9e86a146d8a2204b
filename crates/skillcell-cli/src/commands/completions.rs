use crate::args::{Cli, CompletionsArgs};
use crate::output;
use clap::CommandFactory;
use std::process::ExitCode;

pub(crate) fn completions(args: &CompletionsArgs) -> ExitCode {
    // Into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "skillcell", &mut script);
    output::print_raw(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
