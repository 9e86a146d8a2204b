//! One worker, from its start to its end.

use super::order::{Job, Order};
use crate::api::Call;
use crate::cancel::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a worker may take to clear up after it was asked to end.
const GRACE: Duration = Duration::from_secs(5);
/// How the hidden command is called.
pub(crate) const WORKER: [&str; 2] = ["serve", "worker"];
/// No line of a worker is longer: the envelope with a result of the largest output that a policy
/// would sensibly allow.
const LONGEST_LINE: usize = 1 << 30;

pub(super) struct Process {
    child: Child,
    pidfd: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    order: Vec<u8>,
    ordered: usize,
    waited: bool,
}

impl Process {
    pub(super) fn start(program: &OwnedFd, call: &Call, order: Order<&Job>) -> io::Result<Process> {
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        let mut command = Command::new(path);
        command
            .arg0("skillcell")
            .args(WORKER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        if let Some(environment) = &call.environment {
            command.env_clear().envs(environment);
        }
        if let Some(folder) = &call.folder {
            check_folder(folder)?;
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let pid = Pid::from_child(&child);
        let ready = || -> io::Result<OwnedFd> {
            for fd in [
                stdin.as_ref().map(|f| f.as_fd()),
                stdout.as_ref().map(|f| f.as_fd()),
            ] {
                ioctl_fionbio(fd.ok_or(ErrorKind::BrokenPipe)?, true)?;
            }
            Ok(pidfd_open(pid, PidfdFlags::empty())?)
        };
        match ready() {
            Ok(pidfd) => Ok(Process {
                child,
                pidfd,
                stdin,
                stdout,
                order: serde_json::to_vec(&order)?,
                ordered: 0,
                waited: false,
            }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Gives the order, and every line of the answer to `on_line`, until the worker has ended.
    pub(super) fn converse(
        &mut self,
        cancel: &Cancel,
        mut on_line: impl FnMut(&[u8]),
    ) -> io::Result<ExitStatus> {
        let mut lines = Lines::default();
        let mut patience: Option<Instant> = None;
        while self.stdout.is_some() {
            let wait = patience.map(|end| end.saturating_duration_since(Instant::now()));
            let seen = self.look(cancel, wait)?;
            if seen.input {
                self.give_order();
            }
            if seen.output && !lines.read(self.stdout.as_mut(), &mut on_line)? {
                self.stdout = None;
            }
            if seen.cancelled && patience.is_none() {
                self.stdin = None;
                pidfd_send_signal(&self.pidfd, Signal::TERM)?;
                patience = Some(Instant::now() + GRACE);
            }
            if patience.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
        self.end()
    }

    fn look(&self, cancel: &Cancel, wait: Option<Duration>) -> io::Result<Seen> {
        let wait = wait.map(timespec);
        // Only the first sign of it counts: it stays.
        let ask = if wait.is_none() {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut fds = vec![PollFd::new(cancel, ask)];
        if let Some(stdout) = &self.stdout {
            fds.push(PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(stdin) = &self.stdin {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        match poll(&mut fds, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Seen {
            cancelled: ready(0),
            output: ready(1),
            input: ready(2),
        })
    }

    fn give_order(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        while self.ordered < self.order.len() {
            match stdin.write(&self.order[self.ordered..]) {
                Ok(n) => self.ordered += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It has ended; its exit tells more than this.
                Err(_) => break,
            }
        }
        self.stdin = None;
    }

    /// Waits for the worker, which has said all that it will, and kills it when that takes too long.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        self.stdout = None;
        let deadline = Instant::now() + GRACE;
        let mut killed = false;
        loop {
            let left = timespec(deadline.saturating_duration_since(Instant::now()));
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, (!killed).then_some(&left)) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(0) => {
                    self.child.kill()?;
                    killed = true;
                }
                Ok(_) => break,
            }
        }
        let status = self.child.wait()?;
        self.waited = true;
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only where something failed on the way: a worker must not outlive its call.
        if !self.waited {
            self.child.kill().unwrap_or(());
            self.child.wait().map(|_| ()).unwrap_or(());
        }
    }
}

struct Seen {
    cancelled: bool,
    output: bool,
    input: bool,
}

#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    looked: usize,
}

impl Lines {
    /// Reads what is there. False at the end.
    fn read(
        &mut self,
        stdout: Option<&mut ChildStdout>,
        on_line: &mut impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        let Some(stdout) = stdout else {
            return Ok(false);
        };
        let mut buffer = [0u8; 64 << 10];
        loop {
            let n = match stdout.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.bytes.extend_from_slice(&buffer[..n]);
            let mut begun = 0;
            while let Some(at) = self.bytes[self.looked..].iter().position(|b| *b == b'\n') {
                let end = self.looked + at;
                on_line(&self.bytes[begun..end]);
                begun = end + 1;
                self.looked = begun;
            }
            self.bytes.drain(..begun);
            self.looked = self.bytes.len();
            if self.bytes.len() > LONGEST_LINE {
                return Err(io::Error::other("the worker gives a line without end"));
            }
        }
    }
}

/// The error of a start doesn't say which of folder and program is missing.
fn check_folder(folder: &Path) -> io::Result<()> {
    match std::fs::metadata(folder) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::other(format!(
            "{}: not a folder",
            folder.display()
        ))),
        Err(error) => Err(io::Error::other(format!("{}: {error}", folder.display()))),
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: duration.subsec_nanos().into(),
    }
}
