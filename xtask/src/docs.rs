//! `docs`: the pages that are generated, and the links of those that aren't.

mod commands;
mod links;

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Places;

/// The generated page: every command with its help.
const COMMANDS_PAGE: &str = "docs/reference/commands.md";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when a generated page is stale or a link is dead
    #[arg(long)]
    check: bool,
    /// A ready binary to ask for its help, instead of building one
    #[arg(long, value_name = "PATH")]
    skillcell: Option<std::path::PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let places = Places::here()?;
    let binary = match &args.skillcell {
        Some(binary) => std::path::absolute(binary)?,
        None => commands::build(&places)?,
    };
    let page = commands::page(&binary)?;
    let path = places.root.join(COMMANDS_PAGE);
    if args.check {
        let found = fs::read_to_string(&path).unwrap_or_default();
        if found != page {
            bail!("{COMMANDS_PAGE} is not current: run `cargo xtask docs`");
        }
    } else {
        fs::write(&path, page).with_context(|| format!("could not write {COMMANDS_PAGE}"))?;
    }
    let dead = links::dead(&places.root)?;
    if !dead.is_empty() {
        bail!("dead links:\n  - {}", dead.join("\n  - "));
    }
    Ok(())
}
