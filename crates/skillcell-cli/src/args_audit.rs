//! The command line of `audit`.

use crate::args_audit_export::{ExportArgs, ReportArgs};
use crate::args_audit_query::{
    ListArgs, PruneArgs, ReindexArgs, SearchArgs, ShowArgs, StatsArgs, TailArgs,
};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const AUDIT_EXAMPLES: &str = "\
Examples:
  skillcell audit list --since 24h
  skillcell audit show last
  skillcell audit search --event denied --host '*.example.com'
  skillcell audit verify";

#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List calls, newest first
    List(Box<ListArgs>),
    /// Show one call: its processes, and what it did when
    Show(ShowArgs),
    /// Print the last events, and follow new ones
    Tail(TailArgs),
    /// Find events by words, host, path, system call, reason and more
    Search(Box<SearchArgs>),
    /// Count calls, denials, hosts, files and system calls
    Stats(Box<StatsArgs>),
    /// Check that nothing in the log was changed, removed or put in
    Verify(VerifyArgs),
    /// Make the key that checkpoints of the log are signed with
    Keygen(KeygenArgs),
    /// Remove the oldest part of the log
    Prune(PruneArgs),
    /// Make the index of the log again
    Reindex(ReindexArgs),
    /// Write the record in the format of a SIEM, a collector, a spreadsheet or a registry
    Export(ExportArgs),
    /// Make a page that shows one run
    Report(ReportArgs),
}

/// Which log.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The log's folder, instead of your own log
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) log: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  skillcell audit verify
  skillcell audit verify --head 0e79ca3c3244cc2c69891d0755eaaec8db3a873f4f02e747c707a31b09200349
  skillcell audit verify --log /mnt/backup/audit --public-key operator.pub --json

Exit code 0 when the log is whole, 3 when it is not; the first bad line is named. The head of an
envelope (`audit.head`) proves that the log still has that call, whoever can write the log.";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,

    /// A hash that must be in the log, such as an envelope's audit.head (may be given several times)
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Vec<String>,

    /// The public key that checkpoints must be signed with, instead of the one beside the log
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) public_key: Option<PathBuf>,
}

const KEYGEN_EXAMPLES: &str = "\
Examples:
  skillcell audit keygen

From then on the end of the log is signed after each call. Keep a copy of the public key elsewhere.";

#[derive(Debug, Args)]
#[command(after_help = KEYGEN_EXAMPLES)]
pub(crate) struct KeygenArgs {
    #[command(flatten)]
    pub(crate) log: LogArgs,
}
