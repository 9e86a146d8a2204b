//! Nurseries are started from a sealed copy of this program: what a resumed process finds behind
//! `/proc/self/exe` is then no file of the host.

use rustix::fd::{AsRawFd, OwnedFd};
use skillcell_linux::channel::Channel;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(super) struct Program(OwnedFd);

impl Program {
    pub(super) fn of_this_process() -> io::Result<Program> {
        let bytes = std::fs::read("/proc/self/exe")?;
        let sealed =
            skillcell_linux::sealed_memfd("skillcell", &bytes).map_err(io::Error::other)?;
        Ok(Program(sealed))
    }

    /// Starts a nursery at the other end of `channel`.
    pub(super) fn start(&self, channel: Channel, folder: &Path) -> io::Result<Child> {
        // By this process's table: the descriptor itself is closed on exec.
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd());
        Command::new(path)
            .arg0(super::NURSERY_ARGV0)
            // The C library's area for restartable sequences could not be taken away from a process
            // that becomes another.
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .current_dir(folder)
            .stdin(Stdio::from(channel.into_descriptor()))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
    }
}
