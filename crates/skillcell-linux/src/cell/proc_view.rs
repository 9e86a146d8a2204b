//! What of `/proc` a cell sees: its own processes, and an allow list of harmless facts. The rest
//! of the kernel's files are covered, whatever this kernel calls them.

use crate::error::{During, LinuxError, Result, Step};
use crate::mount::NewRoot;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use std::path::{Path, PathBuf};

/// Read by libc, interpreters and thread pools; none tells about other processes of the host.
const VISIBLE: &[&str] = &[
    "self",
    "thread-self",
    "mounts",
    "net",
    "sys",
    "cpuinfo",
    "meminfo",
    "stat",
    "uptime",
    "loadavg",
    "version",
    "filesystems",
];

/// Covers for files and folders: an empty file and an empty folder of the new root.
const EMPTY_FILE: &str = "/.cover/file";
const EMPTY_DIR: &str = "/.cover/dir";

/// Mounts a private, read-only `/proc` of the current pid namespace.
pub(super) fn mount(root: &NewRoot) -> Result<()> {
    // Read-only as a whole: `/proc/sys` and the skill's own knobs alike.
    root.mount_fs("proc", &[], Path::new("/proc"), true, Step::Proc)?;
    root.dir(Path::new(EMPTY_DIR))?;
    root.file(Path::new(EMPTY_FILE), b"")?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = rustix::fs::openat(root.fd(), "proc", flags, Mode::empty()).during(Step::Proc)?;
    let (empty_file, empty_dir) = (Path::new(EMPTY_FILE), Path::new(EMPTY_DIR));
    for entry in Dir::read_from(&top).during(Step::Proc)? {
        let entry = entry.during(Step::Proc)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name.starts_with('.')
            || name.bytes().all(|b| b.is_ascii_digit())
            || VISIBLE.contains(&name)
        {
            continue;
        }
        let target = PathBuf::from("/proc").join(name);
        match entry.file_type() {
            FileType::Directory => root.cover(empty_dir, &target)?,
            FileType::RegularFile => root.cover(empty_file, &target)?,
            FileType::Symlink => {} // leads into what is visible or covered
            _ => return Err(LinuxError::at(Step::Proc, target, rustix::io::Errno::INVAL)),
        }
    }
    Ok(())
}
