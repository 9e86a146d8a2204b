//! What is written beside an environment. Its presence is what makes the environment valid.

use crate::key::{FORMAT, Key};
use serde::{Deserialize, Serialize};
use skillcell_core::Digest;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `meta.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meta {
    pub(crate) format: u32,
    pub(crate) requirements: Vec<String>,
    pub(crate) python: String,
    pub(crate) machine: String,
    pub(crate) libc: String,
    pub(crate) source_builds: bool,
    pub(crate) installer: String,
    pub(crate) size: u64,
    pub(crate) files: u64,
    /// Seconds since the epoch.
    pub(crate) created: u64,
}

impl Meta {
    pub(crate) fn new(key: &Key, installer: &str, size: u64, files: u64) -> Meta {
        Meta {
            format: FORMAT,
            requirements: key.requirements.clone(),
            python: key.python.clone(),
            machine: key.machine.to_owned(),
            libc: key.libc.to_owned(),
            source_builds: key.source_builds,
            installer: installer.to_owned(),
            size,
            files,
            created: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
        }
    }
}

/// One environment of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Digest,
    pub path: PathBuf,
    pub requirements: Vec<String>,
    /// Such as `3.11`.
    pub python: String,
    pub source_builds: bool,
    /// `uv` or `pip`.
    pub installer: String,
    pub size: u64,
    pub created: SystemTime,
    /// To the hour.
    pub last_used: SystemTime,
}

impl Entry {
    pub(crate) fn new(key: Digest, path: PathBuf, meta: Meta, last_used: SystemTime) -> Entry {
        Entry {
            key,
            path,
            requirements: meta.requirements,
            python: meta.python,
            source_builds: meta.source_builds,
            installer: meta.installer,
            size: meta.size,
            created: UNIX_EPOCH + Duration::from_secs(meta.created),
            last_used,
        }
    }
}
