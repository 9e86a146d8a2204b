//! Where an index is kept, and whose turn it is: one process at a time, so that a damaged index can
//! be thrown away under nobody's feet.

use crate::{AuditError, Folder};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

pub(super) enum Place {
    /// In the folder of the log, while the lock is held.
    Disk(#[expect(dead_code, reason = "closing it gives the lock back")] File),
    /// The folder can't be written: a backup, or somebody else's log.
    Memory,
}

impl Place {
    pub(super) fn take(folder: &Folder) -> Result<Place, AuditError> {
        if !folder.path().exists() {
            return Ok(Place::Memory);
        }
        let path = folder.index_lock();
        let lock = match Folder::open_private(&path, OFlags::RDWR | OFlags::CREATE) {
            Ok(lock) => lock,
            Err(AuditError::Io { source, .. })
                if matches!(
                    Errno::from_io_error(&source),
                    Some(Errno::ACCESS | Errno::PERM | Errno::ROFS)
                ) =>
            {
                return Ok(Place::Memory);
            }
            Err(error) => return Err(error),
        };
        loop {
            match flock(&lock, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Place::Disk(lock)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(AuditError::io(&path)(errno.into())),
            }
        }
    }

    pub(super) fn path(&self, folder: &Folder) -> Option<PathBuf> {
        match self {
            Place::Disk(_) => Some(folder.index()),
            Place::Memory => None,
        }
    }
}

/// Removes an index with what SQLite keeps beside it.
pub(super) fn remove(path: &Path) -> Result<(), AuditError> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(AuditError::io(Path::new(&name))(error));
            }
            _ => {}
        }
    }
    Ok(())
}
