//! Who the caller is, and which id a cell gets outside.

use crate::caps::{self, libc_cap};
use crate::error::Result;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The unprivileged id that cells of a root caller have outside: the kernel's overflow id, which
/// owns nothing.
pub const UNPRIVILEGED_ID: u32 = 65534;

/// The id inside every cell.
pub const CELL_ID: u32 = 1000;

/// Private ids for cells without namespaces of a root caller start here: far above what systems hand
/// out, and one per supervisor, so that RLIMIT_NPROC counts one call.
const FIRST_PRIVATE_ID: u32 = 0x5C00_0000;

/// The private id of this supervisor.
pub fn private_id() -> u32 {
    FIRST_PRIVATE_ID + std::process::id()
}

/// Whether an id that owns nothing can reach and read a path.
pub fn reachable(path: &Path) -> bool {
    path.ancestors().all(|p| {
        std::fs::metadata(p)
            .is_ok_and(|m| m.mode() & 0o001 != 0 || (!m.is_dir() && m.mode() & 0o004 != 0))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// Holds CAP_SETUID and CAP_SETGID: may give a cell another id than its own.
    pub changes_ids: bool,
    /// Holds CAP_SYS_ADMIN: may clone mount trees that the cell's own id could not reach.
    pub clones_mounts: bool,
}

impl Caller {
    pub fn current() -> Result<Caller> {
        Ok(Caller {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            changes_ids: caps::holds(libc_cap::SETUID)? && caps::holds(libc_cap::SETGID)?,
            clones_mounts: caps::holds(libc_cap::SYS_ADMIN)?,
        })
    }

    /// The host's ids for a cell, which are never root's. `None` for a root that may not change
    /// ids: its cells would have to be root outside.
    pub fn outside_ids(self) -> Option<(u32, u32)> {
        if self.changes_ids {
            Some((UNPRIVILEGED_ID, UNPRIVILEGED_ID))
        } else if self.uid != 0 {
            Some((self.uid, self.gid))
        } else {
            None
        }
    }
}
