//! The envelope, field by field.

use crate::{cell, execute};
use serde_json::{Value, json};
use skillcell_tests::{Outcome, example, shared};

/// What every envelope has, however the call ended.
#[track_caller]
pub(crate) fn assert_complete(outcome: &Outcome) {
    let envelope = outcome.envelope().as_object().expect("an object");
    for field in [
        "run_id",
        "skill",
        "status",
        "result",
        "error",
        "denials",
        "enforcement",
        "usage",
        "audit",
    ] {
        assert!(
            envelope.contains_key(field),
            "no `{field}`\n{}",
            outcome.show()
        );
    }
    let usage = envelope["usage"].as_object().expect("an object");
    for field in [
        "wall_ms",
        "cpu_ms",
        "peak_memory_bytes",
        "bytes_out",
        "bytes_in",
    ] {
        assert!(usage[field].is_u64(), "usage.{field}\n{}", outcome.show());
    }
    assert_eq!(
        outcome.stdout.trim_end().lines().count(),
        1,
        "one line on stdout\n{}",
        outcome.show()
    );
    for denial in outcome.denials() {
        for field in ["kind", "target", "reason", "count", "hint"] {
            assert!(
                denial.get(field).is_some(),
                "denials: no `{field}` in {denial}"
            );
        }
    }
}

#[test]
fn a_success_has_every_field() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("hello"))
        .params(&json!({"name": "Ada"}))
        .run();
    assert_eq!(outcome.assert_ok(), &json!({"greeting": "Hello, Ada!"}));
    assert_complete(&outcome);
    let envelope = outcome.envelope();
    assert_eq!(envelope["error"], Value::Null);
    assert_eq!(envelope["denials"], json!([]));
    assert_eq!(envelope["skill"]["id"], "hello");
    assert_eq!(envelope["skill"]["version"], "1.0.0");
    assert!(
        envelope["skill"]["digest"]
            .as_str()
            .is_some_and(|d| d.starts_with("sha256:") && d.len() == 71)
    );
    assert!(
        envelope["usage"]["wall_ms"]
            .as_u64()
            .is_some_and(|ms| ms < 30_000)
    );
    assert!(
        envelope["usage"]["peak_memory_bytes"]
            .as_u64()
            .is_some_and(|b| b > 1 << 20),
        "{}",
        outcome.show()
    );
    assert!(envelope["usage"]["cpu_ms"].as_u64().is_some());
    assert!(
        envelope.get("output").is_none(),
        "output is shown on request or failure only"
    );
}

/// Requested is enforced, or refused: the receipt names every control, each enforced.
#[test]
fn the_receipt_names_every_control() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("hello"))
        .params(&json!({"name": "Ada"}))
        .run();
    let receipt = outcome.envelope()["enforcement"]
        .as_array()
        .expect("a list");
    for control in [
        "identity",
        "filesystem",
        "network",
        "host_processes",
        "ipc",
        "syscalls",
        "environment",
        "descriptors",
        "cleanup",
        "denials",
        "timeout",
        "memory",
        "processes",
        "cpu",
        "scratch",
        "output",
    ] {
        let line = receipt.iter().find(|line| line["control"] == control);
        let line =
            line.unwrap_or_else(|| panic!("no {control} in the receipt\n{}", outcome.show()));
        assert_eq!(line["status"], "enforced", "{line}");
        assert!(
            line["mechanism"].as_str().is_some_and(|m| !m.is_empty()),
            "{line}"
        );
    }
    assert_eq!(receipt.len(), 17, "no control twice");
}

#[test]
fn run_ids_differ_and_digests_do_not() {
    let _shared = shared();
    let cell = cell();
    let run = || {
        cell.call(example("hello"))
            .params(&json!({"name": "Ada"}))
            .run()
    };
    let (first, second) = (run(), run());
    assert_ne!(first.envelope()["run_id"], second.envelope()["run_id"]);
    assert_eq!(
        first.envelope()["skill"]["digest"],
        second.envelope()["skill"]["digest"]
    );
}

#[test]
fn without_json_only_the_result_is_on_stdout() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("hello"))
        .params(&json!({"name": "Ada"}))
        .run_for_people();
    assert_eq!(outcome.code, 0, "{}", outcome.show());
    let result: Value = serde_json::from_str(&outcome.stdout).expect("the result is JSON");
    assert_eq!(result, json!({"greeting": "Hello, Ada!"}));
    assert_eq!(outcome.stderr, "", "nothing to say");
}

#[test]
fn what_a_skill_prints_is_not_its_result() {
    let _shared = shared();
    let cell = cell();
    let skill = execute(
        &cell,
        "import sys\nprint('{\"fake\": 1}')\nprint('note', file=sys.stderr)\nreturn {'real': 1}",
    );
    let outcome = cell.call(&skill).flags(["--params", "{}"]).run();
    assert_eq!(outcome.assert_ok(), &json!({"real": 1}));
    let shown = cell
        .call(&skill)
        .flags(["--params", "{}", "--show-output"])
        .run();
    assert!(
        shown.envelope()["output"]["stdout"]
            .as_str()
            .is_some_and(|o| o.contains("fake")),
        "{}",
        shown.show()
    );
    assert!(
        shown.envelope()["output"]["stderr"]
            .as_str()
            .is_some_and(|o| o.contains("note")),
        "{}",
        shown.show()
    );
}

#[test]
fn a_failure_has_every_field_and_the_output() {
    let _shared = shared();
    let cell = cell();
    let skill = execute(&cell, "print('on the way')\nraise ValueError('wrong')");
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    outcome.assert_error("skill_error", 1, &["skill_exception"]);
    assert_complete(&outcome);
    assert!(
        outcome.error_message().contains("ValueError: wrong"),
        "{}",
        outcome.show()
    );
    let output = &outcome.envelope()["output"];
    assert!(
        output["stdout"]
            .as_str()
            .is_some_and(|o| o.contains("on the way")),
        "{}",
        outcome.show()
    );
    outcome.assert_readable();
}

/// Results of every JSON type come back as they are.
#[test]
fn any_json_value_is_a_result() {
    let _shared = shared();
    let cell = cell();
    for (code, value) in [
        ("None", Value::Null),
        ("True", json!(true)),
        ("-12345678901234567", json!(-12_345_678_901_234_567_i64)),
        ("1.5", json!(1.5)),
        ("'é\\u0000\"'", json!("é\u{0}\"")),
        ("[1, [2]]", json!([1, [2]])),
        ("{'ü': {}}", json!({"ü": {}})),
    ] {
        let outcome = cell
            .call(execute(&cell, &format!("return {code}")))
            .flags(["--params", "{}"])
            .run();
        assert_eq!(outcome.assert_ok(), &value, "{code}");
    }
}
