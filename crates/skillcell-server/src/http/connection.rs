//! Requests of one connection, one after the other.

use super::head::Head;
use super::stream::{Stream, wait};
use crate::api::{ApiCode, ApiError};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

const MAX_HEAD: usize = 16 << 10;
/// What is read of a body that nobody wants, so that the answer isn't lost with the connection.
const MAX_SKIPPED: u64 = 1 << 20;
/// How long a client may take to read an answer.
const WRITE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// Between requests; `None`: for ever.
    pub(crate) idle: Option<Duration>,
    /// From the first byte of a request to its last.
    pub(crate) request: Duration,
}

pub(crate) struct Connection {
    pub(crate) stream: Stream,
    bytes: Vec<u8>,
    deadlines: Deadlines,
    /// Of the request that is being read.
    deadline: Instant,
}

pub(crate) enum Next {
    Request(Head),
    /// The client has gone, or has been silent for too long, or the daemon drains.
    End,
    /// What came is no request; the connection can't go on after the answer.
    Bad(ApiError),
}

enum Filled {
    Some,
    End,
    Late,
    Draining,
}

impl Connection {
    pub(crate) fn new(stream: Stream, deadlines: Deadlines) -> Connection {
        Connection {
            stream,
            bytes: Vec::with_capacity(8 << 10),
            deadlines,
            deadline: Instant::now(),
        }
    }

    /// Waits for the next request. `drain` ends the wait while none has begun.
    pub(crate) fn next(&mut self, drain: BorrowedFd<'_>) -> io::Result<Next> {
        let mut begun = !self.bytes.is_empty();
        let idle = self.deadlines.idle.map(|idle| Instant::now() + idle);
        self.deadline = Instant::now() + self.deadlines.request;
        loop {
            if begun {
                match Head::parse(&self.bytes) {
                    Ok(Some((head, size))) if size <= MAX_HEAD => {
                        self.bytes.drain(..size);
                        return Ok(Next::Request(head));
                    }
                    Ok(found) if found.is_some() || self.bytes.len() > MAX_HEAD => {
                        return Ok(Next::Bad(ApiError::new(
                            ApiCode::HeadersTooLarge,
                            format!("the head of the request has more than {MAX_HEAD} bytes"),
                        )));
                    }
                    Ok(_) => {}
                    Err(error) => return Ok(Next::Bad(error)),
                }
            }
            let filled = match begun {
                true => self.fill(Some(self.deadline), None)?,
                false => self.fill(idle, Some(drain))?,
            };
            match filled {
                Filled::Some if begun => {}
                Filled::Some => {
                    begun = true;
                    self.deadline = Instant::now() + self.deadlines.request;
                }
                Filled::Late if begun => return Ok(Next::Bad(late())),
                Filled::End | Filled::Late | Filled::Draining => return Ok(Next::End),
            }
        }
    }

    /// The body of the request. The inner error is for the client.
    pub(crate) fn body(&mut self, head: &Head, max: u64) -> io::Result<Result<Vec<u8>, ApiError>> {
        if head.length > max {
            return Ok(Err(ApiError::new(
                ApiCode::BodyTooLarge,
                format!("the body has {} bytes; at most {max} are read", head.length),
            )
            .hint("`skillcell serve --max-body` sets the bound")));
        }
        let length = head.length as usize;
        if self.bytes.len() < length && head.expects_continue {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        while self.bytes.len() < length {
            match self.fill(Some(self.deadline), None)? {
                Filled::Some => {}
                Filled::Late => return Ok(Err(late())),
                Filled::End | Filled::Draining => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        // Most often there is just this request.
        if self.bytes.len() == length {
            return Ok(Ok(std::mem::take(&mut self.bytes)));
        }
        let rest = self.bytes.split_off(length);
        Ok(Ok(std::mem::replace(&mut self.bytes, rest)))
    }

    /// Reads a body that nobody wants. False when it is too long for that: the connection must end.
    pub(crate) fn skip(&mut self, head: &Head) -> io::Result<bool> {
        if head.length > MAX_SKIPPED || head.expects_continue {
            return Ok(false);
        }
        self.body(head, MAX_SKIPPED).map(|body| body.is_ok())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes, Instant::now() + WRITE)
    }

    /// Ends the connection so that the last answer arrives: what the client is still sending is read
    /// for a moment, because a close before that would take the answer away.
    pub(crate) fn close(mut self) {
        self.stream.close();
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut skipped = 0;
        while skipped < MAX_SKIPPED {
            self.bytes.clear();
            match self.fill(Some(deadline), None) {
                Ok(Filled::Some) => skipped += self.bytes.len() as u64,
                _ => return,
            }
        }
    }

    fn fill(
        &mut self,
        deadline: Option<Instant>,
        drain: Option<BorrowedFd<'_>>,
    ) -> io::Result<Filled> {
        loop {
            let at = self.bytes.len();
            // TLS may have bytes that the socket no longer shows, so there reading comes first.
            if !matches!(self.stream, Stream::Tls(_)) {
                match self.wait(deadline, drain)? {
                    Filled::Some => {}
                    other => return Ok(other),
                }
            }
            self.bytes.resize(at + (16 << 10), 0);
            let read = self.stream.read(&mut self.bytes[at..]);
            self.bytes.truncate(at + read.as_ref().map_or(0, |n| *n));
            match read {
                Ok(0) => return Ok(Filled::End),
                Ok(_) => return Ok(Filled::Some),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => match self.wait(deadline, drain)? {
                        Filled::Some => {}
                        other => return Ok(other),
                    },
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
                        return Ok(Filled::End);
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>, drain: Option<BorrowedFd<'_>>) -> io::Result<Filled> {
        let socket = self.stream.fd();
        let drain = drain.unwrap_or(socket);
        let mut fds = [
            PollFd::from_borrowed_fd(socket, PollFlags::IN),
            PollFd::from_borrowed_fd(drain, PollFlags::IN),
        ];
        if !wait(&mut fds, deadline)? {
            return Ok(Filled::Late);
        }
        match fds[0].revents().is_empty() {
            true => Ok(Filled::Draining),
            false => Ok(Filled::Some),
        }
    }
}

fn late() -> ApiError {
    ApiError::new(
        ApiCode::RequestTimeout,
        "the request took too long to arrive",
    )
}
