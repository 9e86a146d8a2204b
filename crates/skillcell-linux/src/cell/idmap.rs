//! A user namespace that exists only to be named in idmapped mounts: it shows the files of a root
//! caller as the cell's own. Nothing ever runs in it.

use crate::clone::{Forked, fork_into};
use crate::error::{During, LinuxError, Result, Step};
use crate::sys::{exit_now, kill_by_pidfd};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};

/// Maps the caller's on-disk ids (0) to the cell's outside ids.
pub(super) fn make(outside: super::Ids) -> Result<OwnedFd> {
    match fork_into(libc::CLONE_NEWUSER as u64, None)? {
        Forked::Child => {
            // Waits to be killed; dies with the supervisor.
            if crate::sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong).is_err() {
                exit_now(1);
            }
            loop {
                crate::sys::pause();
            }
        }
        Forked::Parent { pid, pidfd } => {
            let mapped = write_maps(pid, outside);
            let namespace = open(
                format!("/proc/{pid}/ns/user"),
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .during(Step::IdMappedMount);
            kill_by_pidfd(&pidfd).during(Step::IdMappedMount)?;
            rustix::process::waitid(
                rustix::process::WaitId::PidFd(rustix::fd::AsFd::as_fd(&pidfd)),
                rustix::process::WaitIdOptions::EXITED,
            )
            .during(Step::IdMappedMount)?;
            mapped?;
            namespace
        }
    }
}

fn write_maps(pid: i32, outside: super::Ids) -> Result<()> {
    for (file, id) in [("uid_map", outside.uid), ("gid_map", outside.gid)] {
        std::fs::write(format!("/proc/{pid}/{file}"), format!("0 {id} 1"))
            .map_err(|e| LinuxError::io(Step::IdMappedMount, &e))?;
    }
    Ok(())
}
