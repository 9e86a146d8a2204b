//! Memory of a task that waits for an answer.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Fills `bytes` as far as there is memory; `None` where there is none at this address.
///
/// By the task's number, each time anew. A descriptor of `/proc/PID/mem` is cheaper for many reads, but
/// belongs to the memory and not to the task: a thread that executes a program takes its leader's
/// number, and where another process shares the old memory, that one would go on to be read.
///
/// `enough`: whether less than asked for will do.
pub(super) fn read(
    pid: u32,
    address: u64,
    bytes: &mut [u8],
    enough: fn(&[u8]) -> bool,
) -> Option<usize> {
    match copy(pid, address, bytes) {
        Ok(read) if read == bytes.len() || enough(&bytes[..read]) => Some(read),
        // What the task may not read itself (memory that is only written, or executed) the kernel
        // still takes as an argument, so it must be readable here. Hosts that don't have the call, or
        // don't allow it, are served likewise.
        _ => read_by_force(pid, address, bytes),
    }
}

fn copy(pid: u32, address: u64, bytes: &mut [u8]) -> rustix::io::Result<usize> {
    let here = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let there = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    let pid = i32::try_from(pid).map_err(|_| Errno::SRCH)?;
    // SAFETY: the kernel writes at most the length of `bytes`, which is borrowed mutably, to its
    // start; the other address is of the other process and is checked by the kernel.
    let read = unsafe { libc::process_vm_readv(pid, &here, 1, &there, 1, 0) };
    usize::try_from(read).map_err(|_| crate::sys::last_errno())
}

fn read_by_force(pid: u32, address: u64, bytes: &mut [u8]) -> Option<usize> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(format!("/proc/{pid}/mem"), flags, Mode::empty()).ok()?;
    let memory = File::from(opened);
    let mut filled = 0;
    while filled < bytes.len() {
        let at = address.checked_add(filled as u64)?;
        match memory.read_at(&mut bytes[filled..], at) {
            Ok(0) | Err(_) => break,
            Ok(n) => filled += n,
        }
    }
    (filled > 0).then_some(filled)
}
