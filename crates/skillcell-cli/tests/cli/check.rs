use crate::{example, json, skill, skillcell, whole};
use std::fs;

#[test]
fn the_examples_are_without_errors() {
    for name in [
        "hello",
        "shell-tool",
        "node_tool",
        "byte-sizes",
        "needs_package",
        "file_report",
    ] {
        let output = skillcell(&["check", example(name).to_str().unwrap()]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name}: {text}");
    }
}

#[test]
fn every_problem_of_every_argument_is_reported_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let broken = skill(dir.path(), "broken", "name: broken\nrequirements: [\n");
    let unknown = skill(
        dir.path(),
        "unknown",
        "name: unknown\nsecurity_policy:\n  version: 1\n  netwrk: {}\n",
    );
    let wrong = skill(dir.path(), "wrong", "name: wrong\nrequirements: requests\n");
    let schema = skill(
        dir.path(),
        "schema",
        "name: schema\nparameters: {type: strin}\n",
    );
    let warned = skill(
        dir.path(),
        "warned",
        "name: warned\nrequirement: [requests]\nparameters:\n  type: object\n  properties: {a: {type: string}}\nsecurity_policy:\n  version: 1\n  filesystem: {params: {b: read}}\n",
    );
    let command = skill(
        dir.path(),
        "command",
        "name: command\nexecution: {command: [./missing.sh]}\n",
    );
    let policy = dir.path().join("skillcell.yaml");
    fs::write(&policy, "version: 1\ndefaults:\n  netwrk: {}\n").unwrap();
    let named = dir.path().join("team.txt");
    fs::write(
        &named,
        "version: 1\ndefaults:\n  resources: {memory: [1]}\n",
    )
    .unwrap();
    let own = dir.path().join("security_policy.yaml");
    fs::write(&own, "version: 1\nenv: 5\n").unwrap();
    let missing = dir.path().join("absent.yaml");
    let output = skillcell(&[
        "check",
        &broken,
        &unknown,
        &wrong,
        &schema,
        &warned,
        &command,
        policy.to_str().unwrap(),
        own.to_str().unwrap(),
        missing.to_str().unwrap(),
        "--policy",
        named.to_str().unwrap(),
    ]);
    insta::assert_snapshot!(whole(&output, dir.path()));
}

#[test]
fn problems_as_json_have_file_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = skill(dir.path(), "wrong", "name: wrong\nrequirements: requests\n");
    let output = skillcell(&["check", &wrong, "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report = json(&output);
    assert_eq!(report["errors"], 1);
    let problem = &report["problems"][0];
    assert_eq!(problem["severity"], "error");
    assert_eq!(problem["file"], format!("{wrong}/manifest.yaml"));
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&2.into(), &15.into())
    );
}

#[test]
fn text_from_a_bundle_can_not_drive_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = skill(
        dir.path(),
        "hostile",
        "name: \"\\e[2J\\u202e\"\nsecurity_policy: {version: 1}\n",
    );
    let output = skillcell(&["check", &hostile]);
    assert_eq!(output.status.code(), Some(2));
    for bytes in [&output.stdout, &output.stderr] {
        assert!(!bytes.contains(&0x1b));
        assert!(!String::from_utf8_lossy(bytes).contains('\u{202e}'));
    }
}
