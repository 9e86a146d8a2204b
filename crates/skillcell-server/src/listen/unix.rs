//! The unix socket.
//!
//! One daemon per place: a lock beside the socket says whether its daemon lives, whatever became of
//! it. Who connects is told by the kernel.

use super::place::{Place, PlaceError};
use crate::caller::Caller;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, chmodat, flock, fstat, openat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("{path}: a daemon serves there already{}", .pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Taken { path: PathBuf, pid: Option<u32> },
    #[error("{path}: is no socket of ours, and would be replaced by one")]
    NotOurs { path: PathBuf },
    #[error("{path}: can't {step}: {source}")]
    Step {
        path: PathBuf,
        step: &'static str,
        source: io::Error,
    },
}

#[derive(Debug)]
pub struct UnixListen {
    listener: UnixListener,
    place: Place,
    allowed: BTreeSet<u32>,
    /// Held for as long as the daemon lives; the kernel lets go of it whatever ends the daemon.
    _lock: OwnedFd,
}

impl UnixListen {
    /// Serves at `path`: this user, root, and `allowed` besides.
    pub fn bind(path: &Path, allowed: BTreeSet<u32>) -> Result<UnixListen, SocketError> {
        let place = Place::open(path, !allowed.is_empty())?;
        let step = |step| {
            let path = path.to_owned();
            move |errno: Errno| SocketError::Step {
                path,
                step,
                source: errno.into(),
            }
        };
        let lock = lock(&place)?;
        match statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(step("look at it")(errno)),
            Ok(stat) => {
                // Its daemon is dead: we have the lock.
                let socket = FileType::from_raw_mode(stat.st_mode).is_socket();
                if !socket || stat.st_uid != geteuid().as_raw() {
                    return Err(SocketError::NotOurs {
                        path: path.to_owned(),
                    });
                }
                unlinkat(&place.folder, &place.name, AtFlags::empty())
                    .map_err(step("remove what a dead daemon left"))?;
            }
        }
        // By the folder's descriptor: it can't be swapped, and the path can't be too long.
        let inside = format!("/proc/self/fd/{}/{}", place.folder.as_raw_fd(), place.name);
        let listener = UnixListener::bind(inside)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|source| SocketError::Step {
                path: path.to_owned(),
                step: "listen",
                source,
            })?;
        let mode = if allowed.is_empty() { 0o600 } else { 0o666 };
        chmodat(
            &place.folder,
            &place.name,
            Mode::from_raw_mode(mode),
            AtFlags::empty(),
        )
        .map_err(step("set its mode"))?;
        Ok(UnixListen {
            listener,
            place,
            allowed,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// The next connection, and who it is; `None` for one who may not.
    pub(crate) fn accept(&self) -> io::Result<(UnixStream, Option<Caller>)> {
        let (stream, _) = self.listener.accept()?;
        let uid = rustix::net::sockopt::socket_peercred(&stream)?.uid;
        let caller = if uid == geteuid() || uid.is_root() {
            Some(Caller::Owner)
        } else if self.allowed.contains(&uid.as_raw()) {
            Some(Caller::Guest(format!("uid {}", uid.as_raw())))
        } else {
            None
        };
        stream.set_nonblocking(true)?;
        Ok((stream, caller))
    }

    /// Nobody finds the daemon any more.
    pub(crate) fn close(self) -> io::Result<()> {
        Ok(unlinkat(
            &self.place.folder,
            &self.place.name,
            AtFlags::empty(),
        )?)
    }
}

impl AsFd for UnixListen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// The lock of this place, or who has it. The file stays for ever: removing it would let two daemons
/// hold two locks of one name.
fn lock(place: &Place) -> Result<OwnedFd, SocketError> {
    let step = |step: &'static str| {
        let path = place.path.clone();
        move |errno: Errno| SocketError::Step {
            path,
            step,
            source: errno.into(),
        }
    };
    let name = format!("{}.lock", place.name);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(&place.folder, &name, flags, Mode::from_raw_mode(0o600))
        .map_err(step("open its lock"))?;
    let stat = fstat(&fd).map_err(step("look at its lock"))?;
    if stat.st_uid != geteuid().as_raw() || !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(SocketError::NotOurs {
            path: place.path.with_file_name(name),
        });
    }
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            // For the message only.
            std::fs::File::from(fd)
                .take(20)
                .read_to_string(&mut text)
                .unwrap_or_default();
            return Err(SocketError::Taken {
                path: place.path.clone(),
                pid: text.trim().parse().ok(),
            });
        }
        Err(errno) => return Err(step("lock it")(errno)),
    }
    let mut file = std::fs::File::from(fd);
    file.set_len(0)
        .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()))
        .map_err(|source| SocketError::Step {
            path: place.path.clone(),
            step: "write its lock",
            source,
        })?;
    Ok(file.into())
}
