//! Small system calls that `rustix` doesn't wrap, or wraps as unsafe.

use crate::error::{During, LinuxError, Result, Step};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::io::Write;

/// Turns the -1 convention of libc into a result.
pub(crate) fn check(ret: libc::c_long) -> rustix::io::Result<libc::c_long> {
    if ret == -1 {
        Err(last_errno())
    } else {
        Ok(ret)
    }
}

pub(crate) fn last_errno() -> Errno {
    Errno::from_raw_os_error(
        std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO),
    )
}

/// A pipe whose ends are closed on exec.
pub fn pipe_pair() -> Result<(OwnedFd, OwnedFd)> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).during(Step::Pipe)
}

/// A file in memory that nobody can change any more, opened for reading from its start.
pub fn sealed_memfd(name: &str, content: &[u8]) -> Result<OwnedFd> {
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .during(Step::Memfd)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(content)
        .map_err(|e| LinuxError::io(Step::Memfd, &e))?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )
    .during(Step::Memfd)?;
    // A second open gives a description of its own: read-only and at offset 0.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .during(Step::Memfd)
}

pub fn set_nonblocking(fd: impl AsFd) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd.as_fd())?;
    rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)
}

/// SIGKILL to exactly this process, never to a later one with the same number.
pub fn kill_by_pidfd(pidfd: impl AsFd) -> rustix::io::Result<()> {
    match rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL) {
        Err(Errno::SRCH) => Ok(()),
        other => other,
    }
}

/// Takes ownership of a descriptor number that the kernel has just returned.
pub(crate) fn own(raw: libc::c_long) -> OwnedFd {
    // SAFETY: callers pass the return value of a system call that made a new descriptor, which
    // nothing else in this process knows of yet.
    unsafe { OwnedFd::from_raw_fd(raw as RawFd) }
}

/// `fork` by system call: the process is single-threaded wherever this is used.
pub(crate) fn fork() -> rustix::io::Result<libc::pid_t> {
    // SAFETY: the caller runs in a single-threaded process, so no lock can be held by a thread
    // that doesn't exist in the child; the child goes on with an exact copy of memory.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })?;
    Ok(pid as libc::pid_t)
}

pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes any code, runs no destructors, and does not return.
    unsafe { libc::_exit(code) }
}

pub(crate) fn prctl(option: libc::c_int, arg: libc::c_ulong) -> rustix::io::Result<()> {
    // SAFETY: used only with options whose argument is a number, never a pointer.
    check(unsafe { libc::prctl(option, arg, 0, 0, 0) }.into()).map(drop)
}

pub(crate) fn close_range(first: u32) -> rustix::io::Result<()> {
    // SAFETY: closing descriptors is memory-safe; the caller has just arranged those below `first`
    // and executes another program next.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) }).map(drop)
}

pub(crate) fn dup_to(from: BorrowedFd<'_>, to: RawFd) -> rustix::io::Result<()> {
    if from.as_raw_fd() == to {
        // dup2 onto itself would leave close-on-exec set.
        // SAFETY: F_SETFD takes a number; the descriptor is borrowed and so open.
        return check(unsafe { libc::fcntl(to, libc::F_SETFD, 0) }.into()).map(drop);
    }
    // SAFETY: `to` is one of 0..=4, which the caller owns by arrangement.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }.into()).map(drop)
}

/// Sleeps until a signal comes.
pub(crate) fn pause() {
    // SAFETY: takes nothing and touches no memory.
    unsafe { libc::pause() };
}

pub(crate) fn set_ids(uid: u32, gid: u32) -> rustix::io::Result<()> {
    // By system call: libc's wrappers would signal threads that don't exist in a raw clone.
    // SAFETY: all arguments are numbers.
    unsafe {
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))?;
    }
    Ok(())
}

pub(crate) fn clear_groups() -> rustix::io::Result<()> {
    // SAFETY: a count of 0 reads nothing from the pointer.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) })
        .map(drop)
}

/// Sets close-on-exec on `first` and everything above it.
pub(crate) fn mark_cloexec_from(first: u32) -> rustix::io::Result<()> {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: changes a flag of descriptors, nothing in memory.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        )
    })
    .map(drop)
}

/// `sendmsg` with one descriptor, and numbers in the argument registers that it doesn't use.
pub(crate) fn send_descriptor(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fd: BorrowedFd<'_>,
    spare: [u32; 3],
) -> rustix::io::Result<()> {
    #[repr(C, align(8))]
    struct Space([u8; 24]);
    let mut space = Space([0; 24]);
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: an all-zero msghdr is valid; every pointer put into it outlives the call, the space
    // holds one header and one descriptor (CMSG_SPACE(4) is 24), and nothing is written back.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut space.0).cast();
        message.msg_controllen = space.0.len();
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(fd.as_raw_fd());
        libc::syscall(
            libc::SYS_sendmsg,
            socket.as_raw_fd(),
            &raw const message,
            libc::MSG_NOSIGNAL,
            libc::c_ulong::from(spare[0]),
            libc::c_ulong::from(spare[1]),
            libc::c_ulong::from(spare[2]),
        )
    };
    check(sent).map(|_| ())
}

/// Lets another thread's waiting calls be interrupted from now on, instead of being made again.
pub fn allow_interrupts() -> rustix::io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the action is all zeros (no flags, so no SA_RESTART) but for a handler that does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        check(libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()).into())?;
    }
    Ok(())
}

/// Interrupts a thread of this process that `allow_interrupts` was called in.
pub fn interrupt_thread(tid: u32) {
    let pid = std::process::id();
    // SAFETY: tgkill takes three numbers. A thread that is gone needs no interruption.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, libc::SIGURG) };
}

/// A descriptor that becomes readable when a child ends; SIGCHLD is blocked for it.
pub(crate) fn child_signals() -> rustix::io::Result<OwnedFd> {
    // SAFETY: the set is emptied before use, and lives across both calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        Ok(own(check(
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC).into(),
        )?))
    }
}

/// Tells when children end, and reaps them.
pub struct EndedChildren(OwnedFd);

/// SIGCHLD is blocked from here on.
pub fn ended_children() -> Result<EndedChildren> {
    child_signals().map(EndedChildren).during(Step::Init)
}

impl EndedChildren {
    /// Everybody who has ended, after the descriptor became readable.
    pub fn reap(&self) -> Vec<u32> {
        let mut drained = [0u8; 128];
        // Readable, or there is nothing to drain.
        rustix::io::read(&self.0, &mut drained).unwrap_or(0);
        let mut ended = Vec::new();
        while let Ok(Some((pid, _))) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
            ended.push(pid.as_raw_nonzero().get() as u32);
        }
        ended
    }
}

impl AsFd for EndedChildren {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor that becomes readable when the process is asked to end (SIGINT, SIGTERM, SIGHUP,
/// SIGQUIT). The signals are blocked from here on, so that a call is taken down in order.
pub fn termination_signals() -> Result<OwnedFd> {
    // SAFETY: the set is emptied before use, and lives across both calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::sigaddset(&raw mut set, signal);
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())
            .during(Step::Pipe)?;
        let fd = check(
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into(),
        )
        .during(Step::Pipe)?;
        Ok(own(fd))
    }
}
