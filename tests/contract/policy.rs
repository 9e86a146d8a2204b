//! The operator's policy: ceilings that only narrow.

use crate::{cell, execute, python_skill};
use serde_json::json;
use skillcell_tests::shared;

#[test]
fn a_ceiling_narrows_what_the_manifest_asks_for() {
    let _shared = shared();
    let cell = cell();
    let policy = cell.file(
        "work/policy.yaml",
        "version: 1\ndefaults: {resources: {timeout: 1s}}\n",
    );
    let skill = python_skill(
        &cell,
        "security_policy: {version: 1, resources: {timeout: 30s}}\n",
        "import time\nclass S:\n    def execute(self, params):\n        time.sleep(20)\n",
    );
    let outcome = cell
        .call(&skill)
        .flags(["--params", "{}", "--policy"])
        .flag(&policy)
        .run();
    outcome.assert_limit(&["timeout_exceeded"]);
    // The caller's flag is no way around it.
    let outcome = cell
        .call(&skill)
        .flags(["--params", "{}", "--timeout", "30s", "--policy"])
        .flag(&policy)
        .run();
    outcome.assert_limit(&["timeout_exceeded"]);
}

#[test]
fn every_policy_file_is_a_ceiling_for_the_others() {
    let _shared = shared();
    let cell = cell();
    cell.file(
        "home/.config/skillcell/skillcell.yaml",
        "version: 1\ndefaults: {resources: {timeout: 1s}}\n",
    );
    let wide = cell.file(
        "work/policy.yaml",
        "version: 1\ndefaults: {resources: {timeout: 60s}}\n",
    );
    let skill = execute(&cell, "import time\ntime.sleep(20)");
    let outcome = cell
        .call(skill)
        .flags(["--params", "{}", "--policy"])
        .flag(&wide)
        .run();
    outcome.assert_limit(&["timeout_exceeded"]);
}

/// Otherwise a skill, or a repository that somebody cloned, would be its own operator.
#[test]
fn a_policy_in_the_bundle_or_the_working_directory_is_no_operator_policy() {
    let _shared = shared();
    let cell = cell();
    let secret = cell.file("work/secret.txt", "secret");
    let wide = format!(
        "version: 1\ndefaults:\n  trust: allow\n  isolation: {{minimum: process}}\n  filesystem: {{read: [{}]}}\n",
        cell.path("work").display()
    );
    cell.file("work/skillcell.yaml", &wide);
    let skill = python_skill(
        &cell,
        "parameters: {type: object, properties: {path: {type: string}}}\nsecurity_policy: {version: 1, filesystem: {params: {path: read}}}\n",
        "class S:\n    def execute(self, params):\n        return open(params['path']).read()\n",
    );
    cell.file("bundles/subject/skillcell.yaml", &wide);
    let outcome = cell.call(skill).params(&json!({"path": secret})).run();
    outcome.assert_status("denied", 3);
}

/// The same roots in a policy of the operator do allow it: the test above can fail.
#[test]
fn a_root_in_an_operator_policy_allows_params_under_it() {
    let _shared = shared();
    let cell = cell();
    let file = cell.file("work/data/file.txt", "yours");
    let root = std::fs::canonicalize(cell.path("work/data")).expect("own folder");
    let policy = cell.file(
        "work/policy.yaml",
        format!(
            "version: 1\ndefaults:\n  filesystem: {{read: [{}]}}\n",
            root.display()
        ),
    );
    let skill = python_skill(
        &cell,
        "parameters: {type: object, properties: {path: {type: string}}}\nsecurity_policy: {version: 1, filesystem: {params: {path: read}}}\n",
        "class S:\n    def execute(self, params):\n        return open(params['path']).read()\n",
    );
    let outcome = cell
        .call(skill)
        .params(&json!({"path": file}))
        .flag("--policy")
        .flag(&policy)
        .run();
    assert_eq!(outcome.assert_ok(), "yours");
}

#[test]
fn a_broken_policy_stops_every_call() {
    let _shared = shared();
    let cell = cell();
    for (text, place) in [
        ("version: 1\ndefualts: {}\n", ":2:1"),
        (
            "version: 1\ndefaults:\n  resources: {timeout: never}\n",
            ":3:",
        ),
        ("version: 9\n", ":1:"),
        ("version: 1\ndefaults:\n  network:\n", ":3:"),
        ("version: [\n", "policy.yaml:"),
    ] {
        let policy = cell.file("work/policy.yaml", text);
        let outcome = cell
            .call(execute(&cell, "return 1"))
            .flags(["--params", "{}", "--policy"])
            .flag(&policy)
            .run();
        outcome.assert_error("invalid_input", 2, &["invalid_policy"]);
        assert!(
            outcome.error_message().contains("policy.yaml")
                && outcome.error_message().contains(place),
            "{text}\n{}",
            outcome.show()
        );
        outcome.assert_readable();
    }
    let absent = cell.path("work/absent.yaml");
    let outcome = cell
        .call(execute(&cell, "return 1"))
        .flags(["--params", "{}", "--policy"])
        .flag(&absent)
        .run();
    assert_eq!(outcome.code, 2, "{}", outcome.show());
}

#[test]
fn a_policy_can_forbid_trust() {
    let _shared = shared();
    let cell = cell();
    let policy = cell.file("work/policy.yaml", "version: 1\ndefaults: {trust: deny}\n");
    let call = cell.call(execute(&cell, "return 1")).flags([
        "--params",
        "{}",
        "--isolation",
        "process",
        "--trust",
        "--policy",
    ]);
    let outcome = call.flag(&policy).run();
    assert!(matches!(outcome.code, 3 | 5), "{}", outcome.show());
    assert_eq!(
        outcome.error_code(),
        "isolation_too_low",
        "{}",
        outcome.show()
    );
}
