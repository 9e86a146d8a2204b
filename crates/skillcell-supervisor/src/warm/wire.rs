//! What the daemon and a nursery say to each other.

use crate::Request;
use serde::{Deserialize, Serialize};
use skillcell_core::{CgroupController, CgroupVersion, Denial};
use skillcell_linux::cell::CellShape;
use skillcell_linux::cgroup::CgroupFolder;
use std::path::PathBuf;

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToNursery {
    /// The first message: what to load.
    Load(Box<Request>),
    /// One more cell, by a number of the daemon's; for the files of this call, where it has some.
    Make {
        number: u64,
        call: Option<Box<Request>>,
    },
    /// The daemon has seen the last of a cell.
    Done(u64),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromNursery {
    Loaded(Loaded),
    /// It can't be resumed, for this reason.
    Unfit(String),
    /// It could not even be loaded; calls will say why.
    Failed(String),
    /// A waiting cell; its descriptors come with the message, the writing end for params first.
    Made(Made),
    NotMade {
        number: u64,
        why: String,
    },
}

/// A template, as the daemon has to know it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Loaded {
    /// The plan that it was loaded under, and that its cells hold.
    pub(super) plan: String,
    /// The record of the loading.
    pub(super) run_id: String,
    pub(super) image_bytes: u64,
    /// What was denied while it was loaded: every call must be told.
    pub(super) denials: Vec<Denial>,
    /// Folders with packages, as the record names them.
    pub(super) deps: Vec<PathBuf>,
    /// What the filter of its cells allows.
    pub(super) allowed: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) number: u64,
    pub(super) pid: u32,
    pub(super) scratch: bool,
    pub(super) dns: bool,
    pub(super) doors: usize,
    pub(super) listener: bool,
    pub(super) staging: usize,
    /// What its filter allows, where that is not what the template's other cells are allowed.
    pub(super) allowed: Option<Vec<u8>>,
    /// Folders of the host that outputs go to, and the files in them.
    pub(super) outputs: Vec<(PathBuf, Vec<PathBuf>)>,
    pub(super) shown: Vec<PathBuf>,
    pub(super) cgroup: Option<Vec<Folder>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    path: PathBuf,
    v2: bool,
    controllers: Vec<u8>,
}

impl Made {
    pub(super) fn shape(&self) -> CellShape {
        CellShape {
            pid: self.pid,
            namespace: true,
            scratch: self.scratch,
            dns: self.dns,
            staging: self.staging,
            doors: self.doors,
            listener: self.listener,
        }
    }
}

const CONTROLLERS: [CgroupController; 3] = [
    CgroupController::Memory,
    CgroupController::Pids,
    CgroupController::Cpu,
];

impl From<&CgroupFolder> for Folder {
    fn from(folder: &CgroupFolder) -> Folder {
        let has = |(_, c): &(usize, &CgroupController)| folder.controllers.contains(c);
        Folder {
            path: folder.path.clone(),
            v2: folder.version == CgroupVersion::V2,
            controllers: (CONTROLLERS.iter().enumerate().filter(has))
                .map(|(n, _)| n as u8)
                .collect(),
        }
    }
}

impl From<&Folder> for CgroupFolder {
    fn from(folder: &Folder) -> CgroupFolder {
        let known = folder.controllers.iter();
        CgroupFolder {
            path: folder.path.clone(),
            version: if folder.v2 {
                CgroupVersion::V2
            } else {
                CgroupVersion::V1
            },
            controllers: known
                .filter_map(|n| CONTROLLERS.get(usize::from(*n)).copied())
                .collect(),
        }
    }
}
