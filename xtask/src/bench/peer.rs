//! One contender of a benchmark, and what its output must be.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What every peer runs, and says.
pub(super) const HELLO_SCRIPT: &str = "print('Hello, bench!')\n";
pub(super) const HELLO_LINE: &str = "Hello, bench!";

/// The right answer. A benchmark of a failing command is a lie, so every run is checked.
pub(super) enum Expect {
    Line(&'static str),
    Json(Value),
}

impl Expect {
    fn holds(&self, stdout: &str) -> bool {
        match self {
            Self::Line(line) => stdout.trim_end() == *line,
            Self::Json(value) => {
                serde_json::from_str::<Value>(stdout).is_ok_and(|found| found == *value)
            }
        }
    }
}

/// A command that is known to work here.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// What distinguishes this set-up, for the report: versions, runtimes, storage.
    pub(super) about: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) expect: Expect,
}

/// A contender, or why it isn't one.
pub(super) type Contender = Result<Peer, Absent>;

/// A peer that can't run here; it is named in the report rather than left out.
pub(super) struct Absent {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

impl Peer {
    /// Runs once, from start to the end of its output, and checks the answer.
    pub(super) fn run(&self) -> Result<Duration> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            // Interpreter switches of the caller's shell would skew one peer and not another.
            if name.to_string_lossy().starts_with("PYTHON") {
                command.env_remove(name);
            }
        }
        let start = Instant::now();
        let output = command
            .output()
            .with_context(|| format!("could not start {}", self.program.display()))?;
        let elapsed = start.elapsed();
        let stdout = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() && self.expect.holds(&stdout),
            "{} gave a wrong answer ({}): stdout {:?}, stderr {:?}",
            self.name,
            output.status,
            stdout.trim_end(),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        Ok(elapsed)
    }

    /// Turns a peer whose first run fails into an absent one.
    pub(super) fn probed(self) -> Contender {
        match self.run() {
            Ok(_) => Ok(self),
            Err(error) => Err(Absent {
                name: self.name,
                reason: format!("{error:#}"),
            }),
        }
    }
}

/// Where `program` is on PATH.
pub(super) fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(program))
        .find(|candidate| rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok())
}

/// The first line that a command prints, for the report.
pub(super) fn first_line(program: &std::path::Path, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned));
    line.unwrap_or_else(|| "unknown version".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Peer {
        Peer {
            name: "shell",
            about: String::new(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            expect: Expect::Line(HELLO_LINE),
        }
    }

    #[test]
    fn a_wrong_answer_or_a_failing_command_is_never_a_sample() {
        assert!(shell("echo 'Hello, bench!'").run().is_ok());
        assert!(shell("echo Hello").run().is_err());
        assert!(shell("echo 'Hello, bench!'; exit 1").run().is_err());
    }

    #[test]
    fn a_peer_that_fails_its_probe_is_absent_with_the_reason() {
        let absent = shell("echo no such image >&2; exit 125")
            .probed()
            .err()
            .unwrap();
        assert!(absent.reason.contains("no such image"), "{}", absent.reason);
    }

    #[test]
    fn json_answers_are_compared_by_value() {
        let expect = Expect::Json(serde_json::json!({"a": 1}));
        assert!(expect.holds("{ \"a\": 1 }\n"));
        assert!(!expect.holds("{\"a\": 2}"));
        assert!(!expect.holds("not json"));
    }
}
