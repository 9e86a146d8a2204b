//! The same calls, in warm cells: with `SKILLCELL_TEST_WARM=1` every call at level `sandbox` goes
//! through a daemon of its own that has loaded its skill.

use crate::{Cell, Child, Level, Stage};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn is_asked_for(cell: &Cell, through: &[OsString]) -> bool {
    cell.level == Level::Sandbox
        && through.is_empty()
        && std::env::var_os("SKILLCELL_TEST_WARM").is_some_and(|v| v == "1")
}

pub struct Daemon {
    child: Child,
    socket: PathBuf,
}

impl Daemon {
    pub fn start(cell: &Cell) -> Daemon {
        let socket = cell.path("warm/daemon.sock");
        let mut command = cell.command(Stage::get().binary());
        command.args(["serve", "--load-first", "--max-ahead", "1", "--socket"]);
        command.arg(&socket);
        let child = Child::spawn(command, None);
        let end = Instant::now() + PATIENCE;
        while !child.said().ends_with("ready\n") {
            let complaints = child.complaints();
            assert!(
                Instant::now() < end && complaints.is_empty(),
                "{complaints}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        Daemon { child, socket }
    }

    pub fn flag(&self) -> String {
        format!("--daemon={}", self.socket.display())
    }

    /// Panics when a call was made cold although its skill could be resumed.
    pub fn assert_no_excuse(&self) {
        let metrics = self.metrics();
        let excuses = ["no waiting cell", "being loaded"];
        let excuse = metrics
            .lines()
            .find(|l| l.contains("cold_calls_total{") && excuses.iter().any(|e| l.contains(e)));
        assert!(excuse.is_none(), "{excuse:?}");
    }

    fn metrics(&self) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("the daemon listens");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        text
    }

    pub fn end(self) {
        self.child.signal(rustix::process::Signal::TERM);
        self.child.finish_within(PATIENCE);
    }
}
