//! `bench audit`: what the record costs. Each part is a file with its rows and its targets.

mod generate;
mod query;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;

use super::measure::seed_from_clock;
use super::report::{Host, Target, deliver};
use super::skillcell;
use crate::workspace::Places;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Events in the log that is asked
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    events: u64,
    /// Rounds that count; each asks every question once
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Rounds before that, measured by nobody
    #[arg(long, default_value_t = 3)]
    warm_up: u32,
    /// Write the whole report as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the Markdown tables; the default where --json isn't given
    #[arg(long)]
    markdown: bool,
    /// A ready binary to measure, instead of building one
    #[arg(long, value_name = "PATH")]
    skillcell: Option<PathBuf>,
    /// A log that an earlier run made and kept; made and kept there where there is none
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// Repeat the order of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Fail when a target is missed
    #[arg(long)]
    enforce_targets: bool,
}

#[derive(Serialize)]
struct Report {
    benchmark: &'static str,
    host: Host,
    seed: u64,
    query: query::Part,
    targets: Vec<Target>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let binary = match &args.skillcell {
        Some(binary) => std::path::absolute(binary)?,
        None => skillcell::build(&Places::here()?)?,
    };
    let seed = args.seed.unwrap_or_else(seed_from_clock);
    let query = query::measure(args, &binary, seed)?;
    let report = Report {
        benchmark: "audit",
        host: Host::here(),
        seed,
        targets: query.targets(),
        query,
    };
    let print = args.markdown || args.json.is_none();
    deliver(
        &report,
        args.json.as_deref(),
        print.then(|| report.markdown()),
    )?;
    let missed: Vec<_> = report.targets.iter().filter(|t| !t.met).collect();
    if args.enforce_targets && !missed.is_empty() {
        let claims: Vec<_> = missed.iter().map(|target| target.claim).collect();
        bail!("missed: {}", claims.join("; "));
    }
    Ok(())
}

impl Report {
    fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        self.write_markdown(&mut text).unwrap_or_default();
        text
    }

    fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        let Host {
            kernel,
            cpus,
            caller,
        } = &self.host;
        writeln!(
            text,
            "Linux {kernel}, {cpus} CPUs, as {caller} (seed {}).\n",
            self.seed
        )?;
        self.query.write_markdown(text)?;
        writeln!(text, "\nTargets:")?;
        for target in &self.targets {
            let verdict = if target.met { "met" } else { "MISSED" };
            writeln!(text, "- {}: {verdict} ({})", target.claim, target.measured)?;
        }
        Ok(())
    }
}
