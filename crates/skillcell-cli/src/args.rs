//! The command line, as it is typed.

use crate::args_audit::AuditArgs;
use crate::args_deps::DepsArgs;
use crate::args_policy::PolicyArgs;
use crate::args_serve::ServeArgs;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use skillcell_core::{AuditLevel, ByteSize, Control, EnvName, Isolation, Timeout};
use skillcell_supervisor::EnvArg;
use std::ffi::OsString;
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

impl Cli {
    /// Parses the command line. Describing every command costs more than starting most calls, so a
    /// `run` without anything to say about it is parsed by its own description alone.
    pub(crate) fn from_words(words: &[OsString]) -> Result<Cli, clap::Error> {
        if words.get(1).is_some_and(|word| word == "run")
            && let Ok(RunOnly {
                command: OnlyCommand::Run(args),
            }) = RunOnly::try_parse_from(words)
        {
            return Ok(Cli {
                command: Command::Run(args),
            });
        }
        Cli::try_parse_from(words)
    }
}

/// Part of [`Cli`], with the same arguments. Its messages are never shown.
#[derive(Parser)]
#[command(name = "skillcell", version, propagate_version = true)]
struct RunOnly {
    #[command(subcommand)]
    command: OnlyCommand,
}

#[derive(Subcommand)]
enum OnlyCommand {
    Run(Box<RunArgs>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a skill in a cell and print its result
    Run(Box<RunArgs>),
    /// Show what a call would be allowed, and who said so; nothing runs
    Explain(Box<ExplainArgs>),
    /// Check skills and policies, and say where they are wrong
    Check(CheckArgs),
    /// Show what this host can enforce, what is missing, and how to get it
    Doctor(DoctorArgs),
    /// Print the JSON Schemas of manifests, policies, the envelope and the audit log
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Ask what policies would decide
    Policy(PolicyArgs),
    /// Look at the record of calls, and check that nobody changed it
    Audit(AuditArgs),
    /// Install, list and remove the packages that skills need
    Deps(DepsArgs),
    /// Serve calls over HTTP, on a unix socket and over TCP
    Serve(Box<ServeArgs>),
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

    /// How much to record: decisions, security or full; never less than policy asks for
    #[arg(long, value_name = "LEVEL")]
    pub(crate) audit: Option<AuditLevel>,

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

    /// Have a daemon make the call: the one at SOCKET, or this user's own
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    pub(crate) daemon: Option<Option<PathBuf>>,

    /// Count a call that succeeded in spite of denials as denied
    #[arg(long)]
    pub(crate) strict_denials: bool,

    /// On whose behalf the call is made, for the record
    #[arg(long, value_name = "NAME")]
    pub(crate) actor: Option<String>,

    /// The caller's own id of this request, for the record
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,

    /// Show what the skill printed, on standard error (in the envelope with --json)
    #[arg(long)]
    pub(crate) show_output: bool,

    /// Arguments for the script
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  skillcell explain examples/skills/hello
  skillcell explain finance/wallet_screening --env ETHERSCAN_API_KEY --policy skillcell.yaml
  skillcell explain office/pdf_form_filler --params-file call.json --read /data --json";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) call: CallArgs,

    /// Print the plan, its grants and what a call needs as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  skillcell check examples/skills/*/
  skillcell check my-skill /etc/skillcell/skillcell.yaml --json
  skillcell check --policy team-policy.yaml

A folder or an id is a skill. security_policy.yaml is a skill's policy file; every other YAML file,
and every file after --policy, is an operator policy. Exit code 2 when there is an error, 0 when
there are warnings at most.";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Skills and policy files
    #[arg(value_name = "SKILL|POLICY", required_unless_present = "policy", value_hint = ValueHint::AnyPath)]
    pub(crate) subjects: Vec<String>,

    /// An operator policy, whatever its name (may be given several times)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Vec<PathBuf>,

    /// Print every problem as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  skillcell doctor
  skillcell doctor --json

Exit code 0 when the sandbox level is fully available here, 5 when it isn't.";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print all facts as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SCHEMA_EXAMPLES: &str = "\
Examples:
  skillcell schema
  skillcell schema policy > skillcell.schema.json
  skillcell schema --json";

#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Which one; without a name they are listed
    pub(crate) name: Option<SchemaName>,

    /// Without a name: print all of them as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// manifest.yaml, the parts that Skillcell reads
    Manifest,
    /// security_policy, in a manifest or in a file of its own
    #[value(alias = "security_policy")]
    SecurityPolicy,
    /// skillcell.yaml, the operator's policy
    Policy,
    /// What `skillcell run --json` prints
    Envelope,
    /// A line of the audit log
    Audit,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  skillcell completions bash > ~/.local/share/bash-completion/completions/skillcell
  skillcell completions zsh > ~/.zfunc/_skillcell
  skillcell completions fish > ~/.config/fish/completions/skillcell.fish";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell that the script is for
    pub(crate) shell: clap_complete::Shell,
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
