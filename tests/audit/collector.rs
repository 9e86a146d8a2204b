//! A receiver of traces on loopback: the public protocol's own messages, filled by its own parser.

use serde_json::Value;
use skillcell_tests::{Cell, Child};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub struct Collector {
    child: Child,
    folder: PathBuf,
    secure: bool,
}

impl Collector {
    /// Gives one answer per request, then ends.
    pub fn start(cell: &Cell, answers: &[u16], secure: bool) -> Collector {
        let folder = tempfile::Builder::new()
            .prefix("collector.")
            .tempdir_in(cell.path("work"))
            .expect("a folder")
            .keep();
        let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
        let mut command = cell.command(skillcell_tests::venv().join("bin/python"));
        command
            .arg(crate::script("collector.py"))
            .arg(&folder)
            .arg(answers.join(","))
            .arg(if secure { "https" } else { "http" });
        let child = Child::spawn(command, None);
        let deadline = Instant::now() + Duration::from_secs(30);
        while !folder.join("port").exists() {
            assert!(
                Instant::now() < deadline,
                "the collector does not start: {}",
                child.complaints()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Collector {
            child,
            folder,
            secure,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn url(&self) -> String {
        let port = std::fs::read_to_string(self.path("port")).expect("a port");
        if self.secure {
            format!("https://localhost:{port}")
        } else {
            format!("http://127.0.0.1:{port}")
        }
    }

    /// What it got, request by request.
    pub fn finish(self) -> Vec<Value> {
        self.child
            .finish()
            .expect_success("the collector understands every request");
        let text = std::fs::read_to_string(self.folder.join("requests.jsonl")).expect("requests");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}
