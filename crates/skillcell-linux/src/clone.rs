//! `clone3`, as a fork into new namespaces.

use crate::error::{During, Result, Step};
use crate::sys::{check, own};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

pub(crate) const CELL_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

pub(crate) enum Forked {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Forks into new namespaces, and into a cgroup where one is given. The process must be
/// single-threaded: the child goes on with a copy of all memory.
pub(crate) fn fork_into(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> Result<Forked> {
    let mut pidfd: RawFd = -1;
    let mut args = CloneArgs {
        flags: namespaces | CLONE_PIDFD,
        pidfd: &raw mut pidfd as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM and with no stack given this is a fork: the child returns here on a
    // copy of this stack. `args` has the size that is passed, and `pidfd` outlives the call.
    let ret =
        check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<CloneArgs>()) })
            .during(Step::Clone)?;
    if ret == 0 {
        return Ok(Forked::Child);
    }
    Ok(Forked::Parent {
        pid: ret as i32,
        pidfd: own(pidfd.into()),
    })
}
