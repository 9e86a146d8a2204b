//! How an engine learns that nobody waits for a call any more.
//!
//! One descriptor that becomes readable, so that whatever loop an engine has can poll for it: the
//! caller closed the connection, or the daemon's time to drain is over. It costs nothing per call,
//! because a connection has one for all its calls.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Ends all calls of a daemon at once.
#[derive(Debug, Clone)]
pub struct EndAll(Arc<OwnedFd>);

impl EndAll {
    pub fn new() -> rustix::io::Result<EndAll> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(EndAll(Arc::new(fd)))
    }

    pub fn now(&self) -> rustix::io::Result<()> {
        rustix::io::write(&*self.0, &1u64.to_ne_bytes()).map(|_| ())
    }

    pub fn is_now(&self) -> bool {
        readable(self.0.as_fd())
    }
}

impl AsFd for EndAll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug)]
pub struct Cancel(OwnedFd);

impl Cancel {
    /// Cancelled when the peer of `socket` stops sending, or all calls are ended.
    pub fn new(socket: Option<BorrowedFd<'_>>, end_all: &EndAll) -> rustix::io::Result<Cancel> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let data = EventData::new_u64(0);
        if let Some(socket) = socket {
            epoll::add(&epoll, socket, data, EventFlags::RDHUP | EventFlags::HUP)?;
        }
        epoll::add(&epoll, end_all, data, EventFlags::IN)?;
        Ok(Cancel(epoll))
    }

    pub fn is_cancelled(&self) -> bool {
        readable(self.0.as_fd())
    }
}

/// Readable from the moment on at which the call should end.
impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let none = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // Should the question fail, the call goes on to its own end.
    poll(&mut fds, Some(&none)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_leaves_cancels_and_one_that_writes_does_not() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let cancel = Cancel::new(Some(ours.as_fd()), &EndAll::new().unwrap()).unwrap();
        theirs.write_all(b"the next request").unwrap();
        assert!(!cancel.is_cancelled());
        theirs.shutdown(Shutdown::Write).unwrap();
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn the_end_of_the_daemon_cancels_all() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let all = EndAll::new().unwrap();
        let cancel = Cancel::new(Some(ours.as_fd()), &all).unwrap();
        assert!(!cancel.is_cancelled() && !all.is_now());
        all.now().unwrap();
        assert!(cancel.is_cancelled() && all.is_now());
    }
}
