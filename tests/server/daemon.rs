//! A daemon of a test, and plain HTTP to it.

use serde_json::Value;
use skillcell_tests::{Cell, Child, Finished, Stage};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

pub struct Daemon {
    pub child: Child,
    pub socket: PathBuf,
}

impl Daemon {
    /// One for the user of `cell`, in that cell's corner of the host.
    pub fn start(cell: &Cell, flags: &[&str]) -> Daemon {
        let socket = cell.path("daemon/daemon.sock");
        let mut daemon = Daemon {
            child: spawn(cell, &socket, flags),
            socket,
        };
        daemon.until_ready();
        daemon
    }

    fn until_ready(&mut self) {
        let end = Instant::now() + PATIENCE;
        while !self.child.said().ends_with("ready\n") {
            let complaints = self.child.complaints();
            assert!(
                Instant::now() < end && complaints.is_empty(),
                "the daemon is not ready: {complaints}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The flag that sends a call here.
    pub fn flag(&self) -> String {
        format!("--daemon={}", self.socket.display())
    }

    /// Where it listens over TCP.
    pub fn tcp(&mut self) -> String {
        let said = self.child.said();
        let line = said.lines().find_map(|l| l.split_once("://"));
        line.expect("it listens over TCP").1.to_owned()
    }

    pub fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).expect("the daemon listens")
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(
            self.connect(),
            &format!("GET {path} HTTP/1.1\r\nHost: x\r\n"),
            "",
        )
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        ask(self.connect(), &post_head(path), body)
    }

    /// Ends it as a service manager would.
    pub fn end(self) -> Finished {
        self.child.signal(rustix::process::Signal::TERM);
        self.child.finish_within(Duration::from_secs(60))
    }
}

/// A daemon that may not even begin.
pub fn spawn(cell: &Cell, socket: &Path, flags: &[&str]) -> Child {
    let mut command = cell.command(Stage::get().binary());
    command.args(["serve", "--socket"]).arg(socket).args(flags);
    Child::spawn(command, None)
}

pub fn post_head(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
}

pub trait Wire: Read + Write {}
impl Wire for UnixStream {}
impl Wire for TcpStream {}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    #[track_caller]
    pub fn assert_error(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let error = &self.json()["error"];
        assert_eq!(error["code"], code, "{self:?}");
        assert!(
            error["message"].as_str().is_some_and(|m| m.len() > 10),
            "{self:?}"
        );
    }
}

/// One request on a connection of its own, and the answer to its end.
pub fn ask(mut wire: impl Wire, head: &str, body: &str) -> Answer {
    let request = format!(
        "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The daemon may answer before it has read everything.
    wire.write_all(request.as_bytes()).unwrap_or(());
    answer(wire)
}

/// Everything that comes until the end of the connection.
pub fn answer(mut wire: impl Read) -> Answer {
    let mut text = Vec::new();
    wire.read_to_end(&mut text).unwrap_or(0);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no answer: {text}")),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
