use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("there is no place for it: neither XDG_STATE_HOME nor HOME is set")]
    NoPlace,
    /// The log isn't what its last writer left.
    #[error("{path}: {what}")]
    Changed { path: PathBuf, what: String },
    #[error("{path}: {what}")]
    Key { path: PathBuf, what: &'static str },
    #[error("{path}: this log has a key already")]
    KeyExists { path: PathBuf },
    #[error("{path}: there is no such folder")]
    NoSuchFolder { path: PathBuf },
    #[error("{path}: {source}")]
    Index {
        path: PathBuf,
        source: Box<rusqlite::Error>,
    },
    /// The index doesn't fit the log that it was made from.
    #[error("{path}: {what}")]
    IndexWrong { path: PathBuf, what: &'static str },
    #[error("an event can't be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

impl AuditError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> AuditError {
        let path = path.to_owned();
        move |source| AuditError::Io { path, source }
    }

    pub(crate) fn changed(path: &Path, what: impl Into<String>) -> AuditError {
        AuditError::Changed {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            AuditError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room, or remove old segments with `skillcell audit prune`"
            }
            AuditError::Io { .. } => {
                "make the folder writable for this user, or choose another with SKILLCELL_STATE_DIR"
            }
            AuditError::NoPlace => "set SKILLCELL_STATE_DIR",
            AuditError::Changed { .. } => {
                "see `skillcell audit verify`; to begin a new log, move the folder away"
            }
            AuditError::KeyExists { .. } => {
                "its checkpoints are by that key; for another, move the whole folder away"
            }
            AuditError::NoSuchFolder { .. } => {
                "name the folder that holds 00000001.jsonl; an envelope has it as audit.log"
            }
            AuditError::Key { .. } => "make a new one with `skillcell audit keygen`",
            AuditError::Index { .. } | AuditError::IndexWrong { .. } => {
                "make it again with `skillcell audit reindex`"
            }
            AuditError::Encode(_) => "please report this",
        }
    }
}
