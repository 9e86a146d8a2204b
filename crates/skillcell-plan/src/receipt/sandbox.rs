//! What holds each control in a `sandbox` cell. That namespaces can be had was checked before.

use super::{Mechanism, held, quota, record, seccomp, seccomp_notify};
use crate::model::{Limits, PlanNetwork};
use skillcell_core::{AuditLevel, Control, HostFacts};

pub(super) fn mechanism(
    control: Control,
    limits: &Limits,
    network: &PlanNetwork,
    audit: AuditLevel,
    host: &HostFacts,
) -> Mechanism {
    match control {
        Control::Identity => {
            held("user namespace, one unprivileged id, no capabilities, no_new_privs")
        }
        // Landlock is a second wall here: without it the mounts still hold.
        Control::Filesystem => {
            let mounts = "mount namespace with pivot_root, read-only mounts";
            match host.landlock_abi {
                0 => held(mounts),
                abi => held(format!("{mounts}, Landlock ABI {abi}")),
            }
        }
        Control::Network if network.is_closed() => held("network namespace with loopback only"),
        Control::Network => held(broker(network)),
        Control::HostProcesses => match host.landlock_abi {
            0..6 => held("pid namespace"),
            _ => held("pid namespace, Landlock signal scope"),
        },
        Control::Ipc => match host.landlock_abi {
            0..6 => held("ipc namespace, network namespace for abstract sockets"),
            _ => held("ipc namespace, network namespace and Landlock scope for abstract sockets"),
        },
        Control::Syscalls => seccomp(host, "seccomp allow list"),
        Control::Environment => held("declared variables only, by execve"),
        Control::Descriptors => held("close_range"),
        Control::Cleanup => held(quota::with_cgroup("pid namespace dies with its init", host)),
        Control::Denials => seccomp_notify(host, "seccomp notification and DNS stub"),
        Control::Timeout => held(quota::timeout(limits)),
        Control::Memory => held(quota::memory(
            limits,
            host,
            "supervisor watch over the pid namespace",
        )),
        Control::Processes => held(quota::processes(
            limits,
            host,
            "RLIMIT_NPROC in the user namespace",
        )),
        Control::Cpu => quota::cpu(limits, host),
        Control::Scratch => held(format!(
            "tmpfs size and inode count, {} and {}",
            limits.scratch, limits.scratch_inodes
        )),
        Control::Output => held(quota::output(limits)),
        Control::Audit => record(audit, host),
    }
}

fn broker(network: &PlanNetwork) -> String {
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let mut parts = vec![count(network.egress.len(), "rule")];
    if !network.deny.is_empty() {
        parts.push(format!("{} denied", network.deny.len()));
    }
    if network.inspects() {
        parts.push("TLS inspection".to_owned());
    }
    if !network.secrets.is_empty() {
        parts.push(count(network.secrets.len(), "secret"));
    }
    parts.push("budgets".to_owned());
    format!("network namespace, egress broker: {}", parts.join(", "))
}
