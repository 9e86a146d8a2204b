//! The command line of what asks the log: which calls, which events.

use crate::args_audit::LogArgs;
use crate::when;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use skillcell_audit::Event;
use skillcell_core::{ByteSize, Reason};
use std::time::Duration;

const STATUSES: [&str; 9] = [
    "ok",
    "skill_error",
    "invalid_input",
    "invalid_result",
    "denied",
    "limit_exceeded",
    "refused",
    "internal_error",
    "unfinished",
];

/// Which calls or events. Everything that is given must be true.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Calls of this skill: category/name or name, also with @version
    #[arg(long, value_name = "ID")]
    pub(crate) skill: Option<String>,

    /// Calls that ended so, such as ok or denied; `unfinished` for those that didn't
    #[arg(long, value_parser = PossibleValuesParser::new(STATUSES), hide_possible_values = true)]
    pub(crate) status: Option<String>,

    /// Not before this time: RFC 3339, a date (in UTC), or how long ago, such as 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) since: Option<u64>,

    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) until: Option<u64>,

    /// A host by name or address; `*.example.com` is all below it
    #[arg(long)]
    pub(crate) host: Option<String>,

    /// A file, or everything in a folder, as the skill sees it
    #[arg(long, value_hint = ValueHint::AnyPath)]
    pub(crate) path: Option<String>,

    /// A system call by name
    #[arg(long, value_name = "NAME")]
    pub(crate) syscall: Option<String>,

    /// A reason of a denial or failure, such as host_not_allowed
    #[arg(long, value_name = "CODE", value_parser = parse_reason)]
    pub(crate) reason: Option<String>,

    /// A kind of event, such as denied or file_opened
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(Event::KINDS), hide_possible_values = true)]
    pub(crate) event: Option<String>,

    /// One call, by its id or the beginning of it
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Calls on behalf of this one
    #[arg(long)]
    pub(crate) actor: Option<String>,

    /// The call of this request
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,
}

fn parse_time(text: &str) -> Result<u64, String> {
    when::parse(text, when::now())
}

fn parse_reason(text: &str) -> Result<String, String> {
    match serde_json::from_value::<Reason>(text.into()) {
        Ok(reason) => Ok(reason.to_string()),
        Err(_) => Err("no such reason; they are in docs/reference/envelope.md".to_owned()),
    }
}

const LIST_EXAMPLES: &str = "\
Examples:
  skillcell audit list
  skillcell audit list --status denied --since 24h
  skillcell audit list --skill wallet_screening --host '*.etherscan.io' --json

Filters about events (--host, --path, --syscall, --reason, --event) choose calls that have one.";

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// At most so many calls, newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  skillcell audit show last
  skillcell audit show 019a5c3f2b10
  skillcell audit show 019a5c3f2b10 --all --json

RUN is an envelope's `run_id`, or as much of its beginning as no other call has.";

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The id of a call or its beginning; `last` is the newest call
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Every recorded system call too, not only how many there are
    #[arg(long)]
    pub(crate) all: bool,

    /// Leave out the tree of processes
    #[arg(long, conflicts_with = "tree")]
    pub(crate) no_tree: bool,

    /// Only the tree of processes
    #[arg(long)]
    pub(crate) tree: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

const TAIL_EXAMPLES: &str = "\
Examples:
  skillcell audit tail
  skillcell audit tail -n 100 --json
  skillcell audit tail -f";

#[derive(Debug, Args)]
#[command(after_help = TAIL_EXAMPLES)]
pub(crate) struct TailArgs {
    /// Begin with so many of the last events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) lines: u32,

    /// Go on with new events until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  skillcell audit search passwd
  skillcell audit search --event denied --since 7d
  skillcell audit search --host evil.example.net --json
  skillcell audit search --path /etc --skill office/report
  skillcell audit search curl --event process_started

Words are found in any order and case; what is written together, such as /etc/passwd, must stand
together. With a `*` at its end (quote it) it is the beginning of a word: 'pass*' finds /etc/passwd.
--json prints lines as they are in the log.";

#[derive(Debug, Args)]
#[command(after_help = SEARCH_EXAMPLES)]
pub(crate) struct SearchArgs {
    /// Words that the event must have
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,

    /// At most so many events: the newest that fit
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u32,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

const STATS_EXAMPLES: &str = "\
Examples:
  skillcell audit stats
  skillcell audit stats --since 7d --skill finance/wallet_screening
  skillcell audit stats --limit 25 --json

Filters choose calls; all that these calls did is counted.";

#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLES)]
pub(crate) struct StatsArgs {
    /// At most so many rows of each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: u32,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  skillcell audit prune --keep-age 90d --dry-run
  skillcell audit prune --keep-size 2GiB
  skillcell audit prune --keep-size 10GiB --keep-age 52w

The oldest segments go as a whole, after a line of the log has said so: what is left still verifies.
The segment that is being written stays. Nothing is asked.";

#[derive(Debug, Args)]
#[command(after_help = PRUNE_EXAMPLES)]
#[group(id = "keep", required = true, multiple = true)]
pub(crate) struct PruneArgs {
    /// Keep at most this much, such as 500MiB
    #[arg(long, value_name = "SIZE", group = "keep")]
    pub(crate) keep_size: Option<ByteSize>,

    /// Keep what was written within this time, such as 12h, 90d or 52w
    #[arg(long, value_name = "AGE", value_parser = crate::args_deps::parse_age, group = "keep")]
    pub(crate) keep_age: Option<Duration>,

    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

const REINDEX_EXAMPLES: &str = "\
Examples:
  skillcell audit reindex

The index is made from the log and kept up to date by the commands that use it. It is never
needed to make it again by hand, and never wrong to.";

#[derive(Debug, Args)]
#[command(after_help = REINDEX_EXAMPLES)]
pub(crate) struct ReindexArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
}
