//! Watches an installer until it ends, or until it must.

use crate::door::{Door, distinct};
use crate::output::{Lines, Output};
use crate::{BuildLimits, DepsError, DepsRequest, Progress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use skillcell_core::Denial;
use skillcell_linux::cell::{Cell, CellSpec, Exit, spawn};
use skillcell_linux::cgroup::CellCgroup;
use skillcell_linux::{procfs, set_nonblocking};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often quotas that the kernel doesn't hold are looked at.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Finished {
    pub(crate) exit: Exit,
    pub(crate) output: String,
    pub(crate) denials: Vec<Denial>,
}

/// Why it was ended from outside.
enum Ended {
    Timeout,
    Limit(&'static str),
    Interrupted,
    NotStarted(skillcell_linux::LinuxError),
    Broken(Errno),
}

struct Watch<'a> {
    cell: Cell,
    streams: [(Lines, bool); 2],
    output: Output,
    progress: &'a dyn Progress,
}

/// Runs the cell. `folder` is what the installer fills, `door` its network where it has one.
pub(crate) fn run(
    spec: &CellSpec,
    cgroup: Option<&CellCgroup>,
    request: &DepsRequest<'_>,
    folder: &Path,
    door: Option<Door>,
    progress: &dyn Progress,
) -> Result<Finished, DepsError> {
    let mut cell = spawn(spec, cgroup)?;
    // Only now a second thread; it ends with the broker, however this function does.
    let broker = door.map(|door| door.open(&mut cell)).transpose()?;
    let mut watch = Watch {
        cell,
        streams: Default::default(),
        output: Output::default(),
        progress,
    };
    let mut ended = watch.until_end(request, folder);
    watch.cell.kill().map_err(|e| broken(folder, e))?;
    watch.cell.reap().map_err(|e| broken(folder, e))?;
    let denials = broker.map_or_else(Vec::new, |broker| distinct(broker.finish().denials));
    // Whatever was still in the pipes.
    watch.drain().map_err(|e| broken(folder, e))?;
    for (lines, _) in &mut watch.streams {
        lines.finish(&mut watch.output, progress);
    }
    let oom = cgroup.is_some_and(|c| c.usage().oom_kills > 0);
    if oom && !matches!(ended, Ok(Exit::Code(0))) {
        ended = Err(Ended::Limit("memory"));
    }
    let output = watch.output.into_text();
    match ended {
        Ok(exit) => Ok(Finished {
            exit,
            output,
            denials,
        }),
        Err(Ended::Timeout) => Err(DepsError::Timeout {
            limit: request.limits.timeout,
            output,
            denials,
        }),
        Err(Ended::Limit(what)) => Err(DepsError::Limit { what, output }),
        Err(Ended::Interrupted) => Err(DepsError::Interrupted),
        Err(Ended::NotStarted(error)) => Err(error.into()),
        Err(Ended::Broken(errno)) => Err(broken(folder, errno)),
    }
}

fn broken(folder: &Path, errno: Errno) -> DepsError {
    DepsError::io("watching the install in", folder)(errno.into())
}

