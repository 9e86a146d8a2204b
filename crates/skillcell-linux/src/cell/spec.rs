use crate::image::Stage;
use crate::landlock_domain::DomainRules;
use crate::mount::Bind;
use crate::seccomp::Filter;
use rustix::fd::OwnedFd;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Everything about a cell, decided before the clone: the child only carries it out.
pub struct CellSpec {
    pub start: Start,
    pub world: World,
    pub filter: Filter,
    pub domain: DomainRules,
    pub rlimits: Vec<(Resource, u64)>,
    /// The payload's number inside is not the one that payloads have: a library that tells by its
    /// number whether it was forked sees that whoever is resumed from an image of it was.
    pub uncommon_number: bool,
    /// Pin to the first N of the CPUs that the caller may use.
    pub cpus: Option<u32>,
    /// stdin of the payload; `None` is an empty one.
    pub stdin: Option<OwnedFd>,
    /// Descriptor 3 of the payload: params.
    pub params: OwnedFd,
    /// A folder of a cgroup v2 to be born into.
    pub cgroup: Option<OwnedFd>,
}

/// What the payload becomes.
pub enum Start {
    Execute(Exec),
    /// A payload that was loaded before, in this folder.
    Resume {
        stage: Rc<Stage>,
        cwd: PathBuf,
    },
}

impl Start {
    pub(super) fn cwd(&self) -> &Path {
        match self {
            Start::Execute(exec) => &exec.cwd,
            Start::Resume { cwd, .. } => cwd,
        }
    }
}

/// The program to run, ready for execve.
pub struct Exec {
    pub program: CString,
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: PathBuf,
}

pub enum World {
    Namespaces(NamespaceSpec),
    /// No namespaces: the payload sees the host's paths, held by Landlock.
    Bare {
        ids: Option<Ids>,
    },
}

pub struct NamespaceSpec {
    pub ids: Ids,
    pub nodes: Vec<Node>,
    pub scratch: Scratch,
    /// Folders inside the cell that are writable, empty, on scratch; the supervisor gets a
    /// descriptor of each, in this order.
    pub staging: Vec<PathBuf>,
    pub hostname: String,
    pub network: NetworkSpace,
    /// The caller may clone mounts before it gives up its rights.
    pub privileged_mounts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkSpace {
    /// Loopback only, with the DNS stub.
    Private,
    /// Loopback only, with every address on it, and a listener for each of these ports.
    Brokered { ports: Vec<u16> },
}

/// The host's ids that the cell's one id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
}

pub struct Scratch {
    pub bytes: u64,
    pub inodes: u64,
}

/// One thing in the new root, made in order.
pub enum Node {
    Dir(PathBuf),
    Symlink {
        at: PathBuf,
        to: PathBuf,
    },
    File {
        at: PathBuf,
        content: Vec<u8>,
    },
    /// A file of the new root, shown over another one that is there already.
    Cover {
        at: PathBuf,
        with: PathBuf,
    },
    Bind(Bind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Processes,
    OpenFiles,
    Core,
    FileSize,
    LockedMemory,
    MessageQueues,
}
