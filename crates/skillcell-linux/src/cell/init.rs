//! What PID 1 of a cell becomes: a process with an empty environment and none of the supervisor's
//! memory, that waits. It reports the payload's end and takes the cell down with itself.

use crate::error::{During, LinuxError, Result, Step};
use crate::{procfs, sys};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::process::{Pid, Signal, WaitOptions};
use std::ffi::CString;

/// The name that `main` recognises before it does anything else.
pub const INIT_ARGV0: &str = "skillcell-init";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// PID 1: when it exits, the kernel kills the namespace.
    Namespace,
    /// A child subreaper: it kills its descendants itself.
    Bare,
}

const STATUS: RawFd = 3;
const LIFELINE: RawFd = 4;

/// Replaces the calling process by init. Returns only if that failed.
pub(super) fn execute(
    binary: &OwnedFd,
    mode: Mode,
    payload: i32,
    status: &OwnedFd,
    lifeline: &OwnedFd,
    null: &OwnedFd,
) -> Result<()> {
    let high = |fd: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, 16).during(Step::Init);
    let (binary, status, lifeline, null) = (
        high(binary.as_fd())?,
        high(status.as_fd())?,
        high(lifeline.as_fd())?,
        high(null.as_fd())?,
    );
    // Not closed: the language's start-up would open them again, through the filter, and a
    // supervisor that is gone can't answer.
    for stdio in 0..=2 {
        sys::dup_to(null.as_fd(), stdio).during(Step::Init)?;
    }
    sys::dup_to(status.as_fd(), STATUS).during(Step::Init)?;
    sys::dup_to(lifeline.as_fd(), LIFELINE).during(Step::Init)?;
    sys::mark_cloexec_from(LIFELINE as u32 + 1).during(Step::Init)?;

    let number = CString::new(payload.to_string()).unwrap_or_default();
    let word = match mode {
        Mode::Namespace => c"namespace",
        Mode::Bare => c"bare",
    };
    let argv = [
        c"skillcell-init".as_ptr(),
        word.as_ptr(),
        number.as_ptr(),
        std::ptr::null(),
    ];
    let empty: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: the path is an empty string, both arrays end in NULL, and all strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            binary.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            empty.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    Err(LinuxError::new(Step::Init, sys::last_errno()))
}

/// Init's own main. `args` are those after the name.
pub fn init_main(args: &[String]) -> ! {
    let (mode, payload) = match args {
        [mode, payload] if mode == "namespace" => (Mode::Namespace, payload),
        [mode, payload] if mode == "bare" => (Mode::Bare, payload),
        _ => sys::exit_now(64),
    };
    let Some(payload) = payload.parse().ok().and_then(Pid::from_raw) else {
        sys::exit_now(64)
    };
    // SAFETY: `execute` put these two there just before.
    let (status, lifeline) = unsafe {
        (
            BorrowedFd::borrow_raw(STATUS),
            BorrowedFd::borrow_raw(LIFELINE),
        )
    };
    let children = match sys::child_signals() {
        Ok(fd) => fd,
        Err(_) => sys::exit_now(71),
    };
    watch(payload, status, lifeline, &children);
    if mode == Mode::Bare {
        kill_descendants();
    }
    sys::exit_now(0)
}

/// Returns when the payload has ended and was reported, or when the supervisor is gone.
fn watch(payload: Pid, status: BorrowedFd<'_>, lifeline: BorrowedFd<'_>, children: &OwnedFd) {
    loop {
        while let Ok(Some((pid, wait))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == payload {
                // If the supervisor is gone nobody needs to know.
                rustix::io::write(status, &wait.as_raw().to_le_bytes()).unwrap_or(0);
                return;
            }
        }
        let mut fds = [
            PollFd::new(children, PollFlags::IN),
            PollFd::new(&lifeline, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        let mut drained = [0u8; 128];
        rustix::io::read(children, &mut drained).unwrap_or(0);
    }
}

/// Kills until nothing is left. Stopping first keeps a fork bomb from outrunning the kills.
pub(super) fn kill_descendants() {
    let me = rustix::process::getpid().as_raw_nonzero().get() as u32;
    for round in 0..10_000u32 {
        let found = procfs::descendants(me);
        let signal = if round % 2 == 0 {
            Signal::STOP
        } else {
            Signal::KILL
        };
        for pid in &found {
            if let Some(pid) = Pid::from_raw(*pid as i32) {
                // A process that has gone already is what this is for.
                rustix::process::kill_process(pid, signal).unwrap_or(());
            }
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        if found.is_empty() {
            return;
        }
    }
}
