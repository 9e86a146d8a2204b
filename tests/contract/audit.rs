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

/// An operator who mistypes a folder must not be told that all is well in it.
#[test]
fn a_log_that_is_named_must_be_there() {
    let _shared = shared();
    let cell = cell();
    let missing = cell.path("no/such/log");
    let run = "01a1f06136e88203eb47b98a7dfa";
    for command in [
        vec!["list"],
        vec!["show", run],
        vec!["tail"],
        vec!["search", "word"],
        vec!["stats"],
        vec!["verify"],
        vec!["export", "--format", "jsonl"],
        vec!["report", run],
        vec!["prune", "--keep-age", "1d"],
        vec!["reindex"],
    ] {
        let mut arguments = vec!["audit"];
        arguments.extend(&command);
        arguments.extend(["--log", missing.to_str().expect("text")]);
        let outcome = cell.skillcell(&arguments);
        assert_eq!(outcome.code, 2, "{command:?}\n{}", outcome.show());
        assert_eq!(outcome.stdout, "", "{command:?}");
        assert!(
            outcome.stderr.contains("no such folder"),
            "{}",
            outcome.show()
        );
        assert!(!missing.exists(), "{command:?} makes it");
    }
}

#[test]
fn a_second_key_is_refused_and_the_first_one_stays() {
    let _shared = shared();
    let cell = cell();
    let key = |name: &str| {
        let log = cell.path("home/.local/state/skillcell/audit");
        std::fs::read(log.join(name)).expect("a key")
    };
    let first = cell.skillcell(["audit", "keygen"]);
    assert_eq!(first.code, 0, "{}", first.show());
    let before = (key("signing-key.der"), key("signing-key.pub"));
    let second = cell.skillcell(["audit", "keygen"]);
    assert_eq!(second.code, 2, "{}", second.show());
    assert!(
        second.stderr.contains("has a key already"),
        "{}",
        second.show()
    );
    assert_eq!((key("signing-key.der"), key("signing-key.pub")), before);
    let verified = cell.skillcell(["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.show());
}
