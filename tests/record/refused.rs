//! A call that comes to nothing before its record is opened is still in the log, by one line.

use crate::failures::with_log_on;
use crate::{assert_whole, events, lines, log};
use serde_json::{Value, json};
use skillcell_tests::{Cell, Level, Outcome, User, claim, shared};
use std::path::PathBuf;

const MANIFEST: &str = "
name: guarded
version: 1.0.0
execution: {command: [bash, main.sh]}
env_vars: [TOKEN]
parameters: {type: object, properties: {name: {type: string}, input_path: {type: string}}}
security_policy: {version: 1, filesystem: {params: {input_path: read}}}
";

/// A bundle that takes a name and a file, and says nothing of them.
fn guarded(cell: &Cell) -> PathBuf {
    cell.bundle(
        "guarded",
        &[("manifest.yaml", MANIFEST), ("main.sh", "echo '{}'")],
    )
}

fn wrong_params(cell: &Cell) -> Outcome {
    let params = json!({"name": {"private": "words"}});
    let outcome = cell.call(guarded(cell)).params(&params).run();
    outcome.assert_error("invalid_input", 2, &["invalid_params"]);
    outcome
}

/// The operator wants more than this build has.
fn too_much_asked(cell: &Cell) -> Outcome {
    let policy = cell.file(
        "work/policy.yaml",
        "version: 1\ndefaults: {isolation: {minimum: container}}\n",
    );
    let call = cell.call(guarded(cell)).flag("--policy").flag(policy);
    let outcome = call.flags(["--actor", "ada", "--request-id", "r-17"]).run();
    outcome.assert_error("refused", 5, &["backend_unavailable"]);
    outcome
}

/// The one line of a refused call, which the envelope and every command know of.
#[track_caller]
fn the_line(cell: &Cell, outcome: &Outcome) -> Value {
    let mut events = events(cell, outcome);
    assert_eq!(events.len(), 1, "{events:?}");
    let event = events.remove(0);
    assert_eq!(event["event"], "call_refused");
    assert_eq!(event["n"], 1);
    let (data, envelope) = (&event["data"], outcome.envelope());
    assert_eq!(data["skill"], envelope["skill"]);
    assert_eq!(data["status"], envelope["status"]);
    assert_eq!(data["reason"], envelope["error"]["code"]);
    let audit = &envelope["audit"];
    assert_eq!(audit["events"], 1, "{}", outcome.show());
    assert_eq!(audit["head"], event["hash"]);
    let segment = log(cell).join("00000001.jsonl");
    assert_eq!(audit["log"].as_str(), segment.to_str());
    assert_whole(cell);

    let listed = cell.skillcell(["audit", "list", "--json"]);
    let calls: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let run = outcome.run_id().expect("an id");
    let mine = calls.as_array().into_iter().flatten();
    let mine = mine.filter(|c| c["run_id"] == run).collect::<Vec<_>>();
    assert_eq!(mine.len(), 1, "{}", listed.show());
    assert_eq!(mine[0]["status"], envelope["status"]);
    assert_eq!(mine[0]["reason"], envelope["error"]["code"]);
    for command in [
        vec!["audit", "show", run],
        vec!["audit", "report", run, "--html"],
        vec!["audit", "export", "--format", "ocsf", "--run", run],
    ] {
        let shown = cell.skillcell(&command);
        assert_eq!(shown.code, 0, "{command:?}\n{}", shown.show());
        assert!(shown.stdout.contains("guarded"), "{}", shown.show());
    }
    event
}

#[test]
fn a_call_that_policy_refuses_is_in_the_log() {
    let _shared = shared();
    for user in [User::Caller, User::Ordinary] {
        let cell = Cell::new(Level::Sandbox, user);
        let outcome = too_much_asked(&cell);
        let data = the_line(&cell, &outcome)["data"].clone();
        assert_eq!(data["actor"], "ada");
        assert_eq!(data["request_id"], "r-17");
    }
}

claim! {
    fn a_call_with_wrong_params_is_in_the_log_and_its_params_are_not(cell) {
        let outcome = wrong_params(cell);
        let line = the_line(cell, &outcome).to_string();
        assert!(!line.contains("private") && !line.contains("words"), "{line}");
    }
}

claim! {
    fn files_that_were_not_granted_are_in_the_log_and_secrets_are_not(cell) {
        let secret = "hunter2-hunter2";
        let file = cell.file(&format!("work/{secret}/data.txt"), "");
        let outcome = cell
            .call(guarded(cell))
            .params(&json!({"input_path": file}))
            .flags(["--env", &format!("TOKEN={secret}")])
            .run();
        outcome.assert_error("denied", 3, &["path_not_granted"]);
        let line = the_line(cell, &outcome);
        let denial = &line["data"]["denials"][0];
        assert_eq!(denial["reason"], "path_not_granted");
        let target = denial["target"].as_str().expect("a target");
        assert!(target.ends_with("work/[redacted TOKEN]/data.txt"), "{line}");
        assert!(!line.to_string().contains(secret), "{line}");
    }
}

claim! {
    fn a_name_that_no_skill_has_is_not_a_call(cell) {
        wrong_params(cell);
        let before = lines(cell).len();
        let outcome = cell.call("no/such_skill").run();
        outcome.assert_error("invalid_input", 2, &["skill_not_found"]);
        assert_eq!(outcome.envelope()["audit"]["events"], 0);
        for command in ["explain", "check"] {
            cell.skillcell([command.as_ref(), guarded(cell).as_os_str()]);
        }
        assert_eq!(lines(cell).len(), before);
    }
}

/// What is the same in every cell.
fn alike(cell: &Cell, outcome: &Outcome) -> Value {
    let root = cell.path("");
    let text = outcome.envelope().to_string();
    let text = text.replace(root.to_str().expect("text"), "ROOT/");
    let mut envelope: Value = serde_json::from_str(&text).expect("JSON");
    for field in ["run_id", "usage", "audit"] {
        envelope[field] = Value::Null;
    }
    envelope
}

#[test]
fn a_log_that_can_t_be_written_changes_nothing_of_a_refusal() {
    let _shared = shared();
    for user in [User::Caller, User::Ordinary] {
        let cell = Cell::new(Level::Sandbox, user);
        let without = with_log_on(Level::Sandbox, user, "ro,mode=0777", "true");
        for refused in [wrong_params, too_much_asked] {
            let outcome = refused(&without);
            assert_eq!(
                outcome.envelope()["audit"],
                json!({"log": null, "events": 0, "head": null})
            );
            assert_eq!(outcome.stderr, "", "{}", outcome.show());
            assert_eq!(alike(&without, &outcome), alike(&cell, &refused(&cell)));
        }
    }
}
