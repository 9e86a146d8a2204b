//! The record of calls: checks and looks at it. One file per subcommand.

mod keygen;
mod verify;

use crate::args_audit::{AuditCommand, LogArgs};
use crate::output::{self, Format};
use skillcell_audit::{AuditError, Folder};
use skillcell_core::{ErrorBody, Reason, Status};
use std::process::ExitCode;

pub(crate) fn audit(command: AuditCommand) -> ExitCode {
    match command {
        AuditCommand::Verify(args) => verify::verify(&args),
        AuditCommand::Keygen(args) => keygen::keygen(&args),
    }
}

impl LogArgs {
    fn folder(&self) -> Result<Folder, AuditError> {
        match &self.log {
            Some(path) => Ok(Folder::at(path)),
            None => Folder::of_user(),
        }
    }

    fn format(&self) -> Format {
        Format::of(self.json)
    }
}

/// A log that can't be read or written.
fn failure(error: &AuditError, format: Format) -> ExitCode {
    let body = ErrorBody {
        code: Reason::AuditUnavailable,
        message: format!("the audit log: {error}"),
        hint: Some(error.hint().to_owned()),
    };
    output::failure(Status::Refused, &body, format)
}
