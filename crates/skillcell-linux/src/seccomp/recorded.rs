//! Which allowed calls are handed to the supervisor to be recorded.

use libc::*;

/// How much of what is allowed goes through the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// What is denied, or could be.
    Denials,
    /// Also programs, files and connections.
    Security,
    /// Every call.
    Everything,
}

/// Calls that the `security` record is made from: few enough that programs don't feel it.
pub(super) const SECURITY: &[c_long] = &[
    SYS_execve,
    SYS_execveat,
    SYS_exit_group,
    SYS_openat,
    SYS_truncate,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchmodat,
    SYS_fchmodat2,
    SYS_fchownat,
    SYS_connect,
    SYS_bind,
    #[cfg(target_arch = "x86_64")]
    SYS_open,
    #[cfg(target_arch = "x86_64")]
    SYS_creat,
    #[cfg(target_arch = "x86_64")]
    SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    SYS_rename,
    #[cfg(target_arch = "x86_64")]
    SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    SYS_link,
    #[cfg(target_arch = "x86_64")]
    SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    SYS_chown,
    #[cfg(target_arch = "x86_64")]
    SYS_lchown,
];
