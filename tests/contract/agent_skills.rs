//! Agent Skills: scripts of a bundle with `SKILL.md`.

use crate::cell;
use serde_json::json;
use skillcell_tests::{Cell, shared};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const FRONTMATTER: &str = "---\nname: subject\ndescription: For tests.\n---\n\n# Subject\n";

fn agent_skill(cell: &Cell, files: &[(&str, &str)]) -> PathBuf {
    let mut all = vec![("SKILL.md", FRONTMATTER)];
    all.extend(files);
    cell.bundle("subject", &all)
}

#[test]
fn scripts_of_every_runtime_run() {
    let _shared = shared();
    let cell = cell();
    let files = [
        (
            "scripts/a.py",
            "import json, sys\nprint(json.dumps(sys.argv[1:]))\n",
        ),
        ("scripts/a.sh", "printf '[\"%s\", \"%s\"]' \"$1\" \"$2\"\n"),
        (
            "scripts/a.bash",
            "#!/bin/bash\na=(\"$@\"); printf '[\"%s\", \"%s\"]' \"${a[0]}\" \"${a[1]}\"\n",
        ),
        (
            "scripts/a.js",
            "console.log(JSON.stringify(process.argv.slice(2)))\n",
        ),
        (
            "scripts/a",
            "#!/usr/bin/env python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n",
        ),
    ];
    let skill = agent_skill(&cell, &files);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(skill.join("scripts/a"), executable).expect("own file");
    for (entry, _) in files {
        let outcome = cell
            .call(&skill)
            .flags(["--entry", entry])
            .arguments(["one two", "-x"])
            .run();
        assert_eq!(outcome.assert_ok(), &json!(["one two", "-x"]), "{entry}");
    }
}

#[test]
fn the_working_directory_is_the_root_of_the_bundle() {
    let _shared = shared();
    let cell = cell();
    let skill = agent_skill(
        &cell,
        &[
            ("scripts/a.sh", "cat data/note.txt\n"),
            ("data/note.txt", "{\"here\": true}"),
        ],
    );
    let outcome = cell.call(skill).flags(["--entry", "scripts/a.sh"]).run();
    assert_eq!(outcome.assert_ok(), &json!({"here": true}));
}

#[test]
fn output_that_is_no_json_is_the_result_as_text() {
    let _shared = shared();
    let cell = cell();
    let skill = agent_skill(&cell, &[("scripts/a.sh", "echo plain text\n")]);
    let outcome = cell.call(skill).flags(["--entry", "scripts/a.sh"]).run();
    assert_eq!(
        outcome.assert_ok(),
        &json!({"stdout": "plain text\n", "exit_code": 0})
    );
}

#[test]
fn a_failing_script_is_a_failure_with_its_exit_code() {
    let _shared = shared();
    let cell = cell();
    let skill = agent_skill(&cell, &[("scripts/a.sh", "echo why >&2\nexit 3\n")]);
    let outcome = cell.call(skill).flags(["--entry", "scripts/a.sh"]).run();
    outcome.assert_error("skill_error", 1, &["skill_exit"]);
    assert!(outcome.error_message().contains('3'), "{}", outcome.show());
    assert!(
        outcome.envelope()["output"]["stderr"]
            .as_str()
            .is_some_and(|o| o.contains("why")),
        "{}",
        outcome.show()
    );
}

#[test]
fn without_an_entry_the_scripts_are_listed() {
    let _shared = shared();
    let cell = cell();
    let skill = agent_skill(&cell, &[("scripts/a.sh", "echo 1\n")]);
    let outcome = cell.call(skill).run();
    assert_eq!(outcome.code, 2, "{}", outcome.show());
    let hint = outcome.envelope()["error"]["hint"]
        .as_str()
        .unwrap_or_default();
    assert!(hint.contains("--entry"), "{}", outcome.show());
}

#[test]
fn an_entry_outside_the_bundle_is_refused() {
    let _shared = shared();
    let cell = cell();
    cell.file("bundles/outside.sh", "echo 1\n");
    let skill = agent_skill(&cell, &[("scripts/a.sh", "echo 1\n")]);
    std::os::unix::fs::symlink("/bin/sh", skill.join("scripts/link.sh")).expect("own folder");
    for entry in [
        "../outside.sh",
        "/bin/sh",
        "scripts/../../outside.sh",
        "scripts/absent.sh",
        "scripts/link.sh",
    ] {
        let outcome = cell.call(&skill).flags(["--entry", entry]).run();
        assert_eq!(outcome.code, 2, "{entry}\n{}", outcome.show());
        outcome.assert_readable();
    }
}

/// The public validators reject unknown keys, so the policy is a file that `metadata` names.
#[test]
fn a_security_policy_is_found_through_the_metadata() {
    let _shared = shared();
    let cell = cell();
    let skill = cell.bundle("subject", &[
        ("SKILL.md", "---\nname: subject\ndescription: For tests.\nmetadata:\n  security-policy: security_policy.yaml\n---\n"),
        ("security_policy.yaml", "version: 1\nresources: {timeout: 1s}\n"),
        ("scripts/a.sh", "sleep 20\n"),
    ]);
    let outcome = cell.call(&skill).flags(["--entry", "scripts/a.sh"]).run();
    outcome.assert_limit(&["timeout_exceeded"]);
    cell.file(
        "bundles/subject/security_policy.yaml",
        "version: 1\nresuorces: {}\n",
    );
    let outcome = cell.call(&skill).flags(["--entry", "scripts/a.sh"]).run();
    outcome.assert_error("invalid_input", 2, &["invalid_policy", "invalid_manifest"]);
    assert!(
        outcome.error_message().contains("security_policy.yaml:2:1"),
        "{}",
        outcome.show()
    );
}

#[test]
fn broken_frontmatter_is_told_by_its_place() {
    let _shared = shared();
    let cell = cell();
    for text in [
        "---\nname: [\n---\n",
        "---\nname: subject\n",
        "no frontmatter\n",
    ] {
        let skill = cell.bundle(
            "subject",
            &[("SKILL.md", text), ("scripts/a.sh", "echo 1\n")],
        );
        let outcome = cell.call(skill).flags(["--entry", "scripts/a.sh"]).run();
        outcome.assert_error("invalid_input", 2, &["invalid_manifest"]);
        assert!(
            outcome.error_message().contains("SKILL.md"),
            "{}",
            outcome.show()
        );
        outcome.assert_readable();
    }
}
