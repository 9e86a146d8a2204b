//! The record outside: what a call did, in a log that the cell can't reach.

use crate::cell;
use serde_json::{Value, json};
use skillcell_tests::{Cell, Level, User, example, shared};

#[test]
fn every_call_is_in_the_log_that_its_envelope_names() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("hello"))
        .params(&json!({"name": "Ada"}))
        .run();
    let audit = &outcome.envelope()["audit"];
    let path = audit["log"]
        .as_str()
        .unwrap_or_else(|| panic!("no log\n{}", outcome.show()));
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let run = outcome.run_id().expect("a run has an id");
    let events: Vec<&str> = text.lines().filter(|line| line.contains(run)).collect();
    assert_eq!(
        Some(events.len() as u64),
        audit["events"].as_u64(),
        "{events:?}"
    );
    for line in events {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(event.is_object());
    }
    // Params and results may be private; the log has neither.
    assert!(!text.contains("Ada"), "params or result are in the log");
}

#[test]
fn the_log_of_an_ordinary_user_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let _shared = shared();
    let cell = Cell::new(Level::Sandbox, User::Ordinary);
    let skill = cell.bundle(
        "one",
        &[
            ("manifest.yaml", "name: one\nversion: 1.0.0\n"),
            (
                "skill.py",
                "class S:\n    def execute(self, params):\n        return 1\n",
            ),
        ],
    );
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    outcome.assert_ok();
    let path = outcome.envelope()["audit"]["log"].as_str().expect("a log");
    let mode = std::fs::metadata(path)
        .expect("it exists")
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "{path} has mode {mode:o}");
}
