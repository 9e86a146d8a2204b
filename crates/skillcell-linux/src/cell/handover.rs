//! A running cell on its way from the process that made it to the one that supervises it.

use super::spawn::Cell;
use crate::error::{LinuxError, Result, Step};
use crate::seccomp::{AllowList, Listener};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// What of a cell are numbers; the rest is descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellShape {
    pub pid: u32,
    pub namespace: bool,
    pub scratch: bool,
    pub dns: bool,
    pub staging: usize,
    pub doors: usize,
    pub listener: bool,
}

impl Cell {
    /// Gives the cell away, once its payload is confined. Whoever made it stays its parent and must
    /// reap it; it ends when whoever has it now lets go.
    pub fn hand_over(mut self) -> Result<(CellShape, Vec<OwnedFd>)> {
        let listener = self.listener()?;
        let shape = CellShape {
            pid: self.pid,
            namespace: self.namespace,
            scratch: self.scratch.is_some(),
            dns: self.dns.is_some(),
            staging: self.staging.len(),
            doors: self.doors.len(),
            listener: listener.is_some(),
        };
        let duplicate = |fd: &OwnedFd| {
            fd.try_clone()
                .map_err(|e| LinuxError::io(Step::Handshake, &e))
        };
        let mut fds = Vec::new();
        for fd in [
            &self.pidfd,
            &self.stdout,
            &self.stderr,
            &self.result,
            &self.status,
            &self.handshake,
        ] {
            fds.push(duplicate(fd)?);
        }
        fds.push(
            self.lifeline
                .take()
                .ok_or(LinuxError::new(Step::Handshake, Errno::BADF))?,
        );
        fds.extend(self.scratch.take());
        fds.append(&mut self.staging);
        fds.extend(
            self.dns
                .take()
                .into_iter()
                .flat_map(|(udp, tcp)| [udp, tcp]),
        );
        fds.append(&mut self.doors);
        if let Some(listener) = listener {
            fds.push(duplicate(
                &listener
                    .as_fd()
                    .try_clone_to_owned()
                    .map_err(|e| LinuxError::io(Step::Handshake, &e))?,
            )?);
        }
        // Not to be killed with this value: it is somebody else's now.
        self.reaped = true;
        Ok((shape, fds))
    }

    /// Takes a cell that another process made. `list` is what its filter allows.
    pub fn adopt(shape: CellShape, fds: Vec<OwnedFd>, list: &AllowList) -> Result<Cell> {
        let mut fds = fds.into_iter();
        let mut next = || {
            fds.next()
                .ok_or(LinuxError::new(Step::Handshake, Errno::PROTO))
        };
        let mut cell = Cell {
            pid: shape.pid,
            pidfd: next()?,
            stdout: next()?,
            stderr: next()?,
            result: next()?,
            status: next()?,
            handshake: next()?,
            lifeline: Some(next()?),
            scratch: None,
            staging: Vec::new(),
            dns: None,
            doors: Vec::new(),
            awaited: None,
            held: None,
            namespace: shape.namespace,
            foreign: true,
            reaped: false,
        };
        if shape.scratch {
            cell.scratch = Some(next()?);
        }
        for _ in 0..shape.staging {
            cell.staging.push(next()?);
        }
        if shape.dns {
            cell.dns = Some((next()?, next()?));
        }
        for _ in 0..shape.doors {
            cell.doors.push(next()?);
        }
        if shape.listener {
            cell.held = Some(Listener::new(next()?, list.clone()));
        }
        Ok(cell)
    }
}
