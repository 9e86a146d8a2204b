//! Where a log is, and which files it consists of.

use crate::AuditError;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// One file of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub number: u64,
    pub path: PathBuf,
}

impl Folder {
    pub fn at(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    /// Below `SKILLCELL_STATE_DIR`, or `XDG_STATE_HOME`, or the user's state folder; for root that
    /// is `/var/log/skillcell`.
    pub fn of_user() -> Result<Folder, AuditError> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let state = match variable("SKILLCELL_STATE_DIR") {
            Some(folder) => folder,
            None if variable("XDG_STATE_HOME").is_none()
                && rustix::process::geteuid().is_root() =>
            {
                PathBuf::from("/var/log/skillcell")
            }
            None => variable("XDG_STATE_HOME")
                .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
                .ok_or(AuditError::NoPlace)?
                .join("skillcell"),
        };
        Ok(Folder(state.join("audit")))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn segment(&self, number: u64) -> Segment {
        Segment {
            number,
            path: self.0.join(format!("{number:08}.jsonl")),
        }
    }

    /// Number, length and hash of the last line, for writers and as an anchor against truncation.
    pub(crate) fn head(&self) -> PathBuf {
        self.0.join("head.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    pub fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints.jsonl")
    }

    pub fn signing_key(&self) -> PathBuf {
        self.0.join("signing-key.der")
    }

    pub fn public_key(&self) -> PathBuf {
        self.0.join("signing-key.pub")
    }

    /// Rebuilt from the log at any time.
    pub fn index(&self) -> PathBuf {
        self.0.join("index.sqlite")
    }

    pub(crate) fn index_lock(&self) -> PathBuf {
        self.0.join("index.lock")
    }

    pub(crate) fn make(&self) -> Result<(), AuditError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(AuditError::io(&self.0))
    }

    /// All segments, oldest first. A log that was never written has none.
    pub fn segments(&self) -> Result<Vec<Segment>, AuditError> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(AuditError::io(&self.0)(error)),
        };
        let mut segments = Vec::new();
        for entry in entries {
            let entry = entry.map_err(AuditError::io(&self.0))?;
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|n| n.strip_suffix(".jsonl"))
                .filter(|n| n.len() >= 8)
                .and_then(|n| n.parse().ok());
            if let Some(number) = number
                && self.segment(number).path == entry.path()
            {
                segments.push(self.segment(number));
            }
        }
        segments.sort_by_key(|s| s.number);
        Ok(segments)
    }

    /// Opens a file of the log, private to its owner and never through a link.
    pub(crate) fn open_private(path: &Path, flags: OFlags) -> Result<File, AuditError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))
            .map(File::from)
            .map_err(|e| AuditError::io(path)(e.into()))
    }
}
