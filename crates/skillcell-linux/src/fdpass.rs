//! The handshake between the supervisor and the cell's set-up, over a socketpair: one kind byte,
//! a payload, and descriptors.

use crate::error::{During, LinuxError, Result, Step};
use crate::seccomp::Pass;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::PathBuf;

/// Most descriptors in one message.
pub(crate) const MAX_FDS: usize = 200;

#[derive(Debug)]
pub(crate) enum Message {
    /// Supervisor to child: the maps and cgroup are in place.
    Go,
    /// Supervisor to child: everything that has to come before the payload has been done.
    Start,
    /// Child to supervisor: the cell is made; the descriptors that it hands over.
    Ready(Vec<OwnedFd>),
    /// Child to supervisor: a step failed; nothing of the skill has run.
    Failed(LinuxError),
}

const GO: u8 = 1;
const READY: u8 = 2;
const FAILED: u8 = 3;
const START: u8 = 4;

pub(crate) fn send_go(socket: impl AsFd) -> Result<()> {
    send(socket, &[GO], &[])
}

pub(crate) fn send_start(socket: impl AsFd) -> Result<()> {
    send(socket, &[START], &[])
}

pub(crate) fn send_ready(socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> Result<()> {
    send(socket, &[READY], fds)
}

pub(crate) fn send_failed(socket: impl AsFd, error: &LinuxError) -> Result<()> {
    let mut bytes = vec![FAILED, error.step as u8];
    bytes.extend_from_slice(&error.errno.to_le_bytes());
    if let Some(path) = &error.path {
        use std::os::unix::ffi::OsStrExt;
        bytes.extend(path.as_os_str().as_bytes().iter().take(3000));
    }
    send(socket, &bytes, &[])
}

/// As `send_ready`, with numbers in the registers that the call doesn't use.
pub(crate) fn send_ready_with_pass(
    socket: BorrowedFd<'_>,
    fd: BorrowedFd<'_>,
    pass: Pass,
) -> Result<()> {
    crate::sys::send_descriptor(socket, &[READY], fd, pass).during(Step::Handshake)
}

fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(LinuxError::new(Step::Handshake, Errno::TOOBIG));
    }
    sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )
    .during(Step::Handshake)?;
    Ok(())
}

/// The next message; `None` when the other side is gone.
pub(crate) fn receive(socket: impl AsFd) -> Result<Option<Message>> {
    let mut bytes = [0u8; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(Errno::INTR) => {}
            other => break other.during(Step::Handshake)?,
        }
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let body = &bytes[..received.bytes];
    let broken = || LinuxError::new(Step::Handshake, Errno::PROTO);
    match body {
        [] => Ok(None),
        [GO] => Ok(Some(Message::Go)),
        [START] => Ok(Some(Message::Start)),
        [READY] => Ok(Some(Message::Ready(fds))),
        [FAILED, step, a, b, c, d, path @ ..] => {
            use std::os::unix::ffi::OsStringExt;
            Ok(Some(Message::Failed(LinuxError {
                step: Step::from_u8(*step).ok_or_else(broken)?,
                errno: i32::from_le_bytes([*a, *b, *c, *d]),
                path: (!path.is_empty())
                    .then(|| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()))),
            })))
        }
        _ => Err(broken()),
    }
}
