//! Everything in a bundle, in one order, within bounds.

use crate::BundleError;
use crate::root::Root;
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the bundle.
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File {
        executable: bool,
    },
    Folder,
    Link {
        target: OsString,
    },
    /// A pipe, socket or device: never opened.
    Other,
}

/// What is in a bundle.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) entries: Vec<Entry>,
    /// Whether there is a `__pycache__`, which Python would take in place of the source.
    pub(crate) bytecode: bool,
}

/// Lists a bundle, sorted by the bytes of the path.
///
/// Bytecode is left out, because running a skill elsewhere makes and changes it: `__pycache__`
/// folders, and a `x.pyc` beside its `x.py`. A `x.pyc` alone is code that Python would import, so
/// it counts.
pub(crate) fn walk(root: &Root) -> Result<Walked, BundleError> {
    let mut entries = Vec::new();
    let mut bytecode = false;
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(BundleError::TooDeep {
                path: root.path().join(folder),
                limit: MAX_DEPTH,
            });
        }
        let listed = list(root, &folder, MAX_ENTRIES - entries.len(), &mut bytecode)?;
        for (name, kind) in listed {
            let path = folder.join(name);
            if kind == Kind::Folder {
                folders.push((path.clone(), depth + 1));
            }
            entries.push(Entry { path, kind });
        }
    }
    entries.sort_unstable_by(|a, b| {
        a.path
            .as_os_str()
            .as_bytes()
            .cmp(b.path.as_os_str().as_bytes())
    });
    Ok(Walked { entries, bytecode })
}

fn list(
    root: &Root,
    folder: &Path,
    room: usize,
    bytecode: &mut bool,
) -> Result<Vec<(OsString, Kind)>, BundleError> {
    let fail = |error| root.fail(folder, "list the folder", error);
    let fd = root.open_dir(folder)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&fd).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == room {
            return Err(BundleError::TooManyFiles {
                path: root.path().to_owned(),
                limit: MAX_ENTRIES,
            });
        }
        names.push(OsStr::from_bytes(name).to_owned());
    }
    let sources: HashSet<OsString> = names
        .iter()
        .filter(|name| name.as_bytes().ends_with(b".py"))
        .cloned()
        .collect();
    let mut listed = Vec::with_capacity(names.len());
    for name in names {
        let stat = statat(&fd, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| root.fail(&folder.join(&name), "read its type", e))?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let source = name.as_bytes().strip_suffix(b"c").map(OsStr::from_bytes);
                if source.is_some_and(|source| sources.contains(source)) {
                    continue;
                }
                Kind::File {
                    executable: stat.st_mode & 0o111 != 0,
                }
            }
            FileType::Directory if name == "__pycache__" => {
                *bytecode = true;
                continue;
            }
            FileType::Directory => Kind::Folder,
            FileType::Symlink => {
                let target = readlinkat(&fd, name.as_os_str(), Vec::new())
                    .map_err(|e| root.fail(&folder.join(&name), "read the link", e))?;
                Kind::Link {
                    target: OsString::from_vec(target.into_bytes()),
                }
            }
            _ => Kind::Other,
        };
        listed.push((name, kind));
    }
    Ok(listed)
}
