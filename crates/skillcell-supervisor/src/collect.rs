//! Carries granted outputs out of the cell. The staging folder is full of whatever the skill made
//! of it: only regular files are taken, opened beneath the folder without following any link, and
//! they appear at the host path by a rename.

use crate::CallError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use skillcell_backend::OutputFolder;
use skillcell_core::{DenialKind, Denials, Reason};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Entries looked at per folder; scratch has an inode limit anyway.
const MAX_ENTRIES: usize = 20_000;
/// Folders within folders that are carried out.
const MAX_DEPTH: usize = 64;

/// Copies what is granted, and records what the skill left beside it. `shown` are paths of the host
/// that were mounted for reading: in a staging folder they leave a place-holder.
pub(crate) fn carry_out(
    outputs: &[OutputFolder],
    staging: &[OwnedFd],
    shown: &[PathBuf],
    max_bytes: u64,
    denials: &mut Denials,
) -> Result<(), CallError> {
    let mut carrier = Carrier {
        shown,
        room: max_bytes,
        denials,
    };
    for (output, staged) in outputs.iter().zip(staging) {
        carrier
            .folder(output, staged)
            .map_err(|source| CallError::Collect {
                path: output.host.clone(),
                source,
            })?;
    }
    Ok(())
}

struct Carrier<'a> {
    shown: &'a [PathBuf],
    /// Bytes that may still be carried out: holes make files larger than the scratch they are in.
    room: u64,
    denials: &'a mut Denials,
}

impl Carrier<'_> {
    fn folder(&mut self, output: &OutputFolder, staged: &OwnedFd) -> io::Result<()> {
        // The host's folder, by its name once and by descriptor from here on.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let host = rustix::fs::openat2(CWD, &output.host, flags, Mode::empty(), resolve)?;
        for name in entries(staged)? {
            let path = output.host.join(&name);
            let whole = output.files.is_empty();
            if whole || output.files.contains(&name) {
                self.entry(staged, &host, &name, &path, whole, 0)?;
            } else if !self.shown.iter().any(|shown| shown.starts_with(&path)) {
                self.note(&path, Reason::OutputNotGranted);
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        staged: &OwnedFd,
        host: &OwnedFd,
        name: &OsStr,
        path: &Path,
        folders: bool,
        depth: usize,
    ) -> io::Result<()> {
        if self.shown.iter().any(|shown| shown == path) {
            return Ok(()); // the host's own file was mounted here
        }
        let stat = rustix::fs::statat(staged, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                self.room = self.room.checked_sub(stat.st_size as u64).ok_or_else(|| {
                    io::Error::new(
                        io::ErrorKind::FileTooLarge,
                        "the outputs are larger than the skill's scratch",
                    )
                })?;
                let done = copy_file(staged, host, name, stat.st_mode);
                self.unless_in_the_way(done, path)
            }
            FileType::Directory if folders && depth < MAX_DEPTH => {
                match rustix::fs::mkdirat(host, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                let from = open_dir(staged, name)?;
                let to = match open_dir(host, name) {
                    Ok(to) => to,
                    Err(error) => return self.unless_in_the_way(Err(error), path),
                };
                for inner in entries(&from)? {
                    let path = path.join(&inner);
                    self.entry(&from, &to, &inner, &path, folders, depth + 1)?;
                }
                Ok(())
            }
            // Links, pipes, sockets and devices never leave the cell.
            _ => {
                self.note(path, Reason::OutputNotRegular);
                Ok(())
            }
        }
    }

    /// Something of another kind at the host's path stays as it is: a denial, not a failure.
    fn unless_in_the_way(&mut self, done: io::Result<()>, path: &Path) -> io::Result<()> {
        let in_the_way = [
            Errno::NOTDIR,
            Errno::ISDIR,
            Errno::LOOP,
            Errno::NOTEMPTY,
            Errno::EXIST,
        ];
        match done {
            Err(error)
                if in_the_way
                    .iter()
                    .any(|e| error.raw_os_error() == Some(e.raw_os_error())) =>
            {
                self.note(path, Reason::OutputNotRegular);
                Ok(())
            }
            other => other,
        }
    }

    fn note(&mut self, path: &Path, reason: Reason) {
        let hint = match reason {
            Reason::OutputNotGranted => format!(
                "the file was discarded; to keep it add --write {}",
                path.display()
            ),
            _ => "only regular files are carried out of a cell, and never over something of another kind".to_owned(),
        };
        self.denials.record(
            DenialKind::Filesystem,
            &path.to_string_lossy(),
            reason,
            hint,
        );
    }
}

/// Opens a folder beneath another: a link in its place is an error.
fn open_dir(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(
        parent,
        name,
        flags,
        Mode::empty(),
        beneath(),
    )?)
}

fn beneath() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn entries(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&readable)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
        if names.len() > MAX_ENTRIES {
            return Err(io::Error::other("the skill made too many files"));
        }
    }
    names.sort();
    Ok(names)
}

/// To a temporary name beside the target, then renamed over it: the host never sees half a file,
/// and a link at the target is replaced, not followed.
fn copy_file(staged: &OwnedFd, host: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = rustix::fs::openat2(staged, name, flags, Mode::empty(), beneath())?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&from)?.st_mode).is_file() {
        return Err(io::Error::other(
            "the output changed while it was carried out",
        ));
    }
    let mut random = [0u8; 8];
    getrandom(&mut random)?;
    let temporary = OsString::from(format!(".skillcell-{:016x}", u64::from_le_bytes(random)));
    // No set-id bits, no write for others; executable stays executable.
    let permissions = if mode & 0o111 != 0 { 0o755 } else { 0o644 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = rustix::fs::openat(host, &temporary, flags, Mode::from_raw_mode(permissions))?;
    let done = transfer(File::from(from), File::from(to)).and_then(|()| {
        rustix::fs::renameat(host.as_fd(), &temporary, host.as_fd(), name).map_err(io::Error::from)
    });
    if done.is_err() {
        // The first error is the one to tell; a leftover is removed where that is possible.
        rustix::fs::unlinkat(host, &temporary, AtFlags::empty()).unwrap_or(());
    }
    done
}

fn getrandom(buffer: &mut [u8; 8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(buffer)
}

fn transfer(mut from: File, mut to: File) -> io::Result<()> {
    io::copy(&mut from, &mut to)?;
    to.flush()?;
    to.sync_all()
}
