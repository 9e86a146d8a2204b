//! What holds each control at the `process` level, where there are no namespaces: Landlock is the
//! only wall around files and processes, so without it there is none.

use super::{Mechanism, held, missing, quota, record, seccomp, seccomp_notify};
use crate::model::Limits;
use skillcell_core::{AuditLevel, Control, HostFacts};

pub(super) fn mechanism(
    control: Control,
    limits: &Limits,
    audit: AuditLevel,
    host: &HostFacts,
) -> Mechanism {
    match control {
        Control::Identity => identity(host),
        Control::Filesystem => match host.landlock_abi {
            0 => Err(missing(
                "without Landlock nothing keeps files apart at the process level",
                "use Linux 5.13 or later with `landlock` in the kernel's lsm= list",
            )),
            abi => held(format!("Landlock ABI {abi}")),
        },
        Control::Network => match host.landlock_abi {
            0..4 => seccomp(host, "seccomp: no sockets"),
            _ => seccomp(host, "seccomp: no sockets, Landlock: no TCP"),
        },
        // Any domain keeps ptrace out; signals only since ABI 6.
        Control::HostProcesses => match host.landlock_abi {
            0..6 => Err(missing(
                "signals to other processes of the same user need Landlock ABI 6",
                "use Linux 6.12 or later",
            )),
            _ => held("Landlock domain against ptrace, Landlock signal scope"),
        },
        // Abstract sockets are out of reach where there are no sockets.
        Control::Ipc => seccomp(host, "seccomp: no sockets, no System V IPC"),
        Control::Syscalls => seccomp(host, "seccomp allow list"),
        Control::Environment => held("declared variables only, by execve"),
        Control::Descriptors => held("close_range"),
        Control::Cleanup => held(quota::with_cgroup("monitor as child subreaper", host)),
        Control::Denials => seccomp_notify(host, "seccomp notification"),
        Control::Timeout => held(quota::timeout(limits)),
        Control::Memory => held(quota::memory(
            limits,
            host,
            "supervisor watch over the descendants",
        )),
        // RLIMIT_NPROC counts all processes of an id: exact only where the id is the call's own.
        Control::Processes if host.root && host.privileged => held(quota::processes(
            limits,
            host,
            "RLIMIT_NPROC of a private id",
        )),
        Control::Processes => held(quota::processes(
            limits,
            host,
            "supervisor watch and RLIMIT_NPROC",
        )),
        Control::Cpu => quota::cpu(limits, host),
        Control::Scratch => held(format!(
            "supervisor watch, RLIMIT_FSIZE, {}",
            limits.scratch
        )),
        Control::Output => held(quota::output(limits)),
        Control::Audit => record(audit, host),
    }
}

fn identity(host: &HostFacts) -> Mechanism {
    match (host.root, host.privileged) {
        (true, true) => held("unprivileged id, no capabilities, no_new_privs"),
        (false, _) => held("caller's id, no capabilities, no_new_privs"),
        (true, false) => Err(missing(
            "root without CAP_SETUID and CAP_SETGID can't become an unprivileged id",
            "run as an ordinary user",
        )),
    }
}
