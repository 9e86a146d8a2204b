//! Paths as the skill names them, looked at from outside, to tell which writes the cell denies.
//! For the record only: the kernel decides, and by then the path may be another.

use rustix::fd::AsRawFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A system call that writes, and where.
pub(crate) struct Writes {
    place: Place,
    kind: Kind,
}

/// What a call says about where it writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// A folder's descriptor and the address of a path.
    Path(i32, u64),
    /// An open file.
    File(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Opens or creates: denied wherever the place is read-only.
    Open,
    /// Makes a new name: an existing one is another error.
    Make,
    /// Removes or renames: a missing one is another error.
    Remove,
    /// Changes mode, owner, times or extended attributes: likewise.
    Attributes,
}

const AT_FDCWD: i32 = -100;

impl Writes {
    pub(crate) fn of(name: &str, args: &[u64; 6]) -> Option<Writes> {
        let at = |dir: usize, path: usize| Place::Path(args[dir] as i32, args[path]);
        let cwd = |path: usize| Place::Path(AT_FDCWD, args[path]);
        let file = Place::File(args[0] as i32);
        let (kind, place) = match name {
            "openat" => (Kind::Open, at(0, 1)),
            "open" | "creat" | "truncate" => (Kind::Open, cwd(0)),
            "mkdirat" => (Kind::Make, at(0, 1)),
            "mkdir" => (Kind::Make, cwd(0)),
            "symlinkat" => (Kind::Make, at(1, 2)),
            "symlink" | "link" => (Kind::Make, cwd(1)),
            "linkat" => (Kind::Make, at(2, 3)),
            "unlinkat" => (Kind::Remove, at(0, 1)),
            "unlink" | "rmdir" => (Kind::Remove, cwd(0)),
            "renameat" | "renameat2" => (Kind::Remove, at(0, 1)),
            "rename" => (Kind::Remove, cwd(0)),
            "chmod" | "chown" | "lchown" | "utime" | "utimes" | "setxattr" | "lsetxattr"
            | "removexattr" | "lremovexattr" => (Kind::Attributes, cwd(0)),
            // Without a path they are about the descriptor itself.
            "utimensat" | "futimesat" if args[1] == 0 => (Kind::Attributes, file),
            "fchmodat" | "fchmodat2" | "fchownat" | "utimensat" | "futimesat" => {
                (Kind::Attributes, at(0, 1))
            }
            "fchmod" | "fchown" | "fsetxattr" | "fremovexattr" => (Kind::Attributes, file),
            _ => return None,
        };
        Some(Writes { place, kind })
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Whether only a mount keeps it from happening: Landlock doesn't know these.
    pub(crate) fn needs_mounts(&self) -> bool {
        self.kind == Kind::Attributes
    }
}

/// One path of one process.
pub(crate) struct Target {
    pid: u32,
    /// Absolute inside the cell; links are not resolved.
    path: PathBuf,
}

impl Target {
    /// `None` where nobody can say which folder the path begins in.
    pub(crate) fn new(pid: u32, dir: i32, path: &[u8]) -> Option<Target> {
        let path = Path::new(OsStr::from_bytes(path));
        let base = if path.is_absolute() {
            PathBuf::from("/")
        } else {
            let link = if dir == AT_FDCWD {
                format!("/proc/{pid}/cwd")
            } else {
                format!("/proc/{pid}/fd/{dir}")
            };
            std::fs::read_link(link).ok()?
        };
        Some(Target {
            pid,
            path: normal(&base.join(path)),
        })
    }

    /// Where links lead from here, as the skill would see it; `None` where there is nothing.
    pub(crate) fn followed(pid: u32, path: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
        let root = rustix::fs::open(
            format!("/proc/{pid}/root"),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let there = match rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let name = std::fs::read_link(format!("/proc/self/fd/{}", there.as_raw_fd()))?;
        Ok(Some(name.into_os_string().into_encoded_bytes()))
    }

    /// The file that a descriptor is open on.
    pub(crate) fn of_file(pid: u32, fd: i32) -> Option<Target> {
        let path = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
        // Pipes and sockets have names that are no paths.
        path.is_absolute().then_some(Target { pid, path })
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.path.into_os_string().into_encoded_bytes()
    }

    pub(crate) fn shown(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// In a namespace: whether the mount that the path leads to is read-only.
    pub(crate) fn is_read_only(&self, write: &Writes) -> bool {
        if self.path.starts_with("/proc") {
            // Seen from outside `/proc/self` is another; all of it is read-only but open files.
            return !self.path.components().any(|c| c.as_os_str() == "fd");
        }
        let Ok(root) = rustix::fs::open(
            format!("/proc/{}/root", self.pid),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        ) else {
            return false;
        };
        let look = |path: &Path| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve).ok()
        };
        let there = look(&self.path);
        match (write.kind, &there) {
            (Kind::Make, Some(_)) | (Kind::Remove | Kind::Attributes, None) => return false,
            _ => {}
        }
        let Some(fd) = there.or_else(|| look(self.path.parent()?)) else {
            return false;
        };
        let plain = rustix::fs::fstat(&fd).is_ok_and(|s| {
            matches!(
                FileType::from_raw_mode(s.st_mode),
                FileType::RegularFile | FileType::Directory
            )
        });
        plain
            && rustix::fs::fstatvfs(&fd).is_ok_and(|s| s.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    /// Without namespaces: whether the path is outside every writable folder.
    pub(crate) fn is_outside(&self, writable: &[PathBuf], write: &Writes) -> bool {
        let there = rustix::fs::statat(CWD, &self.path, rustix::fs::AtFlags::empty()).is_ok();
        if (write.kind == Kind::Make && there)
            || (write.kind == Kind::Remove && !there)
            || self.path.starts_with("/dev")
        {
            return false;
        }
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let resolved = real(&self.path)
            .or_else(|| Some(real(self.path.parent()?)?.join(self.path.file_name()?)));
        resolved.is_some_and(|path| !writable.iter().any(|w| path.starts_with(w)))
    }
}

/// Removes `.` and `..` by name.
fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            _ => {}
        }
    }
    clean
}
