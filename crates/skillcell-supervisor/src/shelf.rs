//! What a daemon has read before and need not read again: bundles, as long as nothing in their
//! folders has changed, and interpreters, for a moment.

use crate::program::Interpreter;
use skillcell_bundle::{Bundle, Fingerprint};
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Entries of a bundle that is worth keeping.
const MOST_ENTRIES: usize = 400;
const MOST_BUNDLES: usize = 256;
/// A file that was changed more recently than this could be changed again without its time telling.
const SETTLED: Duration = Duration::from_secs(2);
/// How long an interpreter is taken to be where it was found.
const FRESH: Duration = Duration::from_secs(1);

/// A folder with everything in it, as the file system tells it: whoever changes a file can't keep
/// its change time.
pub(crate) type Stamp = Vec<(PathBuf, [u64; 7])>;

/// A bundle's folder, and which of its scripts is meant.
type Opened = (PathBuf, Option<String>);

/// A bundle's root, and which interpreter and packages are asked for.
pub(crate) type Asked = (PathBuf, [Option<PathBuf>; 2]);

#[derive(Default)]
pub(crate) struct Shelf {
    bundles: Mutex<HashMap<Opened, (Stamp, Read)>>,
    interpreters: Mutex<HashMap<Asked, (Instant, Interpreter)>>,
}

/// A bundle and its fingerprint.
#[derive(Clone)]
pub(crate) struct Read {
    pub(crate) bundle: Arc<Bundle>,
    pub(crate) fingerprint: Fingerprint,
}

impl Shelf {
    /// The bundle in a folder, read by `open` where it isn't known to be as it was.
    pub(crate) fn bundle<E>(
        &self,
        folder: &Path,
        entry: Option<&str>,
        open: impl FnOnce() -> Result<Read, E>,
    ) -> Result<Read, E> {
        let key = (folder.to_owned(), entry.map(str::to_owned));
        let before = stamp(folder, MOST_ENTRIES).ok();
        {
            let bundles = self.bundles.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some((known, read)), Some(now)) = (bundles.get(&key), &before)
                && known == now
            {
                return Ok(read.clone());
            }
        }
        let read = open()?;
        let Some(before) = before.filter(is_settled) else {
            return Ok(read);
        };
        // Only what stood still while it was read.
        if stamp(folder, MOST_ENTRIES).is_ok_and(|after| after == before) {
            let mut bundles = self.bundles.lock().unwrap_or_else(PoisonError::into_inner);
            if bundles.len() >= MOST_BUNDLES {
                bundles.clear();
            }
            bundles.insert(key, (before, read.clone()));
        }
        Ok(read)
    }

    /// The interpreter of a bundle's entry, found by `find` once in a while.
    pub(crate) fn interpreter<E>(
        &self,
        key: Asked,
        find: impl FnOnce() -> Result<Interpreter, E>,
    ) -> Result<Interpreter, E> {
        let mut known = self
            .interpreters
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((found, interpreter)) = known.get(&key)
            && found.elapsed() < FRESH
        {
            return Ok(interpreter.clone());
        }
        let interpreter = find()?;
        if known.len() >= MOST_BUNDLES {
            known.clear();
        }
        known.insert(key, (Instant::now(), interpreter.clone()));
        Ok(interpreter)
    }
}

/// How a folder stands, if it has no more than `most` entries.
pub(crate) fn stamp(folder: &Path, most: usize) -> io::Result<Stamp> {
    let mut stamp = Vec::new();
    let mut folders = vec![folder.to_owned()];
    stamp.push((PathBuf::new(), numbers(&std::fs::symlink_metadata(folder)?)));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let meta = std::fs::symlink_metadata(&path)?;
            if meta.is_dir() {
                folders.push(path.clone());
            }
            stamp.push((path, numbers(&meta)));
            if stamp.len() > most {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
    }
    stamp.sort_unstable();
    Ok(stamp)
}

fn numbers(meta: &Metadata) -> [u64; 7] {
    [
        meta.dev(),
        meta.ino(),
        meta.size(),
        u64::from(meta.mode()),
        meta.mtime() as u64 ^ (meta.mtime_nsec() as u64) << 34,
        meta.ctime() as u64,
        meta.ctime_nsec() as u64,
    ]
}

fn is_settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let latest = stamp.iter().map(|(_, n)| n[5]).max().unwrap_or(u64::MAX);
    latest < now.saturating_sub(SETTLED).as_secs()
}
