//! The command line of `deps`.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

const DEPS_EXAMPLES: &str = "\
Examples:
  skillcell deps prepare examples/skills/needs_package
  skillcell deps list
  skillcell deps prune --older-than 30d";

#[derive(Debug, Args)]
#[command(after_help = DEPS_EXAMPLES)]
pub(crate) struct DepsArgs {
    #[command(subcommand)]
    pub(crate) command: DepsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DepsCommand {
    /// Install what skills need, so that their first call needn't
    Prepare(PrepareArgs),
    /// List the installed sets of packages
    List(ListArgs),
    /// Remove sets of packages that aren't used any more
    Prune(PruneArgs),
}

const PREPARE_EXAMPLES: &str = "\
Examples:
  skillcell deps prepare examples/skills/needs_package
  skillcell deps prepare office/pdf_form_filler bio/sequence_ops --json";

#[derive(Debug, Args)]
#[command(after_help = PREPARE_EXAMPLES)]
pub(crate) struct PrepareArgs {
    /// Folders or ids of skills; all scripts of an Agent Skill are prepared
    #[arg(required = true, value_name = "SKILL", value_hint = ValueHint::AnyPath)]
    pub(crate) skills: Vec<String>,

    /// An operator policy, before the user's and the system's (may be given several times)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Vec<PathBuf>,

    /// The Python interpreter that the packages are for
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<PathBuf>,

    /// Print what was prepared as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  skillcell deps list
  skillcell deps list --json";

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  skillcell deps prune
  skillcell deps prune --older-than 12h
  skillcell deps prune --all

Packages that a call is using right now stay.";

#[derive(Debug, Args)]
#[command(after_help = PRUNE_EXAMPLES)]
pub(crate) struct PruneArgs {
    /// Remove what wasn't used for this long, such as 90s, 10m, 12h, 30d or 4w
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_age, conflicts_with = "all")]
    pub(crate) older_than: Duration,

    /// Remove everything
    #[arg(long)]
    pub(crate) all: bool,

    /// Print what was removed as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn parse_age(text: &str) -> Result<Duration, String> {
    let error = || format!("`{text}` is not an age: write a number and s, m, h, d or w");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(error()),
    };
    let number: u64 = number.parse().map_err(|_| error())?;
    let seconds = number.checked_mul(unit).ok_or_else(error)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(parse_age("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(parse_age("0s"), Ok(Duration::ZERO));
        for bad in [
            "",
            "d",
            "5",
            "-1d",
            "1 d",
            "1y",
            "99999999999999999999w",
            "9999999999999999999w",
            "é",
        ] {
            assert!(parse_age(bad).is_err(), "{bad}");
        }
    }
}
