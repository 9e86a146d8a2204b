//! Why a bundle can't be used. Each message is complete, underlying error included, so that one
//! line on a terminal says it all.

use skillcell_core::{Location, Reason};
use skillcell_manifest::{ManifestError, printable};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error(
        "no skill `{}`: it is neither a path nor an id in {}",
        printable(reference),
        Folders(looked)
    )]
    NotFound {
        reference: String,
        looked: Vec<PathBuf>,
        similar: Vec<String>,
    },
    #[error(
        "{}: not a skill: expected a folder, manifest.yaml, SKILL.md or skill.py",
        Shown(path)
    )]
    NotASkill { path: PathBuf },
    #[error("{}: can't open the skill's folder: {error}", Shown(path))]
    Root { path: PathBuf, error: io::Error },
    #[error("{}: can't {step}: {error}", Shown(path))]
    File {
        path: PathBuf,
        step: &'static str,
        error: io::Error,
    },
    #[error("{}: expected a regular file, found {kind}", Shown(path))]
    NotRegular { path: PathBuf, kind: &'static str },
    #[error("{}: has {size} bytes, more than the limit of {limit}", Shown(path))]
    TooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    #[error("{}:{location}: not valid UTF-8", Shown(path))]
    NotUtf8 { path: PathBuf, location: Location },
    #[error("{}:{}{error}", Shown(path), Place(error.location()))]
    Manifest { path: PathBuf, error: ManifestError },
    #[error("{}: there is no manifest.yaml and no SKILL.md", Shown(path))]
    NoManifest { path: PathBuf, class: Class },
    #[error(
        "{}: there is nothing to run: no skill.py beside it, and no execution.command in it",
        Shown(path)
    )]
    NoEntry { path: PathBuf },
    #[error("entry `{}`: {problem}", printable(entry))]
    Entry {
        entry: String,
        problem: &'static str,
    },
    #[error("{}: more than {limit} files and folders", Shown(path))]
    TooManyFiles { path: PathBuf, limit: usize },
    #[error("{}: more than {limit} bytes in all files together", Shown(path))]
    TooMuchData { path: PathBuf, limit: u64 },
    #[error("{}: folders nest more than {limit} levels deep", Shown(path))]
    TooDeep { path: PathBuf, limit: usize },
}

/// Whether a folder without manifest has a `skill.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Present,
    Absent,
}

impl BundleError {
    pub fn reason(&self) -> Reason {
        match self {
            BundleError::NotFound { .. }
            | BundleError::NotASkill { .. }
            | BundleError::Root { .. } => Reason::SkillNotFound,
            _ => Reason::InvalidManifest,
        }
    }

    pub fn location(&self) -> Option<Location> {
        match self {
            BundleError::Manifest { error, .. } => error.location(),
            BundleError::NotUtf8 { location, .. } => Some(*location),
            _ => None,
        }
    }

    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            BundleError::NotFound { similar, .. } if !similar.is_empty() => {
                let names: Vec<String> = similar
                    .iter()
                    .map(|s| format!("`{}`", printable(s)))
                    .collect();
                return Some(format!("did you mean {}?", names.join(" or ")));
            }
            BundleError::NotFound { .. } => {
                "give the path of a skill's folder, or put folders of skills in SKILLCELL_SKILL_PATH"
            }
            BundleError::Manifest { error, .. } => return error.hint(),
            BundleError::NoManifest {
                class: Class::Present,
                ..
            } => "put a manifest.yaml beside skill.py; `name: my_skill` is enough to begin with",
            BundleError::NoManifest {
                class: Class::Absent,
                ..
            } => "a skill is a folder with manifest.yaml and skill.py, or with SKILL.md",
            BundleError::NoEntry { .. } => {
                "add skill.py with one class that has `execute(self, params)`, or `execution: {command: [...]}`"
            }
            BundleError::Root { error, .. } | BundleError::File { error, .. }
                if error.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) =>
            {
                "this needs the openat2 system call (Linux 5.6); an old container runtime may block it"
            }
            BundleError::File { error, .. }
                if error.raw_os_error() == Some(rustix::io::Errno::XDEV.raw_os_error()) =>
            {
                "it is a link that leads out of the bundle; copy the file into the bundle"
            }
            BundleError::Root { error, .. } | BundleError::File { error, .. }
                if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) =>
            {
                "it is a link that leads back to itself"
            }
            BundleError::TooLarge { .. } => "keep data in other files of the bundle",
            BundleError::Entry { .. } => {
                "name a file by its path inside the skill, such as scripts/run.py"
            }
            BundleError::TooManyFiles { .. }
            | BundleError::TooMuchData { .. }
            | BundleError::TooDeep { .. } => {
                "keep environments, caches and data out of the skill's folder"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// A path that is safe to print.
struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0.to_string_lossy()))
    }
}

struct Folders<'a>(&'a [PathBuf]);

impl fmt::Display for Folders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("any known folder");
        }
        for (index, folder) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Shown(folder))?;
        }
        Ok(())
    }
}

struct Place(Option<Location>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(location) => write!(f, "{location}: "),
            None => f.write_str(" "),
        }
    }
}
