//! The command line, as it is typed.

use clap::{Args, Parser, Subcommand, ValueHint};
use skillcell_core::{ByteSize, Control, EnvName, Isolation, Timeout};
use skillcell_supervisor::EnvArg;
use std::path::PathBuf;

/// Run untrusted AI-agent skills, each call in its own cell.
#[derive(Debug, Parser)]
#[command(
    name = "skillcell",
    version,
    max_term_width = 100,
    propagate_version = true
)]
#[command(
    after_help = "Exit codes: 0 ok, 1 the skill failed, 2 usage or invalid input, 3 denied by policy,\n4 a limit was exceeded, 5 refused (could not enforce), 70 internal error."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a skill in a cell and print its result
    Run(Box<RunArgs>),
}

const RUN_EXAMPLES: &str = "\
Examples:
  skillcell run examples/skills/hello --params '{\"name\": \"world\"}'
  skillcell run finance/wallet_screening --params-file call.json --env ETHERSCAN_API_KEY --json
  skillcell run office/pdf_form_filler --params '{\"pdf_path\": \"/data/form.pdf\"}' --read /data/form.pdf
  skillcell run ./my-agent-skill --entry scripts/report.sh -- --verbose";

/// Which skill, and what the caller allows it. Shared by `run` and `explain`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// A skill's folder, or its id (category/name)
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) skill: String,

    /// The script of an Agent Skill to run, by its path in the bundle
    #[arg(long, value_name = "PATH")]
    pub(crate) entry: Option<String>,

    /// Params as a JSON object; `-` reads them from standard input
    #[arg(
        long,
        value_name = "JSON",
        allow_hyphen_values = true,
        conflicts_with = "params_file"
    )]
    pub(crate) params: Option<String>,

    /// Params from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) params_file: Option<PathBuf>,

    /// Pass a variable that the skill declares: your value of it, or the one given
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse_env)]
    pub(crate) env: Vec<EnvArg>,

    /// Let the skill read this file or folder
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Let the skill write this file or folder; it appears when the call succeeds
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<PathBuf>,

    /// Wall-clock limit, such as 500ms, 30s or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Timeout>,

    /// Memory limit, such as 256MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Isolation level: process or sandbox; never lower than policy asks for, but with --trust
    #[arg(long, value_name = "LEVEL")]
    pub(crate) isolation: Option<Isolation>,

    /// Run a skill that you trust with less isolation than policy asks for
    #[arg(long)]
    pub(crate) trust: bool,

    /// Run although this control can't be enforced here (may be given several times)
    #[arg(long, value_name = "CONTROL")]
    pub(crate) allow_degraded: Vec<Control>,

    /// An operator policy, before the user's and the system's (may be given several times)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Vec<PathBuf>,

    /// The Python interpreter for the cell
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<PathBuf>,

    /// A ready virtualenv or folder of packages; nothing is installed then
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) deps: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) call: CallArgs,

    /// Print the whole envelope as JSON: status, result, denials, receipt, usage
    #[arg(long)]
    pub(crate) json: bool,

    /// Count a call that succeeded in spite of denials as denied
    #[arg(long)]
    pub(crate) strict_denials: bool,

    /// Show what the skill printed, on standard error (in the envelope with --json)
    #[arg(long)]
    pub(crate) show_output: bool,

    /// Arguments for the script
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,
}

fn parse_env(text: &str) -> Result<EnvArg, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let name = EnvName::parse(name).map_err(|e| e.to_string())?;
    if value.as_ref().is_some_and(|v| v.contains('\0')) {
        return Err("a value can't hold a NUL byte".into());
    }
    Ok(EnvArg { name, value })
}
