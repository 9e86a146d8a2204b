//! What came back from a call, with assertions that show all of it when they fail.

use crate::Finished;
use serde_json::Value;
use std::time::Duration;

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
    envelope: Option<Value>,
}

impl Outcome {
    pub fn new(finished: Finished) -> Outcome {
        Outcome {
            code: finished.code(),
            elapsed: finished.elapsed,
            envelope: serde_json::from_str(&finished.stdout).ok(),
            stdout: finished.stdout,
            stderr: finished.stderr,
        }
    }

    /// Everything, for messages.
    pub fn show(&self) -> String {
        let cut = |text: &str| text.chars().take(4000).collect::<String>();
        format!(
            "exit code {} after {:?}\nstdout: {}\nstderr: {}",
            self.code,
            self.elapsed,
            cut(&self.stdout),
            cut(&self.stderr)
        )
    }

    pub fn envelope(&self) -> &Value {
        self.envelope
            .as_ref()
            .unwrap_or_else(|| panic!("there is no envelope on stdout\n{}", self.show()))
    }

    pub fn run_id(&self) -> Option<&str> {
        self.envelope.as_ref()?.get("run_id")?.as_str()
    }

    pub fn status(&self) -> &str {
        self.envelope()["status"]
            .as_str()
            .unwrap_or_else(|| panic!("no status\n{}", self.show()))
    }

    pub fn result(&self) -> &Value {
        &self.envelope()["result"]
    }

    pub fn error_code(&self) -> &str {
        self.envelope()["error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no error code\n{}", self.show()))
    }

    pub fn error_message(&self) -> &str {
        self.envelope()["error"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("no message\n{}", self.show()))
    }

    pub fn denials(&self) -> &[Value] {
        self.envelope()["denials"]
            .as_array()
            .unwrap_or_else(|| panic!("no denials\n{}", self.show()))
    }

    /// A denial of this kind whose target has `target` in it.
    pub fn denial(&self, kind: &str, target: &str) -> Option<&Value> {
        self.denials()
            .iter()
            .find(|d| d["kind"] == kind && d["target"].as_str().is_some_and(|t| t.contains(target)))
    }

    #[track_caller]
    pub fn assert_denial(&self, kind: &str, target: &str) -> &Value {
        self.denial(kind, target).unwrap_or_else(|| {
            panic!(
                "no {kind} denial of `{target}` in the envelope\n{}",
                self.show()
            )
        })
    }

    /// The call succeeded; gives the result.
    #[track_caller]
    pub fn assert_ok(&self) -> &Value {
        self.assert_status("ok", 0);
        self.result()
    }

    #[track_caller]
    pub fn assert_status(&self, status: &str, code: i32) {
        assert!(
            self.status() == status && self.code == code,
            "expected {status} and exit {code}\n{}",
            self.show()
        );
    }

    /// Status, exit code and one of the error codes.
    #[track_caller]
    pub fn assert_error(&self, status: &str, code: i32, errors: &[&str]) {
        self.assert_status(status, code);
        assert!(
            errors.contains(&self.error_code()),
            "expected one of {errors:?}\n{}",
            self.show()
        );
    }

    #[track_caller]
    pub fn assert_limit(&self, errors: &[&str]) {
        self.assert_error("limit_exceeded", 4, errors);
    }

    /// Nothing that only a developer of Skillcell could read.
    #[track_caller]
    pub fn assert_readable(&self) {
        let noise = [
            "panicked at",
            "RUST_BACKTRACE",
            "Error {",
            "Some(",
            "None)",
            "Os {",
            "called `",
            "src/",
        ];
        for text in [&self.stdout, &self.stderr] {
            if let Some(found) = noise.iter().find(|n| text.contains(**n)) {
                panic!("`{found}` is no message for people\n{}", self.show());
            }
        }
    }
}
