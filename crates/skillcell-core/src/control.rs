use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One restriction of a plan. Each shows up in the receipt with the mechanism that held it, or the
/// call is refused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// User ids and capabilities: nothing inside is privileged outside.
    Identity,
    /// Only granted files can be read or written.
    Filesystem,
    /// Only granted hosts can be reached.
    Network,
    /// Processes of the host can't be seen, signalled or traced.
    HostProcesses,
    /// System V and POSIX IPC, abstract sockets.
    Ipc,
    /// Only listed system calls.
    Syscalls,
    /// Only declared and granted variables.
    Environment,
    /// No inherited file descriptors.
    Descriptors,
    /// Nothing outlives the call.
    Cleanup,
    /// What was denied is reported.
    Denials,
    /// Wall clock.
    Timeout,
    /// Memory of the call as a whole.
    Memory,
    /// Processes and threads of the call as a whole.
    Processes,
    /// CPU bandwidth of the call as a whole.
    Cpu,
    /// Bytes and inodes of the writable scratch.
    Scratch,
    /// Bytes of result, stdout and stderr.
    Output,
    /// What the call did is recorded outside, at the level that was asked for.
    Audit,
}

impl Control {
    pub const ALL: [Control; 17] = [
        Control::Identity,
        Control::Filesystem,
        Control::Network,
        Control::HostProcesses,
        Control::Ipc,
        Control::Syscalls,
        Control::Environment,
        Control::Descriptors,
        Control::Cleanup,
        Control::Denials,
        Control::Timeout,
        Control::Memory,
        Control::Processes,
        Control::Cpu,
        Control::Scratch,
        Control::Output,
        Control::Audit,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Control::Identity => "identity",
            Control::Filesystem => "filesystem",
            Control::Network => "network",
            Control::HostProcesses => "host_processes",
            Control::Ipc => "ipc",
            Control::Syscalls => "syscalls",
            Control::Environment => "environment",
            Control::Descriptors => "descriptors",
            Control::Cleanup => "cleanup",
            Control::Denials => "denials",
            Control::Timeout => "timeout",
            Control::Memory => "memory",
            Control::Processes => "processes",
            Control::Cpu => "cpu",
            Control::Scratch => "scratch",
            Control::Output => "output",
            Control::Audit => "audit",
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Control {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Control::ALL
            .into_iter()
            .find(|c| c.as_str() == s)
            .ok_or_else(|| {
                let names: Vec<_> = Control::ALL.iter().map(|c| c.as_str()).collect();
                format!("unknown control `{s}`: use one of {}", names.join(", "))
            })
    }
}

/// One line of the receipt: what held a control on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    pub control: Control,
    /// For people: names the kernel feature and its values.
    pub mechanism: String,
    pub status: EnforcementStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnforcementStatus {
    Enforced,
    /// Weaker than asked for, because the operator said so by name.
    Degraded,
}
