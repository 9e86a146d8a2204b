//! The folder of a bundle, as a descriptor that nothing below can lead out of.
//!
//! `openat2` with `RESOLVE_BENEATH` lets the kernel resolve links and refuse those that leave, in
//! one step: there is no moment between check and use. Files are opened without waiting, because a
//! pipe named manifest.yaml would otherwise wait for ever.

use crate::BundleError;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use skillcell_core::Location;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Attempts at a lookup that a rename elsewhere on the host can disturb.
const ATTEMPTS: usize = 16;

#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

impl Root {
    pub(crate) fn open(dir: &Path) -> Result<Self, BundleError> {
        let fail = |error| BundleError::Root {
            path: dir.to_owned(),
            error,
        };
        let path = std::fs::canonicalize(dir).map_err(fail)?;
        // The canonical path has no links; one that appears in it now is refused.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let fd = openat2(CWD, &path, flags, Mode::empty(), resolve).map_err(|e| fail(e.into()))?;
        Ok(Root { fd, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A folder below, for listing it. Links are not followed.
    pub(crate) fn open_dir(&self, relative: &Path) -> Result<OwnedFd, BundleError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        self.lookup(relative, flags, resolve)
            .map_err(|e| self.fail(relative, "open the folder", e))
    }

    /// A regular file below, and its size. Links are followed as long as they stay below.
    pub(crate) fn open_file(&self, relative: &Path) -> Result<(File, u64), BundleError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let fd = self.lookup(relative, flags, resolve).map_err(|e| match e {
            // What opening a socket says.
            Errno::NXIO => self.not_regular(relative, "a socket or a device"),
            _ => self.fail(relative, "open it", e),
        })?;
        let stat = fstat(&fd).map_err(|e| self.fail(relative, "read its type", e))?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                return Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(0)));
            }
            FileType::Directory => "a folder",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            _ => "a device",
        };
        Err(self.not_regular(relative, kind))
    }

    /// As [`Root::open_file`], with `None` where no such file exists. A link to nowhere is an error:
    /// somebody meant something to be there.
    pub(crate) fn open_if_present(&self, name: &str) -> Result<Option<(File, u64)>, BundleError> {
        match rustix::fs::statat(&self.fd, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            _ => self.open_file(Path::new(name)).map(Some),
        }
    }

    /// The text of a file that was opened here; one that is larger than `limit` isn't read.
    pub(crate) fn read_text(
        &self,
        relative: &Path,
        (file, size): (File, u64),
        limit: u64,
    ) -> Result<String, BundleError> {
        let bytes = self.read(relative, (file, size), limit)?;
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|b| **b == b'\n').count() as u64;
            let start = valid
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1);
            let column = 1 + String::from_utf8_lossy(&valid[start..]).chars().count() as u64;
            let path = self.path.join(relative);
            BundleError::NotUtf8 {
                path,
                location: Location { line, column },
            }
        })
    }

    pub(crate) fn read(
        &self,
        relative: &Path,
        (file, size): (File, u64),
        limit: u64,
    ) -> Result<Vec<u8>, BundleError> {
        let too_large = |size| BundleError::TooLarge {
            path: self.path.join(relative),
            size,
            limit,
        };
        if size > limit {
            return Err(too_large(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // The size was true a moment ago; the file may have grown.
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| BundleError::File {
                path: self.path.join(relative),
                step: "read it",
                error,
            })?;
        if bytes.len() as u64 > limit {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(bytes)
    }

    fn lookup(
        &self,
        relative: &Path,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        let mut result = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            result = openat2(&self.fd, relative, flags, Mode::empty(), resolve);
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        result
    }

    pub(crate) fn fail(&self, relative: &Path, step: &'static str, error: Errno) -> BundleError {
        BundleError::File {
            path: self.path.join(relative),
            step,
            error: error.into(),
        }
    }

    fn not_regular(&self, relative: &Path, kind: &'static str) -> BundleError {
        BundleError::NotRegular {
            path: self.path.join(relative),
            kind,
        }
    }
}
