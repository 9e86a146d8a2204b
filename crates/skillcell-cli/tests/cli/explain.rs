use crate::{example, json, skill, skillcell, stdout};
use std::fs;

#[test]
fn explain_says_where_each_grant_comes_from_and_what_narrowed_it() {
    let dir = tempfile::tempdir().unwrap();
    let asking = skill(
        dir.path(),
        "asking",
        "name: asking\nversion: '1.2'\nrequirements: [requests>=2]\nenv_vars: {API_KEY: {required: true}}\nparameters:\n  type: object\n  properties: {city: {type: string}, days: {type: [integer, 'null']}}\n  required: [city]\nsecurity_policy:\n  version: 1\n  resources: {memory: 512MiB, timeout: 10s}\n",
    );
    let policy = dir.path().join("skillcell.yaml");
    fs::write(
        &policy,
        "version: 1\ndefaults:\n  resources: {memory: 128MiB}\n",
    )
    .unwrap();
    let args = ["explain", &asking, "--policy", policy.to_str().unwrap()];
    let output = skillcell(&args);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let row = |start: &str| {
        let line = text.lines().find(|l| l.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("no {start} in {text}"))
    };
    let memory = row("resources.memory");
    assert!(
        memory.contains("512MiB") && memory.contains("128MiB"),
        "{memory}"
    );
    assert!(memory.contains("the manifest"), "{memory}");
    assert!(memory.contains("skillcell.yaml (defaults)"), "{memory}");
    assert!(row("resources.timeout").ends_with('-'));
    assert!(row("city").ends_with("required"));
    assert!(row("days").contains("integer or null"));
    assert!(row("requests").contains(">=2"));
    assert!(row("API_KEY is required").contains("--env API_KEY"));
    for control in ["network", "memory", "syscalls"] {
        row(control);
    }

    let report = json(&skillcell(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["missing_env"][0], "API_KEY");
    assert_eq!(report["plan"]["receipt"].as_array().unwrap().len(), 17);
    let grants = report["plan"]["grants"].as_array().unwrap();
    let memory = grants.iter().find(|g| g["what"] == "resources.memory");
    assert_eq!(memory.unwrap()["narrowed_by"]["from"], "policy");
}

#[test]
fn explain_needs_no_params_but_checks_those_that_are_given() {
    let hello = example("hello");
    let hello = hello.to_str().unwrap();
    assert_eq!(skillcell(&["explain", hello]).status.code(), Some(0));
    let bad = skillcell(&["explain", hello, "--params", "[]", "--json"]);
    assert_eq!(bad.status.code(), Some(2));
    assert_eq!(json(&bad)["error"]["code"], "invalid_params");
}

#[test]
fn explain_says_how_paths_in_params_are_granted() {
    let output = skillcell(&["explain", example("file_report").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains("by --read PATH only"), "{text}");
    assert!(text.contains("by --write PATH only"), "{text}");
}

#[test]
fn explain_of_an_agent_skill_names_its_scripts() {
    let output = skillcell(&["explain", example("shell-tool").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout(&output).contains("scripts/count.sh"));
}

#[test]
fn doctor_answers_for_every_control_of_both_levels() {
    let output = skillcell(&["doctor", "--json"]);
    let report = json(&output);
    let want = if report["ready"] == true { 0 } else { 5 };
    assert_eq!(output.status.code(), Some(want));
    for level in report["levels"].as_array().unwrap() {
        let controls = level["controls"].as_array().unwrap();
        assert_eq!(controls.len(), 17);
        for row in controls {
            let fix = row["missing"]["fix"].as_str();
            assert!(
                row["mechanism"].is_string() || fix.is_some_and(|f| !f.is_empty()),
                "{row}"
            );
        }
    }
    let text = stdout(&skillcell(&["doctor"]));
    for word in [
        "Landlock",
        "cgroups",
        "python3",
        "Level sandbox",
        "Level process",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn an_empty_cache_lists_and_prunes_nothing() {
    assert_eq!(
        json(&skillcell(&["deps", "list", "--json"]))["environments"],
        serde_json::json!([])
    );
    assert_eq!(
        stdout(&skillcell(&["deps", "prune", "--all"])),
        "nothing to remove\n"
    );
}

#[test]
fn preparing_reports_every_skill_and_not_only_the_first_failure() {
    let hello = example("hello");
    let args = [
        "deps",
        "prepare",
        "no/such_skill",
        hello.to_str().unwrap(),
        "--json",
    ];
    let output = skillcell(&args);
    assert_eq!(output.status.code(), Some(2));
    let report = json(&output);
    assert_eq!(report[0]["error"]["code"], "skill_not_found");
    assert_eq!(report[1]["status"], "ok");
}
