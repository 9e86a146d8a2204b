//! The other commands.

use crate::{cell, python_skill};
use serde_json::Value;
use skillcell_tests::{Cell, Outcome, example, shared};

fn skillcell(cell: &Cell, arguments: &[&str]) -> Outcome {
    let outcome = cell.skillcell(arguments);
    outcome.assert_readable();
    outcome
}

#[track_caller]
fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|e| panic!("{e}\n{}", outcome.show()))
}

fn path(name: &str) -> String {
    example(name).to_string_lossy().into_owned()
}

#[test]
fn explain_shows_each_grant_and_where_it_came_from() {
    let _shared = shared();
    let cell = cell();
    let outcome = skillcell(&cell, &["explain", &path("file_report")]);
    assert_eq!(outcome.code, 0, "{}", outcome.show());
    for word in ["file_report", "sandbox", "128MiB", "10s", "manifest"] {
        assert!(
            outcome.stdout.contains(word),
            "no `{word}`\n{}",
            outcome.show()
        );
    }
    let outcome = skillcell(&cell, &["explain", &path("file_report"), "--json"]);
    let plan = json(&outcome);
    assert!(
        plan.to_string().contains("resources.memory"),
        "{}",
        outcome.show()
    );
}

#[test]
fn check_accepts_every_example() {
    let _shared = shared();
    let cell = cell();
    let skills = [
        "hello",
        "needs_package",
        "file_report",
        "node_tool",
        "shell-tool",
        "byte-sizes",
    ]
    .map(path);
    let mut arguments = vec!["check"];
    arguments.extend(skills.iter().map(String::as_str));
    let outcome = skillcell(&cell, &arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.show());
}

#[test]
fn check_tells_every_error_by_file_line_and_column() {
    let _shared = shared();
    let cell = cell();
    let skill = python_skill(
        &cell,
        "security_policy:\n  version: 1\n  netwrok: {}\n",
        "class S:\n    def execute(self, p): ...\n",
    );
    let outcome = skillcell(&cell, &["check", &path("hello"), &skill.to_string_lossy()]);
    assert_eq!(outcome.code, 2, "{}", outcome.show());
    let text = outcome.stdout.clone() + &outcome.stderr;
    assert!(
        text.contains("manifest.yaml:5:3") && text.contains("netwrok"),
        "{}",
        outcome.show()
    );
}

#[test]
fn doctor_says_what_the_host_can_enforce() {
    let _shared = shared();
    let cell = cell();
    let outcome = skillcell(&cell, &["doctor"]);
    assert_eq!(
        outcome.code,
        0,
        "the suite runs on hosts that can\n{}",
        outcome.show()
    );
    let text = outcome.stdout.to_lowercase();
    for word in ["namespace", "landlock", "seccomp", "cgroup"] {
        assert!(text.contains(word), "no `{word}`\n{}", outcome.show());
    }
}

/// Every schema is one, and the envelope of a real call is valid by the published fields.
#[test]
fn schema_prints_json_schemas() {
    let _shared = shared();
    let cell = cell();
    let help = skillcell(&cell, &["schema", "--help"]);
    assert_eq!(help.code, 0, "{}", help.show());
    for name in ["envelope", "security-policy", "policy"] {
        let outcome = skillcell(&cell, &["schema", name]);
        assert_eq!(outcome.code, 0, "{}", outcome.show());
        let schema = json(&outcome);
        assert!(
            schema["$schema"]
                .as_str()
                .is_some_and(|s| s.contains("json-schema.org")),
            "{name}: {schema}"
        );
    }
    let schema = json(&skillcell(&cell, &["schema", "envelope"]));
    let properties = schema["properties"].as_object().expect("properties");
    let call = cell
        .call(example("hello"))
        .params(&serde_json::json!({"name": "Ada"}))
        .run();
    for field in call.envelope().as_object().expect("an object").keys() {
        assert!(
            properties.contains_key(field),
            "the schema has no `{field}`"
        );
    }
}

#[test]
fn completions_are_made_for_common_shells() {
    let _shared = shared();
    let cell = cell();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = skillcell(&cell, &["completions", shell]);
        assert_eq!(outcome.code, 0, "{}", outcome.show());
        assert!(
            outcome.stdout.contains("skillcell") && outcome.stdout.contains("strict-denials"),
            "{shell}"
        );
    }
    let mut bash = cell.command("bash");
    bash.args(["-n", "/dev/stdin"]);
    let text = skillcell(&cell, &["completions", "bash"]).stdout;
    skillcell_tests::Child::spawn(bash, Some(text.as_bytes()))
        .finish()
        .expect_success("bash reads the completions");
}

#[test]
fn help_and_version_are_on_stdout() {
    let _shared = shared();
    let cell = cell();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["deps", "--help"],
    ] {
        let outcome = skillcell(&cell, arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.show());
        assert!(
            !outcome.stdout.is_empty() && outcome.stderr.is_empty(),
            "{arguments:?}\n{}",
            outcome.show()
        );
    }
    let help = skillcell(&cell, &["run", "--help"]).stdout;
    for flag in [
        "--params",
        "--params-file",
        "--env",
        "--read",
        "--write",
        "--timeout",
        "--memory",
        "--json",
        "--strict-denials",
        "--isolation",
        "--trust",
        "--policy",
        "--deps",
        "--python",
        "--entry",
        "--allow-degraded",
    ] {
        assert!(help.contains(flag), "run --help has no {flag}");
    }
}

#[test]
fn deps_list_and_prune_work_on_an_empty_cache() {
    let _shared = shared();
    let cell = cell();
    for arguments in [&["deps", "list"][..], &["deps", "prune"]] {
        let outcome = skillcell(&cell, arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.show());
    }
}

/// A closed pipe (`| head`) is no reason to panic.
#[test]
fn a_closed_stdout_is_no_panic() {
    let _shared = shared();
    let cell = cell();
    let mut command = cell.command("bash");
    let binary = skillcell_tests::Stage::get().binary();
    command
        .args(["-c", "\"$0\" completions bash | true; exit 0"])
        .arg(binary);
    let finished = skillcell_tests::Child::spawn(command, None).finish();
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}
