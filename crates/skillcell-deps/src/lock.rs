//! Locks between processes. The kernel lets go of them when the holder dies, however it dies.

use crate::DepsError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An exclusive lock on a file that exists only while somebody wants it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// `None` while another holds it.
    pub(crate) fn attempt(path: &Path) -> Result<Option<Lock>, DepsError> {
        loop {
            let file = open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(DepsError::io("locking", path)(errno.into())),
            }
            // The one before us removes the file when it is done; ours must be the one that is there.
            let ours = file.metadata().map_err(DepsError::io("locking", path))?;
            match std::fs::symlink_metadata(path) {
                Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                    return Ok(Some(Lock {
                        _file: file,
                        path: path.to_owned(),
                    }));
                }
                _ => {}
            }
        }
    }
}

fn open(path: &Path) -> Result<File, DepsError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(OFLAG_NOFOLLOW)
        .open(path)
        .map_err(DepsError::io("locking", path))
}

const OFLAG_NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is still held: whoever opened it in the meantime sees that it is gone.
        std::fs::remove_file(&self.path).unwrap_or(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let first = Lock::attempt(&path).unwrap();
        assert!(first.is_some());
        assert!(Lock::attempt(&path).unwrap().is_none());
        drop(first);
        assert!(!path.exists());
        assert!(Lock::attempt(&path).unwrap().is_some());
    }
}
