//! What this host can enforce. Quick questions for every call; `thorough` also tries.

use crate::cgroup;
use crate::clone::{CELL_NAMESPACES, Forked, fork_into};
use crate::host::Caller;
use crate::sys::{self, check};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use skillcell_core::{HostFacts, Missing};
use std::fs;
use std::path::Path;

/// Asks the kernel what it has, without making anything. A cell that then can't be made is
/// refused all the same, by the step that failed.
pub fn quick() -> HostFacts {
    let caller = Caller::current().ok();
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    HostFacts {
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        root: rustix::process::geteuid().is_root(),
        privileged: caller.is_some_and(|c| c.changes_ids),
        namespaces: namespaces_look_possible(caller),
        landlock_abi: landlock_abi(),
        seccomp: fs::exists("/proc/sys/kernel/seccomp").unwrap_or(false) || prctl_seccomp(),
        seccomp_notify: notification_sizes_known(),
        cgroup: cgroup::discover(),
        cpus,
        container: container(),
    }
}

/// As `quick`, and makes the namespaces for real, in a child.
pub fn thorough() -> HostFacts {
    let mut facts = quick();
    if facts.namespaces.is_ok() {
        facts.namespaces = try_namespaces();
    }
    facts
}

fn sysctl(name: &str) -> Option<i64> {
    fs::read_to_string(Path::new("/proc/sys").join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn namespaces_look_possible(caller: Option<Caller>) -> Result<(), Missing> {
    if caller.and_then(Caller::outside_ids).is_none() {
        return Err(Missing {
            what: "the caller is root without CAP_SETUID and CAP_SETGID, so a cell would be root outside".into(),
            fix: "run as an ordinary user, or keep these capabilities (`--cap-add SETUID,SETGID` for a container)".into(),
        });
    }
    if sysctl("user/max_user_namespaces") == Some(0) {
        return Err(Missing {
            what: "user namespaces are switched off (user.max_user_namespaces is 0)".into(),
            fix: "sudo sysctl -w user.max_user_namespaces=15000".into(),
        });
    }
    let root = rustix::process::geteuid().is_root();
    if !root && sysctl("kernel/unprivileged_userns_clone") == Some(0) {
        return Err(Missing {
            what: "user namespaces are switched off for ordinary users (kernel.unprivileged_userns_clone is 0)".into(),
            fix: "sudo sysctl -w kernel.unprivileged_userns_clone=1".into(),
        });
    }
    Ok(())
}

/// Makes all namespaces and a mount in a child, as a cell would.
fn try_namespaces() -> Result<(), Missing> {
    let failed = |errno: i32| {
        let apparmor = sysctl("kernel/apparmor_restrict_unprivileged_userns") == Some(1);
        let text = crate::error::errno_text(errno);
        if apparmor && !rustix::process::geteuid().is_root() {
            Missing {
                what: format!("AppArmor restricts user namespaces of ordinary users ({text})"),
                fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or install the AppArmor profile for skillcell".into(),
            }
        } else if container().is_some() {
            Missing {
                what: format!("the container around us forbids namespaces or mounts ({text})"),
                fix: "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`".into(),
            }
        } else {
            Missing {
                what: format!("namespaces can't be made ({text})"),
                fix: "sudo sysctl -w user.max_user_namespaces=15000".into(),
            }
        }
    };
    match fork_into(CELL_NAMESPACES, None) {
        Err(error) => Err(failed(error.errno)),
        Ok(Forked::Child) => {
            // Propagation, then a file system: the two things that are refused where cells are.
            use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
            let done = mount_change(
                "/",
                MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
            )
            .and_then(|()| mount("proc", "/proc", "proc", MountFlags::empty(), None));
            sys::exit_now(done.err().map_or(0, |e| e.raw_os_error() & 0xff))
        }
        Ok(Forked::Parent { pidfd, .. }) => {
            let status = waitid(
                WaitId::PidFd(rustix::fd::AsFd::as_fd(&pidfd)),
                WaitIdOptions::EXITED,
            );
            match status.ok().flatten().and_then(|s| s.exit_status()) {
                Some(0) => Ok(()),
                Some(errno) => Err(failed(errno)),
                None => Err(failed(libc::EIO)),
            }
        }
    }
}

/// The Landlock ABI of the kernel; 0 where it is missing or switched off.
fn landlock_abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with the VERSION flag the pointer must be null and the size 0; nothing is read.
    let ret = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            VERSION,
        )
    });
    ret.map_or(0, |abi| abi.try_into().unwrap_or(0))
}

fn prctl_seccomp() -> bool {
    // SAFETY: PR_GET_SECCOMP takes no arguments.
    check(unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) }.into()).is_ok()
}

fn notification_sizes_known() -> bool {
    const GET_NOTIF_SIZES: u32 = 3;
    let mut sizes = [0u16; 3];
    // SAFETY: GET_NOTIF_SIZES writes three 16-bit numbers.
    let known =
        check(unsafe { libc::syscall(libc::SYS_seccomp, GET_NOTIF_SIZES, 0, sizes.as_mut_ptr()) })
            .is_ok();
    // The structs that `notify` uses have exactly these sizes.
    known && sizes[0] == 80 && sizes[1] == 24
}

fn container() -> Option<String> {
    if Path::new("/.dockerenv").exists() {
        return Some("docker".into());
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("podman".into());
    }
    let text = fs::read_to_string("/run/systemd/container").ok()?;
    Some(text.trim().to_owned())
}
