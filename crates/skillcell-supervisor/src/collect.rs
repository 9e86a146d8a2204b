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
use std::path::Path;

/// Entries looked at per folder; scratch has an inode limit anyway.
const MAX_ENTRIES: usize = 20_000;

/// Copies what is granted, and records what the skill left beside it.
pub(crate) fn carry_out(
    outputs: &[OutputFolder],
    staging: &[OwnedFd],
    denials: &mut Denials,
) -> Result<(), CallError> {
    for (output, staged) in outputs.iter().zip(staging) {
        carry_folder(output, staged, denials).map_err(|source| CallError::Collect {
            path: output.host.clone(),
            source,
        })?;
    }
    Ok(())
}

fn carry_folder(output: &OutputFolder, staged: &OwnedFd, denials: &mut Denials) -> io::Result<()> {
    // The host's folder, by its name once and by descriptor from here on.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let host = rustix::fs::openat2(CWD, &output.host, flags, Mode::empty(), resolve)?;
    let wanted = |name: &OsStr| output.files.is_empty() || output.files.iter().any(|f| f == name);
    for name in entries(staged)? {
        let shown = output.host.join(&name);
        if !wanted(&name) {
            note(denials, &shown, Reason::OutputNotGranted);
            continue;
        }
        let whole_folder = output.files.is_empty();
        carry_entry(staged, &host, &name, &shown, whole_folder, denials, 0)?;
    }
    Ok(())
}

fn carry_entry(
    staged: &OwnedFd,
    host: &OwnedFd,
    name: &OsStr,
    shown: &Path,
    folders: bool,
    denials: &mut Denials,
    depth: usize,
) -> io::Result<()> {
    let stat = rustix::fs::statat(staged, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink >= 1 => copy_file(staged, host, name, stat.st_mode),
        FileType::Directory if folders && depth < 64 => {
            match rustix::fs::mkdirat(host, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            let (from, to) = (open_dir(staged, name)?, open_dir(host, name)?);
            for inner in entries(&from)? {
                let shown = shown.join(&inner);
                carry_entry(&from, &to, &inner, &shown, folders, denials, depth + 1)?;
            }
            Ok(())
        }
        // A mount point that the read grants left in the staging folder is an empty file or folder
        // and was handled above; links, pipes, sockets and devices never leave the cell.
        _ => {
            note(denials, shown, Reason::OutputNotRegular);
            Ok(())
        }
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

fn note(denials: &mut Denials, path: &Path, reason: Reason) {
    let hint = match reason {
        Reason::OutputNotGranted => format!(
            "the file was discarded; to keep it add --write {}",
            path.display()
        ),
        _ => "only regular files are carried out of a cell".to_owned(),
    };
    denials.record(
        DenialKind::Filesystem,
        &path.to_string_lossy(),
        reason,
        hint,
    );
}
