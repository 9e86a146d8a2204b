use crate::BackendError;
use rustix::fd::OwnedFd;
use skillcell_core::HostFacts;
use skillcell_linux::cell::{self, Cell, CellShape, CellSpec};
use skillcell_linux::cgroup::{CellCgroup, CgroupUsage};
use skillcell_linux::image::Stage;
use skillcell_linux::seccomp::AllowList;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What is known about the call besides the plan: folders of the host, all canonical.
pub struct Facts<'a> {
    pub run_id: &'a str,
    pub host: &'a HostFacts,
    pub bundle: &'a Path,
    /// Folders with Python packages, most important first.
    pub deps: &'a [PathBuf],
    /// Trees that the interpreter needs besides the system's, such as its prefix.
    pub runtime: &'a [PathBuf],
    /// The network that the plan grants, as far as the cell itself has to know of it.
    pub network: &'a Network,
}

/// What a cell's network is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// Nothing can be reached.
    Closed,
    /// The supervisor serves a listener for each of these ports.
    Brokered {
        ports: Vec<u16>,
        trust: Option<Trust>,
    },
}

/// Root certificates for a cell in which TLS is taken apart: the host's, and the call's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    pub bundle: Vec<u8>,
    /// Stores inside the cell that it takes the place of.
    pub stores: Vec<PathBuf>,
}

/// Where things are inside the cell.
#[derive(Debug, Clone)]
pub struct Layout {
    pub skill: PathBuf,
    pub deps: Vec<PathBuf>,
    pub scratch: PathBuf,
    pub tmp: PathBuf,
    /// At the process level: the scratch folder on the host, removed at the end.
    pub host_scratch: Option<StagedFolder>,
}

/// A folder of the host that belongs to one call and goes with it.
#[derive(Debug, Clone)]
pub struct StagedFolder(pub(crate) std::sync::Arc<OwnFolder>);

#[derive(Debug)]
pub(crate) struct OwnFolder(pub(crate) PathBuf);

impl StagedFolder {
    pub fn path(&self) -> &Path {
        &self.0.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // The skill may have taken rights from its own folders; nothing else can be done here.
        if std::fs::remove_dir_all(&self.0).is_err() && self.0.exists() {
            crate::process::force_remove(&self.0);
        }
    }
}

/// What to execute.
pub struct Program {
    pub program: PathBuf,
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: PathBuf,
}

/// What the payload becomes.
pub enum Begin {
    Program(Program),
    /// A skill that was loaded before, at rest in this folder.
    Resume {
        stage: Rc<Stage>,
        cwd: PathBuf,
    },
}

/// Params, on descriptor 3.
pub enum Params {
    Known(Vec<u8>),
    /// The reading end of a pipe: they come later.
    Later(OwnedFd),
}

/// What goes in.
pub struct Launch {
    pub begin: Begin,
    pub params: Params,
    /// On stdin; `None` is an empty one.
    pub stdin: Option<Vec<u8>>,
}

impl Launch {
    /// Whether it is started to be resumed from: a program whose params come later.
    pub(crate) fn is_template(&self) -> bool {
        matches!(
            (&self.begin, &self.params),
            (Begin::Program(_), Params::Later(_))
        )
    }
}

/// A folder that the skill may write, and what of it is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFolder {
    /// On the host.
    pub host: PathBuf,
    /// Single files of it, by name; empty: the whole folder.
    pub files: Vec<std::ffi::OsString>,
}

/// A cell in which everything is opened and checked.
pub struct Prepared {
    pub(crate) spec: CellSpec,
    pub(crate) cgroup: Option<CellCgroup>,
    pub(crate) outputs: Vec<OutputFolder>,
    pub(crate) shown: Vec<PathBuf>,
    pub(crate) host_scratch: Option<StagedFolder>,
    /// Staging folders that are folders of the host already.
    pub(crate) host_staging: Vec<OwnedFd>,
}

/// A cell that is being made, in which nothing of the skill runs until it is started.
pub struct Made {
    /// First, so that it goes first: a cgroup can't be removed while somebody is in it.
    cell: cell::Made,
    prepared: Prepared,
}

/// A cell in which the skill runs.
pub struct Running {
    pub cell: Cell,
    pub outputs: Vec<OutputFolder>,
    /// Host paths that are mounted for reading: inside a staging folder they leave a place-holder,
    /// which is nothing that the skill wrote.
    pub shown: Vec<PathBuf>,
    pub host_scratch: Option<StagedFolder>,
    cgroup: Option<CellCgroup>,
}

impl Prepared {
    /// What the payload's filter will allow.
    pub fn allowed(&self) -> AllowList {
        self.spec.filter.list()
    }

    /// Makes the cell, and doesn't wait until it is made. The process must be single-threaded.
    pub fn make(self) -> Result<Made, BackendError> {
        let cell = cell::make(&self.spec, self.cgroup.as_ref())?;
        Ok(Made {
            cell,
            prepared: self,
        })
    }
}

impl Made {
    /// Whether somebody will have to answer for what the skill does.
    pub fn notifies(&self) -> bool {
        self.cell.notifies()
    }

    /// Lets the skill start.
    pub fn start(self) -> Result<Running, BackendError> {
        let Made { cell, prepared } = self;
        let mut cell = cell.start()?;
        if !prepared.host_staging.is_empty() {
            cell.staging = prepared.host_staging;
        }
        Ok(Running {
            cell,
            outputs: prepared.outputs,
            shown: prepared.shown,
            host_scratch: prepared.host_scratch,
            cgroup: prepared.cgroup,
        })
    }
}

impl Running {
    /// Gives the cell to the process that will supervise it. What is left is its cgroup, for when
    /// it is gone.
    pub fn hand_over(self) -> Result<(CellShape, Vec<OwnedFd>, Option<CellCgroup>), BackendError> {
        let (shape, fds) = self.cell.hand_over()?;
        Ok((shape, fds, self.cgroup))
    }

    /// A cell that another process made.
    pub fn adopt(
        cell: Cell,
        cgroup: Option<CellCgroup>,
        outputs: Vec<OutputFolder>,
        shown: Vec<PathBuf>,
    ) -> Running {
        Running {
            cell,
            outputs,
            shown,
            host_scratch: None,
            cgroup,
        }
    }

    /// Whether a cgroup counts memory, and forks that fail.
    pub fn cgroup_counts(&self) -> (bool, bool) {
        self.cgroup
            .as_ref()
            .map_or((false, false), CellCgroup::counts)
    }

    pub fn cgroup_usage(&self) -> Option<CgroupUsage> {
        self.cgroup.as_ref().map(CellCgroup::usage)
    }
}
