use skillcell_linux::LinuxError;
use std::path::PathBuf;

/// The cell could not be made. Nothing of the skill has run.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("the cell could not be made: {0}")]
    Linux(#[from] LinuxError),
    #[error("`{path}` can't be looked at: {source}")]
    Stat {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("a scratch folder could not be made at `{path}`: {source}")]
    Scratch {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("`{path}` can't be read by the unprivileged id that the skill runs as")]
    Unreachable { path: PathBuf },
    #[error("a pipe could not be opened")]
    Pipe,
    #[error("a path or value holds a NUL byte")]
    Nul,
    #[error(
        "the caller is root without the right to change ids, so the cell would be root outside"
    )]
    RootWithoutIds,
    #[error(
        "`{path}` has {count} entries; at most {max} can be shown beside a file that is granted for writing"
    )]
    CrowdedFolder {
        path: PathBuf,
        count: usize,
        max: usize,
    },
    #[error("the egress rules name {count} ports; a cell has listeners for at most {max}")]
    TooManyPorts { count: usize, max: usize },
    #[error("the process level has no network namespace, so no egress rule can be held there")]
    NoNetworkNamespace,
}

impl BackendError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            BackendError::Linux(error) => match error.step {
                skillcell_linux::Step::Exec => return None,
                _ => "`skillcell doctor` tells what this host lacks and how to get it".into(),
            },
            BackendError::Unreachable { .. } => {
                "as root, the process level needs a bundle and interpreter that others can read; use the sandbox level".into()
            }
            BackendError::RootWithoutIds => "run as an ordinary user, or keep CAP_SETUID and CAP_SETGID".into(),
            BackendError::CrowdedFolder { .. } => "grant the single files that the skill reads with --read".into(),
            BackendError::TooManyPorts { .. } => "name fewer ports in `network.egress`".into(),
            BackendError::NoNetworkNamespace => "run the skill at the sandbox level".into(),
            BackendError::Stat { .. }
            | BackendError::Scratch { .. }
            | BackendError::Nul
            | BackendError::Pipe => return None,
        })
    }
}
