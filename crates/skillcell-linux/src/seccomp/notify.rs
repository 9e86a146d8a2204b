//! The supervisor's end of seccomp notification.

use super::bpf::{AllowList, Verdict};
use super::memory;
use crate::sys::{check, last_errno};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawData {
    nr: i32,
    arch: u32,
    instruction_pointer: u64,
    args: [u64; 6],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawNotification {
    id: u64,
    pid: u32,
    flags: u32,
    data: RawData,
}

#[repr(C)]
struct RawResponse {
    id: u64,
    val: i64,
    error: i32,
    flags: u32,
}

const RECV: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const ID_VALID: libc::c_ulong = 0x4008_2102;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const SYNC_WAKE_UP: u64 = 1;
const CONTINUE: u32 = 1;

/// Where denied, watched and recorded calls arrive.
pub struct Listener {
    fd: OwnedFd,
    list: AllowList,
}

/// One call of the skill that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Notification {
    id: u64,
    /// As the supervisor sees it.
    pub pid: u32,
    pub nr: i64,
    pub args: [u64; 6],
}

/// What came of waiting for a call.
#[derive(Debug, Clone, Copy)]
pub enum Received {
    Call(Notification),
    /// None, this time: a signal came, or the task went away before its call could be read.
    Nothing,
    /// There will be none any more.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel decides, as if nobody had asked. Only for calls that some other mechanism holds:
    /// the arguments can change after they were looked at.
    Continue,
    Errno(i32),
}

impl Listener {
    pub(crate) fn new(fd: OwnedFd, list: AllowList) -> Self {
        Listener { fd, list }
    }

    /// What the allow list says of a call.
    pub fn verdict(&self, call: &Notification) -> Verdict {
        self.list.verdict(call.nr, &call.args)
    }

    /// Answers on the waiting task's CPU (Linux 6.6): a tenth of the cost. Older kernels do without.
    pub fn prefer_sync_wakeup(&self) -> bool {
        // SAFETY: SET_FLAGS takes a number.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) }.into()).is_ok()
    }

    /// Waits for the next call.
    pub fn receive(&self) -> rustix::io::Result<Received> {
        let mut raw = RawNotification::default();
        // SAFETY: RECV fills one zeroed struct of the size that its number encodes.
        if unsafe { libc::ioctl(self.fd.as_raw_fd(), RECV, &raw mut raw) } == -1 {
            return match last_errno() {
                // It went away before it could be read, or there is nobody left to wait for.
                Errno::NOENT if self.deserted()? => Ok(Received::Over),
                Errno::NOENT | Errno::INTR => Ok(Received::Nothing),
                errno => Err(errno),
            };
        }
        Ok(Received::Call(Notification {
            id: raw.id,
            pid: raw.pid,
            nr: raw.data.nr.into(),
            args: raw.data.args,
        }))
    }

    /// Whether the last task under the filter is gone. Then RECV no longer waits (newer kernels),
    /// and asking it again would be a busy loop.
    fn deserted(&self) -> rustix::io::Result<bool> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::empty())];
        match poll(&mut fds, Some(&Timespec::default())) {
            Ok(_) => Ok(fds[0].revents().contains(PollFlags::HUP)),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    pub fn answer(&self, notification: &Notification, answer: Answer) -> rustix::io::Result<()> {
        let (error, flags) = match answer {
            Answer::Continue => (0, CONTINUE),
            Answer::Errno(errno) => (-errno, 0),
        };
        let response = RawResponse {
            id: notification.id,
            val: 0,
            error,
            flags,
        };
        // SAFETY: SEND reads one struct of the size that its number encodes.
        match check(unsafe { libc::ioctl(self.fd.as_raw_fd(), SEND, &response) }.into()) {
            Ok(_) | Err(Errno::NOENT) => Ok(()), // the caller died meanwhile
            Err(errno) => Err(errno),
        }
    }

    /// Whether the notification still waits, so that what was read belongs to it and not to a
    /// process that took its number.
    pub fn still_waits(&self, notification: &Notification) -> bool {
        // SAFETY: ID_VALID reads one u64.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), ID_VALID, &notification.id) }.into())
            .is_ok()
    }

    /// A NUL-terminated string of the waiting process, at most `max` bytes. For records only.
    pub fn read_string(&self, call: &Notification, address: u64, max: usize) -> Option<Vec<u8>> {
        // Most are short, and what is not asked for need not be copied.
        let mut short = [0; 256];
        let length = short.len().min(max);
        let read = self.read_into(call, address, &mut short[..length], |read| {
            read.contains(&0)
        })?;
        if let Some(end) = short[..read].iter().position(|b| *b == 0) {
            return Some(short[..end].to_vec());
        }
        if read < length {
            return None; // the mapping ends before the string does
        }
        for length in [4096, max] {
            let mut bytes = self.read_some(call, address, length.min(max))?;
            if let Some(end) = bytes.iter().position(|b| *b == 0) {
                bytes.truncate(end);
                return Some(bytes);
            }
            if bytes.len() < length.min(max) {
                return None;
            }
        }
        None
    }

    /// Bytes of the waiting process. For records only.
    pub fn read_bytes(&self, call: &Notification, address: u64, len: usize) -> Option<Vec<u8>> {
        self.read_some(call, address, len)
            .filter(|bytes| bytes.len() == len)
    }

    /// As many bytes of the waiting process as there are, up to `max`. For records only.
    pub fn read_some(&self, call: &Notification, address: u64, max: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; max];
        let read = self.read_into(call, address, &mut bytes, |_| false)?;
        bytes.truncate(read);
        Some(bytes)
    }

    /// Of the memory that the task has now: what it executed, or shares with others, since an earlier
    /// call is of no matter, so nothing may be kept open between two calls.
    fn read_into(
        &self,
        call: &Notification,
        address: u64,
        bytes: &mut [u8],
        enough: fn(&[u8]) -> bool,
    ) -> Option<usize> {
        let read = memory::read(call.pid, address, bytes, enough)?;
        // It is this task's memory, and not that of one that took its number.
        self.still_waits(call).then_some(read)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
