//! Children that can't outlive their time limit, and that the leak check knows of.

use crate::CHILD_LIMIT;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashSet;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

static ALIVE: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(|| {
    // Orphans come to the suite instead of the machine's init, so that the leak check sees them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .expect("a process may become a subreaper");
    Mutex::default()
});

/// Children that the suite itself has started and not yet waited for.
pub fn known() -> HashSet<u32> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A child with its output in files: a grandchild that holds a pipe open can't hang the suite.
pub struct Child {
    inner: std::process::Child,
    what: String,
    started: Instant,
    stdout: std::fs::File,
    stderr: std::fs::File,
    waited: bool,
}

/// How a child ended.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Child {
    pub fn spawn(command: Command, stdin: Option<&[u8]>) -> Child {
        let input = match stdin {
            None => Stdio::null(),
            Some(bytes) => {
                let mut input = temporary();
                input.write_all(bytes).expect("stdin can be written");
                input
                    .seek(SeekFrom::Start(0))
                    .expect("a file can be rewound");
                input.into()
            }
        };
        Child::spawn_on(command, input)
    }

    /// For a child that reads from something that stays open, as servers do to see the suite end.
    pub fn spawn_on(mut command: Command, input: impl Into<Stdio>) -> Child {
        let what = format!("{command:?}").chars().take(300).collect();
        let (stdout, stderr) = (temporary(), temporary());
        command
            .stdin(input)
            .stdout(stdout.try_clone().expect("a descriptor can be copied"))
            .stderr(stderr.try_clone().expect("a descriptor can be copied"));
        let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = command
            .spawn()
            .unwrap_or_else(|e| panic!("can't start {what}: {e}"));
        alive.insert(inner.id());
        drop(alive);
        Child {
            inner,
            what,
            started: Instant::now(),
            stdout,
            stderr,
            waited: false,
        }
    }

    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// What it has said on stdout so far.
    pub fn said(&self) -> String {
        read_all(&self.stdout)
    }

    /// What it has said on stderr so far.
    pub fn complaints(&self) -> String {
        read_all(&self.stderr)
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(pid(self.id()), signal).expect("a child can be signalled");
    }

    /// Waits for the end; a child that takes longer than `CHILD_LIMIT` fails the test.
    pub fn finish(self) -> Finished {
        self.finish_within(CHILD_LIMIT)
    }

    pub fn finish_within(mut self, limit: Duration) -> Finished {
        let ended = self.wait_until(self.started + limit.min(CHILD_LIMIT));
        let status = self.reap(!ended);
        let (stdout, stderr) = (read_all(&self.stdout), read_all(&self.stderr));
        let elapsed = self.started.elapsed();
        assert!(
            ended,
            "{} did not end within {limit:?}\nstdout: {stdout}\nstderr: {stderr}",
            self.what
        );
        Finished {
            status,
            stdout,
            stderr,
            elapsed,
        }
    }

    fn wait_until(&self, deadline: Instant) -> bool {
        let pidfd = pidfd_open(pid(self.id()), PidfdFlags::empty()).expect("a child has a pidfd");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(ready) => return ready > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => panic!("poll: {e}"),
            }
        }
    }

    fn reap(&mut self, kill: bool) -> ExitStatus {
        if kill {
            self.inner.kill().expect("a child can be killed");
        }
        let status = self.inner.wait().expect("a child can be waited for");
        self.waited = true;
        ALIVE
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.inner.id());
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.waited {
            self.reap(true);
        }
    }
}

impl Finished {
    /// The exit code, or 128 and the signal as shells count it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    pub fn expect_success(self, what: &str) -> Finished {
        assert!(
            self.status.success(),
            "{what}: {}\n{}\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id as i32).expect("a child has a pid")
}

fn temporary() -> std::fs::File {
    tempfile::tempfile().expect("a temporary file can be made")
}

/// Output of a flood is cut: no test needs more to explain itself. Read without moving the file's
/// offset, which is also where a child that still runs writes next.
fn read_all(file: &std::fs::File) -> String {
    const CUT: usize = 64 << 20;
    let length = file.metadata().expect("a file has a length").len() as usize;
    let mut bytes = vec![0; length.min(CUT)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) => panic!("output can't be read: {error}"),
        }
    }
    bytes.truncate(read);
    String::from_utf8_lossy(&bytes).into_owned()
}
