//! Host paths that callers name, by flag or in params: resolved once, before the plan decides.

use crate::{CallError, Caller, Request};
use serde_json::Value;
use skillcell_manifest::{Manifest, ParamAccess};
use skillcell_plan::{HostPath, ParamPath, PathKind};
use std::io;
use std::path::{Path, PathBuf};

/// Resolves a path; one that is written to may be absent, its folder may not.
pub(crate) fn resolve(path: &Path) -> io::Result<HostPath> {
    match std::fs::canonicalize(path) {
        Ok(real) => {
            let meta = std::fs::symlink_metadata(&real)?;
            let kind = if meta.is_dir() {
                PathKind::Directory
            } else if meta.is_file() {
                PathKind::File
            } else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "only files and folders can be granted",
                ));
            };
            Ok(HostPath { path: real, kind })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A dangling link would let whoever can make its target choose what is written.
            if std::fs::symlink_metadata(path).is_ok() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a link that leads nowhere",
                ));
            }
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let name = path.file_name().ok_or(error)?;
            Ok(HostPath {
                path: std::fs::canonicalize(parent)?.join(name),
                kind: PathKind::Absent,
            })
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn flags(
    paths: &[PathBuf],
    flag: &'static str,
    caller: &Caller,
) -> Result<Vec<HostPath>, CallError> {
    paths
        .iter()
        .map(|path| {
            let found = resolve(&caller.path(path)).map_err(|source| CallError::FlagPath {
                flag,
                path: path.clone(),
                source,
            })?;
            if flag == "--read" && found.kind == PathKind::Absent {
                return Err(CallError::FlagPath {
                    flag,
                    path: path.clone(),
                    source: io::ErrorKind::NotFound.into(),
                });
            }
            Ok(found)
        })
        .collect()
}

/// The params that the manifest says hold host paths. Relative ones are the caller's, and made
/// absolute in the params.
pub(crate) fn in_params(
    manifest: &Manifest,
    params: &mut Value,
    caller: &Caller,
) -> Result<Vec<ParamPath>, CallError> {
    let mut found = Vec::new();
    for (name, access) in &manifest.security_policy.filesystem.params {
        let Some(slot) = params.get_mut(name) else {
            continue;
        };
        let values: Vec<&mut Value> = match slot {
            Value::Null => continue,
            Value::Array(items) => items.iter_mut().collect(),
            single => vec![single],
        };
        for value in values {
            let Some(text) = value.as_str() else {
                return Err(CallError::ParamsShape(format!(
                    "`{name}` holds a path and must be a string"
                )));
            };
            if text.is_empty() {
                continue;
            }
            let host = resolve(&caller.path(Path::new(text)))
                .map_err(|e| CallError::ParamsShape(format!("`{name}`: {text}: {e}")))?;
            if *access == ParamAccess::Read && host.kind == PathKind::Absent {
                return Err(CallError::ParamsShape(format!(
                    "`{name}`: {text}: no such file or folder"
                )));
            }
            let shown = host.path.to_str().ok_or_else(|| {
                CallError::ParamsShape(format!("`{name}`: the path is not UTF-8"))
            })?;
            *value = Value::String(shown.to_owned());
            found.push(ParamPath {
                param: name.clone(),
                access: *access,
                host,
            });
        }
    }
    Ok(found)
}

/// At the process level outputs are staged elsewhere: every string in params that names one is
/// pointed there.
pub(crate) fn redirect(params: &mut Value, moves: &[(PathBuf, PathBuf)]) {
    match params {
        Value::String(text) => {
            for (from, to) in moves {
                if let Ok(rest) = Path::new(text.as_str()).strip_prefix(from) {
                    let moved = if rest.as_os_str().is_empty() {
                        to.clone()
                    } else {
                        to.join(rest)
                    };
                    *text = moved.to_string_lossy().into_owned();
                    return;
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, moves)),
        Value::Object(entries) => entries
            .values_mut()
            .for_each(|entry| redirect(entry, moves)),
        _ => {}
    }
}

/// Policy files in the order of their authority: each is a ceiling for those before it.
pub(crate) fn policy_files(request: &Request) -> Vec<PathBuf> {
    let named = request.policy.iter();
    let mut files: Vec<PathBuf> = named.map(|path| request.caller.path(path)).collect();
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    let standard = config
        .into_iter()
        .map(|c| c.join("skillcell"))
        .chain([PathBuf::from("/etc/skillcell")]);
    files.extend(
        standard
            .map(|folder| folder.join("skillcell.yaml"))
            .filter(|file| file.symlink_metadata().is_ok()),
    );
    files
}
