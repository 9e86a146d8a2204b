//! Levels of isolation: a flag may raise what policy asks for, never lower it.

use crate::{cell, execute, python_skill};
use skillcell_tests::{Cell, Level, User, shared};

#[test]
fn a_lower_level_needs_trust() {
    let _shared = shared();
    let cell = cell();
    let skill = execute(&cell, "return 1");
    let refused = cell
        .call(&skill)
        .flags(["--params", "{}", "--isolation", "process"])
        .run();
    assert!(matches!(refused.code, 3 | 5), "{}", refused.show());
    assert_eq!(
        refused.error_code(),
        "isolation_too_low",
        "{}",
        refused.show()
    );
    let hint = refused.envelope()["error"]["hint"]
        .as_str()
        .unwrap_or_default();
    assert!(hint.contains("--trust"), "{}", refused.show());
}

#[test]
fn trust_is_printed_loudly_and_shown_in_the_receipt() {
    let _shared = shared();
    let cell = Cell::new(Level::Process, User::Caller);
    let outcome = cell
        .call(execute(&cell, "return 1"))
        .flags(["--params", "{}"])
        .run_for_people();
    assert_eq!(outcome.code, 0, "{}", outcome.show());
    assert!(
        outcome.stderr.contains("process") && outcome.stderr.contains("trust"),
        "{}",
        outcome.show()
    );
}

/// A manifest that asks to run in the caller's process asks for trust; it doesn't get it by asking.
#[test]
fn in_process_in_a_manifest_is_no_permission() {
    let _shared = shared();
    let cell = cell();
    for mode in [
        "execution: in_process\n",
        "execution: process\n",
        "execution: subprocess\n",
    ] {
        let skill = python_skill(
            &cell,
            mode,
            "import os\nclass S:\n    def execute(self, params):\n        return os.getpid()\n",
        );
        let outcome = cell.call(skill).flags(["--params", "{}"]).run();
        // In the cell's own pid namespace ids are small.
        assert!(
            outcome.assert_ok().as_u64().is_some_and(|pid| pid < 10),
            "{mode}\n{}",
            outcome.show()
        );
    }
}

#[test]
fn levels_that_are_not_built_are_refused_not_replaced() {
    let _shared = shared();
    let cell = cell();
    for level in ["wasm", "container", "microvm"] {
        let by_flag = cell
            .call(execute(&cell, "return 1"))
            .flags(["--params", "{}", "--isolation", level])
            .run();
        assert_eq!(by_flag.code, 5, "{level}\n{}", by_flag.show());
        by_flag.assert_error("refused", 5, &["backend_unavailable"]);
        let skill = python_skill(
            &cell,
            &format!("execution: {level}\n"),
            "class S:\n    def execute(self, params):\n        return 1\n",
        );
        let by_manifest = cell.call(skill).flags(["--params", "{}"]).run();
        by_manifest.assert_error("refused", 5, &["backend_unavailable"]);
    }
}

/// What can't be enforced is refused: network rules need a network namespace.
#[test]
fn network_rules_are_refused_at_the_process_level() {
    let _shared = shared();
    let cell = cell();
    let policy = cell.file("work/policy.yaml", "version: 1\ndefaults:\n  isolation: {minimum: process}\n  network: {egress: [{domains: [api.example.com], ports: [443]}]}\n");
    let skill = python_skill(
        &cell,
        "execution: process\nsecurity_policy:\n  version: 1\n  network: {egress: [{domains: [api.example.com], ports: [443]}]}\n",
        "class S:\n    def execute(self, params):\n        return 'ran'\n",
    );
    let outcome = cell
        .call(skill)
        .flags(["--params", "{}", "--policy"])
        .flag(&policy)
        .run();
    outcome.assert_error(
        "refused",
        5,
        &["control_unavailable", "backend_unavailable"],
    );
    assert!(!outcome.stdout.contains("\"ran\""), "{}", outcome.show());
}
