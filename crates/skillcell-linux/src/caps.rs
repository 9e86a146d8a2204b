//! Capabilities: all of them go, and none can come back.

use crate::error::{During, Result, Step};
use crate::sys::{check, prctl};
use rustix::io::Errno;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;
const LAST_POSSIBLE: u64 = 63;
// NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off and NO_CAP_AMBIENT_RAISE, each with its lock.
const SECUREBITS: u64 = 0b1110_1111;

/// Empties the bounding, ambient, inheritable, permitted and effective sets, and locks the
/// securebits so that uid 0 means nothing.
pub(crate) fn drop_all() -> Result<()> {
    drop_bounding()?;
    // SAFETY: the five arguments are numbers; CLEAR_ALL takes none.
    let cleared = unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    };
    check(cleared.into()).during(Step::Capabilities)?;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let empty = [Data {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: version 3 reads a header and two data elements, which live across the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &header, empty.as_ptr()) })
        .during(Step::Capabilities)?;
    Ok(())
}

/// Empties the bounding set, which takes a capability that changing ids may take away.
pub(crate) fn drop_bounding() -> Result<()> {
    // Needs CAP_SETPCAP, which an ordinary process at the `process` level doesn't have; there the
    // sets below are empty already and no_new_privs keeps them so.
    if holds(libc_cap::SETPCAP)? {
        prctl(libc::PR_SET_SECUREBITS, SECUREBITS).during(Step::Capabilities)?;
        for cap in 0..=LAST_POSSIBLE {
            match prctl(libc::PR_CAPBSET_DROP, cap) {
                Ok(()) => {}
                Err(Errno::INVAL) => break, // past the last capability of this kernel
                Err(errno) => return Err(errno).during(Step::Capabilities),
            }
        }
    }
    Ok(())
}

pub(crate) mod libc_cap {
    pub(crate) const SETGID: u32 = 6;
    pub(crate) const SETUID: u32 = 7;
    pub(crate) const SETPCAP: u32 = 8;
    pub(crate) const SYS_ADMIN: u32 = 21;
}

/// Whether the calling process has a capability in effect.
pub(crate) fn holds(cap: u32) -> Result<bool> {
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut data = [Data {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: version 3 writes two data elements, and two are there.
    check(unsafe { libc::syscall(libc::SYS_capget, &header, data.as_mut_ptr()) })
        .during(Step::Capabilities)?;
    Ok(data[(cap / 32) as usize].effective & (1 << (cap % 32)) != 0)
}
