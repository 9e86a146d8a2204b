//! The folder that a socket is in. Whoever can rename things there decides who answers, so it must
//! be nobody's but ours.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("{path}: {source}")]
    Folder {
        path: PathBuf,
        source: rustix::io::Errno,
    },
    #[error("{path}: belongs to user {owner}, who could put another socket there")]
    Owner { path: PathBuf, owner: u32 },
    #[error("{path}: others can write to it, and could put another socket there")]
    Writable { path: PathBuf },
    #[error("{path}: this is no name for a socket")]
    Name { path: PathBuf },
}

/// Where the daemon of this user is: `SKILLCELL_SOCKET`, else `/run/skillcell` for root, else the
/// user's runtime folder, else a folder in `/tmp`.
pub fn default_socket() -> PathBuf {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(path) = variable("SKILLCELL_SOCKET") {
        return path;
    }
    let uid = geteuid();
    let folder = if uid.is_root() {
        PathBuf::from("/run/skillcell")
    } else if let Some(folder) = variable("XDG_RUNTIME_DIR") {
        folder.join("skillcell")
    } else {
        PathBuf::from(format!("/tmp/skillcell-{}", uid.as_raw()))
    };
    folder.join("daemon.sock")
}

/// A folder of ours, and the name in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: OwnedFd,
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Place {
    /// Opens the folder of `socket`, made if it is missing. `others` says whether other users are
    /// to get through it.
    pub(super) fn open(socket: &Path, others: bool) -> Result<Place, PlaceError> {
        let name = || PlaceError::Name {
            path: socket.to_owned(),
        };
        let file = socket
            .file_name()
            .and_then(|n| n.to_str())
            .ok_or_else(name)?;
        let path = match socket.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let error = |source| PlaceError::Folder {
            path: path.clone(),
            source,
        };
        let mode = Mode::from_raw_mode(if others { 0o711 } else { 0o700 });
        let made = match mkdirat(CWD, &path, mode) {
            Ok(()) => true,
            Err(rustix::io::Errno::EXIST) => false,
            Err(errno) => return Err(error(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty()).map_err(error)?;
        let stat = fstat(&folder).map_err(error)?;
        let owner = stat.st_uid;
        if owner != geteuid().as_raw() && owner != 0 {
            return Err(PlaceError::Owner { path, owner });
        }
        if made {
            // Whatever the umask took away.
            fchmod(&folder, mode).map_err(error)?;
        } else if stat.st_mode & 0o022 != 0 {
            return Err(PlaceError::Writable { path });
        }
        debug_assert!(FileType::from_raw_mode(stat.st_mode).is_dir());
        Ok(Place {
            folder,
            name: file.to_owned(),
            path: socket.to_owned(),
        })
    }
}