impl Watch<'_> {
    fn until_end(&mut self, request: &DepsRequest<'_>, folder: &Path) -> Result<Exit, Ended> {
        for fd in [&self.cell.stdout, &self.cell.stderr] {
            set_nonblocking(fd).map_err(Ended::Broken)?;
        }
        let deadline = Instant::now() + request.limits.timeout;
        let mut next_look = Instant::now() + LOOK;
        let mut starting = true;
        loop {
            let now = Instant::now();
            if now >= deadline {
                return Err(Ended::Timeout);
            }
            if now >= next_look {
                check_quotas(&self.cell, request, folder)?;
                next_look = Instant::now() + LOOK;
            }
            let patience =
                next_look.min(deadline).saturating_duration_since(now) + Duration::from_millis(1);
            let ready = self
                .wait(request, starting, patience)
                .map_err(Ended::Broken)?;
            if ready.interrupt {
                return Err(Ended::Interrupted);
            }
            if ready.handshake {
                if let Some(error) = self.cell.exec_failure() {
                    return Err(Ended::NotStarted(error));
                }
                starting = false;
            }
            self.drain().map_err(Ended::Broken)?;
            if ready.status {
                return Ok(read_exit(&self.cell.status));
            }
        }
    }

    fn wait(
        &self,
        request: &DepsRequest<'_>,
        starting: bool,
        patience: Duration,
    ) -> rustix::io::Result<Ready> {
        let mut fds = vec![PollFd::new(&self.cell.status, PollFlags::IN)];
        for (fd, (_, closed)) in [&self.cell.stdout, &self.cell.stderr]
            .into_iter()
            .zip(&self.streams)
        {
            if !closed {
                fds.push(PollFd::new(fd, PollFlags::IN));
            }
        }
        let handshake = starting.then(|| {
            fds.push(PollFd::new(&self.cell.handshake, PollFlags::IN));
            fds.len() - 1
        });
        let interrupt = request.interrupt.as_ref().map(|fd| {
            fds.push(PollFd::new(fd, PollFlags::IN));
            fds.len() - 1
        });
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let happened = |index: Option<usize>| index.is_some_and(|i| !fds[i].revents().is_empty());
        Ok(Ready {
            status: happened(Some(0)),
            handshake: happened(handshake),
            interrupt: happened(interrupt),
        })
    }

    /// Reads what is there.
    fn drain(&mut self) -> rustix::io::Result<()> {
        let mut buffer = [0u8; 16 << 10];
        for (fd, (lines, closed)) in [&self.cell.stdout, &self.cell.stderr]
            .into_iter()
            .zip(&mut self.streams)
        {
            // Bounded, so that a flood can't keep the deadline from being looked at.
            for _ in 0..64 {
                match rustix::io::read(fd, &mut buffer) {
                    Ok(0) => *closed = true,
                    Ok(n) => {
                        lines.take(&buffer[..n], &mut self.output, self.progress);
                        continue;
                    }
                    Err(Errno::INTR) => continue,
                    Err(Errno::WOULDBLOCK) => {}
                    Err(errno) => return Err(errno),
                }
                break;
            }
        }
        Ok(())
    }
}

struct Ready {
    status: bool,
    handshake: bool,
    interrupt: bool,
}

/// Init that ends without a word was killed.
fn read_exit(status: &OwnedFd) -> Exit {
    let mut bytes = [0; 4];
    match rustix::io::read(status, &mut bytes) {
        Ok(4) => Exit::from_status(bytes),
        _ => Exit::Signal(9),
    }
}

fn check_quotas(cell: &Cell, request: &DepsRequest<'_>, folder: &Path) -> Result<(), Ended> {
    if request.host.cgroup.memory.is_none() {
        let used: u64 = procfs::descendants(cell.pid)
            .into_iter()
            .map(procfs::proportional)
            .sum();
        if used > request.limits.memory {
            return Err(Ended::Limit("memory"));
        }
    }
    if exceeds(folder, request.limits) {
        Err(Ended::Limit("disk space"))
    } else {
        Ok(())
    }
}

/// Whether a tree that is being written has grown too large already.
fn exceeds(folder: &Path, limits: BuildLimits) -> bool {
    let (mut bytes, mut files) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            files += 1;
            // A file with several names is one file.
            bytes += meta.blocks() * 512 / meta.nlink().max(1);
            if meta.is_dir() {
                folders.push(entry.path());
            }
            if bytes > limits.disk || files > limits.files {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_exceeds_by_bytes_or_by_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        let limits = BuildLimits::default();
        assert!(!exceeds(folder.path(), limits));
        assert!(exceeds(
            folder.path(),
            BuildLimits {
                disk: 50_000,
                ..limits
            }
        ));
        assert!(exceeds(folder.path(), BuildLimits { files: 1, ..limits }));
    }
}
