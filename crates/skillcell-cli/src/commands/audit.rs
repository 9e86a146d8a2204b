//! The record of calls: checks and looks at it. One file per subcommand.

mod ask;
mod export;
mod keygen;
mod list;
mod prune;
mod reindex;
mod report;
mod search;
mod show;
mod stats;
mod tail;
mod tree;
mod verify;
mod words;

use crate::args_audit::{AuditCommand, LogArgs};
use crate::output::{self, Format};
use skillcell_audit::{AuditError, Folder};
use skillcell_core::{ErrorBody, Reason, Status};
use std::process::ExitCode;

pub(crate) fn audit(command: AuditCommand) -> ExitCode {
    match command {
        AuditCommand::List(args) => list::list(&args),
        AuditCommand::Show(args) => show::show(&args),
        AuditCommand::Tail(args) => tail::tail(&args),
        AuditCommand::Search(args) => search::search(&args),
        AuditCommand::Stats(args) => stats::stats(&args),
        AuditCommand::Verify(args) => verify::verify(&args),
        AuditCommand::Keygen(args) => keygen::keygen(&args),
        AuditCommand::Prune(args) => prune::prune(&args),
        AuditCommand::Reindex(args) => reindex::reindex(&args),
        AuditCommand::Export(args) => export::export(&args),
        AuditCommand::Report(args) => report::report(&args),
    }
}

impl LogArgs {
    /// One that is named must be there: a name that is mistyped would pass for an empty log, in
    /// which all is well. Your own begins with your first call.
    fn folder(&self) -> Result<Folder, AuditError> {
        match &self.log {
            Some(path) if path.is_dir() => Ok(Folder::at(path)),
            Some(path) => Err(AuditError::NoSuchFolder { path: path.clone() }),
            None => Folder::of_user(),
        }
    }

    /// As `folder`, for what may begin a log.
    fn new_folder(&self) -> Result<Folder, AuditError> {
        self.log
            .as_ref()
            .map_or_else(Folder::of_user, |path| Ok(Folder::at(path)))
    }

    fn format(&self) -> Format {
        Format::of(self.json)
    }
}

/// A log that can't be read or written.
fn failure(error: &AuditError, format: Format) -> ExitCode {
    let (status, code) = match error {
        AuditError::NoSuchFolder { .. } | AuditError::KeyExists { .. } => {
            (Status::InvalidInput, Reason::InvalidUsage)
        }
        _ => (Status::Refused, Reason::AuditUnavailable),
    };
    let body = ErrorBody {
        code,
        message: format!("the audit log: {error}"),
        hint: Some(error.hint().to_owned()),
    };
    output::failure(status, &body, format)
}
