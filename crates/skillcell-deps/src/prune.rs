use crate::cache::read_entry;
use crate::lock::Lock;
use crate::workspace::{remove_tree, sweep};
use crate::{Cache, DepsError, Entry};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

/// What to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    /// What wasn't used for this long.
    UnusedFor(Duration),
    All,
}

impl Cache {
    /// Removes environments, and what killed installs left. One in use by a call stays. Gives what
    /// was removed.
    pub fn prune(&self, what: Prune) -> Result<Vec<Entry>, DepsError> {
        let mut removed = Vec::new();
        for entry in self.list()? {
            let unused = SystemTime::now()
                .duration_since(entry.last_used)
                .unwrap_or_default();
            let wanted = match what {
                Prune::All => true,
                Prune::UnusedFor(age) => unused >= age,
            };
            if wanted && self.remove(&entry)? {
                removed.push(entry);
            }
        }
        self.remove_broken()?;
        let tmp = self.tmp();
        if tmp.is_dir()
            && let Some(_entrance) = Lock::attempt(&tmp.join(".lock"))?
        {
            sweep(&tmp);
        }
        Ok(removed)
    }

    fn remove(&self, entry: &Entry) -> Result<bool, DepsError> {
        let path = entry.path.join("meta.json");
        let Ok(meta) = File::open(&path) else {
            return Ok(false);
        };
        if flock(&meta, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(false);
        }
        // The marker first, while it is held: from here on nobody takes the environment for a whole one.
        fs::remove_file(&path).map_err(DepsError::io("removing", &path))?;
        remove_tree(&entry.path);
        Ok(true)
    }

    /// Folders without a valid marker: nobody can be using them, unless they are being replaced.
    fn remove_broken(&self) -> Result<(), DepsError> {
        for item in fs::read_dir(self.envs()).into_iter().flatten().flatten() {
            let Ok(name) = item.file_name().into_string() else {
                continue;
            };
            if read_entry(&item.path())?.is_some() {
                continue;
            }
            if let Some(_lock) = Lock::attempt(&self.locks().join(format!("{name}.lock")))?
                && read_entry(&item.path())?.is_none()
            {
                remove_tree(&item.path());
            }
        }
        Ok(())
    }
}
