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
    /// Where cells are made: one folder for v2, one per controller for v1.
    pub parents: Vec<PathBuf>,
    pub missing: Option<Missing>,
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
    pub fn for_control(&self, control: Control) -> Option<CgroupVersion> {
        match control {
            Control::Memory => self.memory,
            Control::Processes => self.pids,
            Control::Cpu => self.cpu,
            _ => None,
        }
    }
}
