//! The chores of this repository, run as `cargo xtask …`.

mod arch;
mod bench;
mod docs;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Chores of this repository",
    disable_version_flag = true
)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Hold the crates to the table in docs/architecture/README.md
    CheckArch,
    /// Write the generated reference pages, or check that they are current
    Docs(docs::Args),
    /// Compare the cost of a cell with its peers
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::CheckArch => arch::check_workspace(),
        Chore::Docs(args) => docs::run(&args),
        Chore::Bench(bench) => bench::run(bench),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
