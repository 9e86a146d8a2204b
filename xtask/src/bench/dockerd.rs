//! A docker daemon of our own, where docker is installed and no daemon answers.
//!
//! It keeps its state and its socket in a temporary directory, touches no bridge and no packet
//! filter, and is stopped by its process id when the benchmark ends.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::container::Engine;
use super::peer::find_program;

const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

/// A running daemon; dropping it stops it.
pub(super) struct Daemon {
    child: Child,
    // Held for its Drop: removed after the daemon is gone.
    dir: tempfile::TempDir,
}

impl Daemon {
    pub(super) fn start() -> Result<Self> {
        let Some(program) = find_program("dockerd") else {
            bail!("no docker daemon answers, and dockerd is not installed");
        };
        ensure!(
            geteuid().is_root(),
            "no docker daemon answers, and starting one takes root"
        );
        let dir = tempfile::Builder::new()
            .prefix("bench-dockerd-")
            .tempdir()?;
        let at = |name: &str| dir.path().join(name);
        let log = File::create(at("log")).context("could not create the daemon's log")?;
        let child = Command::new(program)
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("pid"))
            .arg(format!("--host=unix://{}", at("sock").display()))
            .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("could not start dockerd")?;
        let mut daemon = Self { child, dir };
        daemon.wait_until_up()?;
        Ok(daemon)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.dir.path().join("sock")
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let engine = match Engine::docker_at(&self.socket()) {
            Ok(engine) => engine,
            Err(absent) => bail!(absent.reason),
        };
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            if engine.answers() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("dockerd ended at start ({status}): {}", self.last_words());
            }
            std::thread::sleep(POLL);
        }
        bail!(
            "dockerd did not answer within {} s: {}",
            START.as_secs(),
            self.last_words()
        )
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().last().unwrap_or("no log").to_owned()
    }

    /// Asks the daemon to end, and waits: it takes its containerd with it.
    fn stop(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!("dockerd ignored SIGTERM and was killed; its containerd may be left")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("warning: {error:#}");
        }
    }
}
