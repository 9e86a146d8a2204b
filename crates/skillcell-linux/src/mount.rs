//! Building the cell's root. Sources are opened once, without symlinks, and used as descriptors
//! after that; targets are created in a tmpfs that nothing else can see.

use crate::error::{During, LinuxError, Result, Step};
use crate::sys::check;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use std::path::{Path, PathBuf};

/// A host path that the cell sees.
#[derive(Debug, Clone)]
pub struct Bind {
    /// Absolute, without symlinks.
    pub source: PathBuf,
    /// Absolute inside the cell.
    pub target: PathBuf,
    pub access: BindAccess,
    /// Device and inode when the path was checked; the mount must be of that very object.
    pub pin: Option<(u64, u64)>,
    /// A root caller's files are shown as the cell's own, so that private ones can be read.
    pub as_own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindAccess {
    ReadOnly,
    /// For build cells: the environment that is being made.
    ReadWrite,
    /// A device node: no other flags make sense on it.
    Device,
}

const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NOSUID: u64 = 0x2;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
const AT_RECURSIVE: u32 = 0x8000;
const AT_EMPTY_PATH: u32 = 0x1000;

#[repr(C)]
#[derive(Default)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

fn mount_setattr(
    mount: BorrowedFd<'_>,
    recursive: bool,
    attr: &MountAttr,
) -> rustix::io::Result<()> {
    let flags = AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a NUL-terminated empty string, and `attr` has the size that is passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            attr,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// A detached copy of a host tree, with the flags that the cell gets. `idmap` is a user namespace
/// that shows the caller's files as the cell's own.
pub(crate) fn clone_tree(bind: &Bind, idmap: Option<BorrowedFd<'_>>) -> Result<OwnedFd> {
    let path = open_exact(&bind.source)?;
    if let Some(pin) = bind.pin {
        let stat = rustix::fs::fstat(&path).during_at(Step::Open, &bind.source)?;
        if (stat.st_dev, stat.st_ino) != pin {
            return Err(LinuxError::at(Step::Changed, &bind.source, Errno::STALE));
        }
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(&path, "", flags).during_at(Step::Mount, &bind.source)?;
    let set = match bind.access {
        BindAccess::ReadOnly => MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        BindAccess::ReadWrite => MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        BindAccess::Device => MOUNT_ATTR_NOSUID,
    };
    let attr = MountAttr {
        attr_set: set,
        propagation: libc::MS_PRIVATE,
        ..MountAttr::default()
    };
    mount_setattr(tree.as_fd(), true, &attr).during_at(Step::ReadOnly, &bind.source)?;
    if let (true, Some(userns)) = (bind.as_own, idmap) {
        let attr = MountAttr {
            attr_set: MOUNT_ATTR_IDMAP,
            userns_fd: userns.as_raw_fd() as u64,
            ..MountAttr::default()
        };
        // A file system that can't: files show their real owner, and only public ones can be
        // read. Nothing is weaker for it.
        mount_setattr(tree.as_fd(), false, &attr).unwrap_or(());
    }
    Ok(tree)
}

/// Opens a path by its name alone: a symlink anywhere in it is an error.
pub(crate) fn open_exact(path: &Path) -> Result<OwnedFd> {
    rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .during_at(Step::Open, path)
}

/// The root being built. It is the working folder as well.
pub(crate) struct NewRoot {
    fd: OwnedFd,
}

impl NewRoot {
    /// Mounts an empty tmpfs over `/` of the current mount namespace. The old root stays reachable
    /// for paths until `enter`.
    pub(crate) fn mount() -> Result<NewRoot> {
        use rustix::mount::{
            FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, fsconfig_create,
            fsconfig_set_string, fsmount, fsopen, mount_change,
        };
        // Nothing that happens here may show outside.
        mount_change(
            "/",
            MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
        )
        .during(Step::Propagation)?;
        let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).during(Step::NewRoot)?;
        for (key, value) in [("size", "4m"), ("nr_inodes", "4096"), ("mode", "0755")] {
            fsconfig_set_string(fs.as_fd(), key, value).during(Step::NewRoot)?;
        }
        fsconfig_create(fs.as_fd()).during(Step::NewRoot)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let fd =
            fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).during(Step::NewRoot)?;
        move_mount(&fd, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .during(Step::NewRoot)?;
        // For calls that know no other folder to start from.
        rustix::process::fchdir(&fd).during(Step::NewRoot)?;
        Ok(NewRoot { fd })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Creates a folder and those above it; fine if it is there.
    pub(crate) fn dir(&self, path: &Path) -> Result<()> {
        self.below(path, |at| {
            match rustix::fs::mkdirat(&self.fd, at, Mode::from_raw_mode(0o755)) {
                Err(Errno::EXIST) => Ok(()),
                other => other,
            }
        })
    }

    pub(crate) fn file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = self.below(path, |at| {
            rustix::fs::openat(&self.fd, at, flags, Mode::from_raw_mode(0o644))
        })?;
        let mut written = 0;
        while written < content.len() {
            written += rustix::io::write(&fd, &content[written..]).during_at(Step::Create, path)?;
        }
        Ok(())
    }

    pub(crate) fn symlink(&self, path: &Path, to: &Path) -> Result<()> {
        self.below(path, |at| rustix::fs::symlinkat(to, &self.fd, at))
    }

    /// Makes something at a path; the folder that it is in is there already for most.
    fn below<T>(&self, path: &Path, make: impl Fn(&Path) -> rustix::io::Result<T>) -> Result<T> {
        let at = relative(path);
        let made = match (make(at), path.parent()) {
            (Err(Errno::NOENT), Some(parent)) if parent != path => {
                self.dir(parent)?;
                make(at)
            }
            (made, _) => made,
        };
        made.during_at(Step::Create, path)
    }

    /// Puts a detached tree at `target`, which is created to fit.
    pub(crate) fn attach(&self, tree: &OwnedFd, target: &Path) -> Result<()> {
        let stat = rustix::fs::fstat(tree).during_at(Step::Mount, target)?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
            self.dir(target)?;
        } else if rustix::fs::statat(&self.fd, relative(target), AtFlags::SYMLINK_NOFOLLOW).is_err()
        {
            self.file(target, b"")?;
        }
        move_mount(
            tree,
            "",
            &self.fd,
            relative(target),
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .during_at(Step::Mount, target)
    }

    /// Shows a folder of the new root a second time.
    pub(crate) fn rebind(&self, from: &Path, target: &Path) -> Result<()> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(&self.fd, relative(from), flags).during_at(Step::Mount, target)?;
        self.attach(&tree, target)
    }

    /// As `rebind`, over something that is there already and of the same kind. In one call, because
    /// a cell has dozens of them.
    pub(crate) fn cover(&self, with: &Path, target: &Path) -> Result<()> {
        rustix::mount::mount_bind(relative(with), relative(target)).during_at(Step::Mount, target)
    }

    /// Makes the new root the root, drops the old one, and makes the root folder itself read-only.
    pub(crate) fn enter(self) -> Result<()> {
        rustix::process::pivot_root(".", ".").during(Step::Pivot)?;
        // The old root is now stacked under the current directory.
        rustix::mount::unmount(".", rustix::mount::UnmountFlags::DETACH).during(Step::Pivot)?;
        rustix::process::chdir("/").during(Step::Pivot)?;
        // The whole tmpfs, not this one mount of it: folders of it are shown in other places too.
        use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_flag, fspick};
        let fs = fspick(
            &self.fd,
            "",
            FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH,
        )
        .during(Step::ReadOnly)?;
        fsconfig_set_flag(fs.as_fd(), "ro").during(Step::ReadOnly)?;
        fsconfig_reconfigure(fs.as_fd()).during(Step::ReadOnly)
    }

    /// A new file system of the kernel at `target`; gives its top folder.
    pub(crate) fn mount_fs(
        &self,
        kind: &str,
        options: &[(&str, &str)],
        target: &Path,
        read_only: bool,
        step: Step,
    ) -> Result<OwnedFd> {
        use rustix::mount::{
            FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string,
            fsmount, fsopen,
        };
        self.dir(target)?;
        let fs = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).during(step)?;
        for (key, value) in options {
            fsconfig_set_string(fs.as_fd(), *key, *value).during(step)?;
        }
        fsconfig_create(fs.as_fd()).during(step)?;
        let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        if read_only {
            attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        }
        let fd = fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).during(step)?;
        move_mount(
            &fd,
            "",
            &self.fd,
            relative(target),
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .during(step)?;
        Ok(fd)
    }
}

pub(crate) fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
