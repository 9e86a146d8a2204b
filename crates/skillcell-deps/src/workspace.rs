//! A folder for one install, gone with it however it ends: dropped at once, or swept by the next
//! install if this process was killed.

use crate::cache::make;
use crate::lock::Lock;
use crate::{Cache, DepsError};
use skillcell_linux::cell::Ids;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static COUNTER: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Workspace {
    top: PathBuf,
    _lock: Lock,
}

impl Workspace {
    /// Sweeps what the dead left, then makes a folder that is locked from its first moment.
    pub(crate) fn create(cache: &Cache) -> Result<Workspace, DepsError> {
        let tmp = cache.tmp();
        let _entrance = loop {
            match Lock::attempt(&tmp.join(".lock"))? {
                Some(lock) => break lock,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        sweep(&tmp);
        let name = format!(
            "{:x}-{:x}",
            std::process::id(),
            COUNTER.fetch_add(1, Ordering::Relaxed)
        );
        let top = tmp.join(name);
        make(
            &top,
            if rustix::process::geteuid().is_root() {
                0o711
            } else {
                0o700
            },
        )?;
        let lock = Lock::attempt(&top.join("lock"))?
            .ok_or_else(|| DepsError::io("locking", &top)(std::io::ErrorKind::WouldBlock.into()))?;
        let made = Workspace { top, _lock: lock };
        for folder in [made.env(), made.site(), made.work()] {
            make(&folder, 0o700)?;
        }
        Ok(made)
    }

    /// What the installer may write: becomes the environment.
    pub(crate) fn env(&self) -> PathBuf {
        self.top.join("env")
    }

    pub(crate) fn site(&self) -> PathBuf {
        self.env().join("site")
    }

    /// Downloads and other leavings, removed before the environment is looked at.
    pub(crate) fn work(&self) -> PathBuf {
        self.env().join("work")
    }

    /// Where a broken environment that is in the way is put, to go with the rest.
    pub(crate) fn rubbish(&self) -> PathBuf {
        self.top.join("rubbish")
    }

    /// Gives the folders to the id that the installer has outside.
    pub(crate) fn give_to(&self, ids: Ids) -> Result<(), DepsError> {
        for folder in [self.env(), self.site(), self.work()] {
            std::os::unix::fs::lchown(&folder, Some(ids.uid), Some(ids.gid))
                .map_err(DepsError::io("preparing", &folder))?;
        }
        Ok(())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        remove_tree(&self.top);
    }
}

/// Removes folders whose installs have died. An error leaves one for the next time.
pub(crate) fn sweep(tmp: &Path) {
    for entry in fs::read_dir(tmp).into_iter().flatten().flatten() {
        let folder = entry.path();
        if !entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        if let Ok(Some(lock)) = Lock::attempt(&folder.join("lock")) {
            remove_tree(&folder);
            drop(lock);
        }
    }
}

/// Removes a tree whose folders may have lost their permissions. Follows no links.
pub(crate) fn remove_tree(path: &Path) {
    let is_folder = || fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    if fs::remove_dir_all(path).is_ok() || !is_folder() {
        return;
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap_or(());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(path).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(folder: &tempfile::TempDir) -> Cache {
        Cache::at(&folder.path().join("cache")).prepare().unwrap()
    }

    #[test]
    fn a_dropped_workspace_leaves_nothing_even_where_folders_lost_their_rights() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(&folder);
        let workspace = Workspace::create(&cache).unwrap();
        let deep = workspace.site().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("f"), "x").unwrap();
        fs::set_permissions(workspace.site().join("a"), Permissions::from_mode(0o000)).unwrap();
        drop(workspace);
        assert_eq!(fs::read_dir(cache.tmp()).unwrap().count(), 0);
    }

    #[test]
    fn sweeping_takes_the_dead_and_spares_the_living() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(&folder);
        let living = Workspace::create(&cache).unwrap();
        let dead = cache.tmp().join("dead");
        fs::create_dir_all(dead.join("env/site/x")).unwrap();
        fs::write(dead.join("lock"), "").unwrap();
        let next = Workspace::create(&cache).unwrap();
        assert!(!dead.exists());
        assert!(living.site().is_dir() && next.site().is_dir());
    }
}
