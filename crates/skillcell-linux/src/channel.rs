//! Messages with descriptors between two processes of ours, one datagram each.

use crate::error::{During, LinuxError, Result, Step};
use crate::fdpass::MAX_FDS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Bytes of the largest message.
const LARGEST: usize = 128 << 10;

/// One end of a socket pair that keeps messages apart.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    pub fn pair() -> Result<(Channel, Channel)> {
        let (a, b) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .during(Step::Handshake)?;
        Ok((Channel(a), Channel(b)))
    }

    /// An end that this process was started with.
    pub fn from_descriptor(fd: OwnedFd) -> Channel {
        Channel(fd)
    }

    /// Whether the other side is gone; unsure counts as gone.
    pub fn is_closed(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        match poll(&mut fds, Some(&Timespec::default())) {
            Ok(_) => fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
            Err(_) => true,
        }
    }

    pub fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
        if bytes.len() > LARGEST {
            return Err(LinuxError::new(Step::Handshake, Errno::MSGSIZE));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(LinuxError::new(Step::Handshake, Errno::TOOBIG));
        }
        loop {
            match sendmsg(
                &self.0,
                &[IoSlice::new(bytes)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            ) {
                Err(Errno::INTR) => {}
                other => return other.map(drop).during(Step::Handshake),
            }
        }
    }

    /// The next message; `None` when the other side is gone.
    pub fn receive(&self) -> Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let mut bytes = vec![0u8; LARGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Err(Errno::INTR) => {}
                // A peer that was killed with messages unread.
                Err(Errno::CONNRESET) => return Ok(None),
                other => break other.during(Step::Handshake)?,
            }
        };
        // Descriptors that were cut off belong to something that must not be used half.
        let whole = !received
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if !whole {
            return Err(LinuxError::new(Step::Handshake, Errno::MSGSIZE));
        }
        bytes.truncate(received.bytes);
        Ok((!bytes.is_empty()).then_some((bytes, fds)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
