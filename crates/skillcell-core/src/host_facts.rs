use crate::Control;
use serde::Serialize;
use std::path::PathBuf;

/// What this host can enforce, found by probing, never by assuming. The plan is made from these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    pub kernel: String,
    /// The effective user is root (uid 0 in its own namespace).
    pub root: bool,
    /// The caller holds CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID in its own user namespace.
    pub privileged: bool,
    /// All namespaces of a sandbox cell can be made, tried in a child. Else: why not.
    pub namespaces: Result<(), Missing>,
    /// 0 where Landlock is missing or off.
    pub landlock_abi: u32,
    pub seccomp: bool,
    /// Denied calls can be handed to the supervisor.
    pub seccomp_notify: bool,
    pub cgroup: CgroupFacts,
    pub cpus: u32,
    /// Inside docker, podman or the like.
    pub container: Option<String>,
}

/// Why something can't be had, and the exact command that changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub what: String,
    pub fix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CgroupFacts {
    pub memory: Option<CgroupVersion>,
    pub pids: Option<CgroupVersion>,
    pub cpu: Option<CgroupVersion>,
    /// Where cells are made. A cell has a folder in each, and is a member of all of them.
    pub parents: Vec<CgroupParent>,
    pub missing: Option<Missing>,
}

/// A folder that cells' cgroups can be made in, and what they are limited by there. On hybrid hosts
/// some controllers are in v2 and the others in v1, so no folder is taken to have them all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CgroupParent {
    pub path: PathBuf,
    pub version: CgroupVersion,
    pub controllers: Vec<CgroupController>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupController {
    Memory,
    Pids,
    Cpu,
}

impl CgroupController {
    pub const ALL: [CgroupController; 3] = [
        CgroupController::Memory,
        CgroupController::Pids,
        CgroupController::Cpu,
    ];

    /// As the kernel spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            CgroupController::Memory => "memory",
            CgroupController::Pids => "pids",
            CgroupController::Cpu => "cpu",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    V1,
    V2,
}

impl CgroupVersion {
    pub fn as_str(self) -> &'static str {
        match self {
            CgroupVersion::V1 => "cgroup v1",
            CgroupVersion::V2 => "cgroup v2",
        }
    }
}

impl CgroupFacts {
    /// Adds a folder, and says of each of its controllers where it is held.
    pub fn add(&mut self, parent: CgroupParent) {
        for controller in &parent.controllers {
            let slot = match controller {
                CgroupController::Memory => &mut self.memory,
                CgroupController::Pids => &mut self.pids,
                CgroupController::Cpu => &mut self.cpu,
            };
            *slot = Some(parent.version);
        }
        self.parents.push(parent);
    }

    pub fn for_control(&self, control: Control) -> Option<CgroupVersion> {
        match control {
            Control::Memory => self.memory,
            Control::Processes => self.pids,
            Control::Cpu => self.cpu,
            _ => None,
        }
    }
}
