//! The other end, for `skillcell run --daemon`: one call over the unix socket.

use crate::api::{ApiError, Call, RunRequest, Unfit, own_environment, own_folder};
use crate::line::Line;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::geteuid;
use skillcell_supervisor::{Interaction, Outcome};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no daemon answers at {path}: {source}")]
    None { path: PathBuf, source: io::Error },
    #[error(
        "the daemon at {path} is user {uid}'s, who would get your variables and choose the result"
    )]
    Foreign { path: PathBuf, uid: u32 },
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("the working folder can't be told: {0}")]
    Folder(io::Error),
    #[error("{}", .0.message)]
    Answer(ApiError),
    /// The call may have been made.
    #[error("the daemon went away before it answered: {0}")]
    Lost(io::Error),
    #[error("the daemon's answer can't be read: {0}")]
    Garbled(String),
}

/// A connection to a daemon that may be trusted with a call.
pub struct Client {
    stream: UnixStream,
    /// The daemon is another user's: it gets no variables, and takes none.
    guest: bool,
}

/// How the daemon's place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// By the caller, who trusts whoever serves there.
    ByCaller,
    /// By where this user's own daemon would be.
    ByRule,
}

impl Client {
    /// The daemon at `path` must be this user's own or root's, or named by the caller. Root's calls
    /// go to root's daemon only.
    pub fn connect(path: &Path, named: Named) -> Result<Client, ClientError> {
        let stream = open(path).map_err(|source| ClientError::None {
            path: path.to_owned(),
            source,
        })?;
        let peer =
            rustix::net::sockopt::socket_peercred(&stream).map_err(|errno| ClientError::None {
                path: path.to_owned(),
                source: errno.into(),
            })?;
        let guest = peer.uid != geteuid();
        if guest && (geteuid().is_root() || (!peer.uid.is_root() && named == Named::ByRule)) {
            return Err(ClientError::Foreign {
                path: path.to_owned(),
                uid: peer.uid.as_raw(),
            });
        }
        Ok(Client { stream, guest })
    }

    /// Makes the call with this process's variables and folder, unless as a guest, and tells `ui` of its events. When
    /// `interrupt` becomes readable the call is ended, and its envelope awaited.
    pub fn run(
        self,
        call: &Call,
        ui: &dyn Interaction,
        interrupt: BorrowedFd<'_>,
    ) -> Result<Outcome, ClientError> {
        let mut request = RunRequest::from_call(call)?;
        if !self.guest {
            request.environment = Some(own_environment());
            request.folder = Some(own_folder().map_err(ClientError::Folder)?);
        }
        let body = serde_json::to_vec(&request).map_err(|e| ClientError::Garbled(e.to_string()))?;
        let head = format!(
            "POST /v1/run HTTP/1.1\r\nHost: daemon\r\nContent-Type: application/json\r\nAccept: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut message = head.into_bytes();
        message.extend_from_slice(&body);
        // A daemon that refuses may do so before it has read everything: its answer counts.
        let sent = (&self.stream).write_all(&message);
        let input = Interruptible {
            stream: &self.stream,
            interrupt,
            interrupted: false,
        };
        let mut input = BufReader::with_capacity(64 << 10, input);
        match (answer(&mut input, ui), sent) {
            (Err(ClientError::Lost(_)), Err(error)) => Err(ClientError::Lost(error)),
            (answer, _) => answer,
        }
    }
}

fn open(path: &Path) -> io::Result<UnixStream> {
    // A path of a socket has 107 bytes at most; its folder's descriptor makes any path short.
    if path.as_os_str().len() < 100 {
        return UnixStream::connect(path);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, parent, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    UnixStream::connect(short.join(name))
}

/// Reads, and passes an interrupt on as the end of what we send.
struct Interruptible<'a> {
    stream: &'a UnixStream,
    interrupt: BorrowedFd<'a>,
    interrupted: bool,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !self.interrupted {
            let mut fds = [
                PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.interrupt, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if !fds[1].revents().is_empty() {
                self.interrupted = true;
                self.stream.shutdown(Shutdown::Write)?;
            } else if !fds[0].revents().is_empty() {
                break;
            }
        }
        self.stream.read(into)
    }
}

fn answer(input: &mut impl BufRead, ui: &dyn Interaction) -> Result<Outcome, ClientError> {
    let lost = |error: io::Error| ClientError::Lost(error);
    let status = text(input)?;
    let (mut length, mut chunked) = (0u64, false);
    loop {
        let field = text(input)?;
        if field.is_empty() {
            break;
        }
        let (name, value) = field.split_once(':').unwrap_or((&field, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value
                .trim()
                .parse()
                .map_err(|_| ClientError::Garbled(field.clone()))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = true;
        }
    }
    if !chunked {
        let mut body = Vec::new();
        input
            .take(length.min(1 << 20))
            .read_to_end(&mut body)
            .map_err(lost)?;
        #[derive(serde::Deserialize)]
        struct Failure {
            error: ApiError,
        }
        let failure: Failure = serde_json::from_slice(&body)
            .map_err(|_| ClientError::Garbled(status.chars().take(200).collect()))?;
        return Err(ClientError::Answer(failure.error));
    }
    let mut bytes = Vec::new();
    loop {
        let size = text(input)?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| ClientError::Garbled(size))?;
        if size == 0 {
            return Err(ClientError::Garbled(
                "there is no envelope in it".to_owned(),
            ));
        }
        bytes.resize(size + 2, 0);
        input.read_exact(&mut bytes).map_err(lost)?;
        let line: Line<'_> = serde_json::from_slice(&bytes[..size])
            .map_err(|e| ClientError::Garbled(e.to_string()))?;
        match (line.event, line.envelope) {
            ("end", Some(envelope)) => {
                return serde_json::from_str(envelope.get())
                    .map_err(|e| ClientError::Garbled(e.to_string()));
            }
            ("error", _) => {
                return Err(match line.error {
                    Some(error) => ClientError::Answer(error),
                    None => ClientError::Garbled("an error without words".to_owned()),
                });
            }
            _ => line.tell(ui),
        }
    }
}

/// A line without its end.
fn text(input: &mut impl BufRead) -> Result<String, ClientError> {
    let mut line = String::new();
    let read = input
        .take(64 << 10)
        .read_line(&mut line)
        .map_err(ClientError::Lost)?;
    if read == 0 {
        return Err(ClientError::Lost(ErrorKind::UnexpectedEof.into()));
    }
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(line)
}
