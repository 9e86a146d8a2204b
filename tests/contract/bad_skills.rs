//! Skills that don't load or don't behave: exit 1, and the traceback shows the skill's own files only.

use crate::{cell, execute, python_skill};
use skillcell_tests::{Outcome, shared};

fn load(code: &str) -> Outcome {
    let cell = cell();
    let skill = python_skill(&cell, "", code);
    cell.call(skill).flags(["--params", "{}"]).run()
}

/// Frames are told as `file:line in function`, by the path within the bundle.
#[track_caller]
fn assert_own_files_only(outcome: &Outcome) {
    let message = outcome.error_message();
    for line in message.lines().filter(|line| line.contains(".py")) {
        let own = ["skill.py", "helper.py"]
            .iter()
            .any(|name| line.contains(name));
        assert!(own, "a frame that is not the skill's: {line}");
    }
    for noise in [
        "importlib",
        "runner",
        "exec_module",
        "/usr/",
        "site-packages",
    ] {
        assert!(
            !message.contains(noise),
            "`{noise}` is not the skill's\n{}",
            outcome.show()
        );
    }
    outcome.assert_readable();
}

#[test]
fn a_syntax_error_is_shown_with_its_line() {
    let _shared = shared();
    let outcome = load("class Subject:\n    def execute(self, params)\n        return 1\n");
    outcome.assert_error("skill_error", 1, &["skill_load"]);
    assert!(
        outcome.error_message().contains("skill.py")
            && outcome.error_message().contains("skill.py:2"),
        "{}",
        outcome.show()
    );
    assert!(
        outcome.error_message().contains("SyntaxError"),
        "{}",
        outcome.show()
    );
    assert_own_files_only(&outcome);
}

#[test]
fn an_exception_at_import_is_shown_with_its_line() {
    let _shared = shared();
    let outcome = load("import json\n\nraise RuntimeError('not today')\n");
    outcome.assert_error("skill_error", 1, &["skill_load"]);
    assert!(
        outcome.error_message().contains("not today")
            && outcome.error_message().contains("skill.py:3"),
        "{}",
        outcome.show()
    );
    assert_own_files_only(&outcome);
}

#[test]
fn a_missing_package_is_named() {
    let _shared = shared();
    let outcome = load("import no_such_package\n");
    outcome.assert_error("skill_error", 1, &["skill_load"]);
    assert!(
        outcome.error_message().contains("no_such_package"),
        "{}",
        outcome.show()
    );
    assert_own_files_only(&outcome);
}

#[test]
fn no_class_is_told() {
    let _shared = shared();
    for code in [
        "x = 1\n",
        "class Subject:\n    pass\n",
        "from collections import OrderedDict\n",
    ] {
        let outcome = load(code);
        outcome.assert_error("skill_error", 1, &["skill_load"]);
        assert!(
            outcome.error_message().contains("class"),
            "{}",
            outcome.show()
        );
        assert_own_files_only(&outcome);
    }
}

#[test]
fn two_classes_are_told_by_name() {
    let _shared = shared();
    let one =
        |name: &str| format!("class {name}:\n    def execute(self, params):\n        return 1\n");
    let outcome = load(&(one("First") + &one("Second")));
    outcome.assert_error("skill_error", 1, &["skill_load"]);
    let message = outcome.error_message();
    assert!(
        message.contains("First") && message.contains("Second"),
        "{}",
        outcome.show()
    );
}

#[test]
fn an_exception_is_shown_through_the_skill_s_own_frames() {
    let _shared = shared();
    let cell = cell();
    let skill = cell.bundle("deep", &[
        ("manifest.yaml", "name: deep\nversion: 1.0.0\n"),
        ("skill.py", "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport helper\nclass Deep:\n    def execute(self, params):\n        return helper.parse('{')\n"),
        ("helper.py", "import json\ndef parse(text):\n    return json.loads(text)\n"),
    ]);
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    outcome.assert_error("skill_error", 1, &["skill_exception"]);
    let message = outcome.error_message();
    assert!(
        message.contains("skill.py") && message.contains("helper.py"),
        "{}",
        outcome.show()
    );
    assert!(message.contains("JSONDecodeError"), "{}", outcome.show());
    assert_own_files_only(&outcome);
}

#[test]
fn exits_and_signals_are_told() {
    let _shared = shared();
    let cell = cell();
    for (body, code, word) in [
        ("import os\nos._exit(7)", "skill_exit", "7"),
        ("import os\nos._exit(0)", "skill_no_result", ""),
        (
            "import os\nos.kill(os.getpid(), 9)",
            "skill_signal",
            "signal 9",
        ),
        (
            "import ctypes\nctypes.string_at(0)",
            "skill_signal",
            "signal 11",
        ),
    ] {
        let outcome = cell
            .call(execute(&cell, body))
            .flags(["--params", "{}"])
            .run();
        outcome.assert_error("skill_error", 1, &[code]);
        assert!(outcome.error_message().contains(word), "{}", outcome.show());
    }
}

#[test]
fn async_skills_and_constructors_with_config_work() {
    let _shared = shared();
    let cell = cell();
    for code in [
        "class A:\n    async def execute(self, params):\n        return 1\n",
        "class A:\n    async def aexecute(self, params):\n        return 1\n",
        "class A:\n    def __init__(self, config=None):\n        self.c = config\n    def execute(self, params):\n        return 1\n",
        "class A:\n    def __init__(self, config):\n        self.c = dict(config)\n    def execute(self, params):\n        return 1\n",
    ] {
        let skill = python_skill(&cell, "", code);
        let outcome = cell.call(skill).flags(["--params", "{}"]).run();
        assert_eq!(outcome.assert_ok(), 1, "{code}");
    }
}

#[test]
fn a_command_that_prints_no_json_is_told() {
    let _shared = shared();
    let cell = cell();
    let skill = |script: &str| {
        cell.bundle(
            "command",
            &[
                (
                    "manifest.yaml",
                    "name: command\nversion: 1.0.0\nexecution: {command: [sh, main.sh]}\n",
                ),
                ("main.sh", script),
            ],
        )
    };
    let outcome = cell
        .call(skill("echo not json"))
        .flags(["--params", "{}"])
        .run();
    outcome.assert_error("invalid_result", 1, &["result_not_json"]);
    let outcome = cell
        .call(skill("echo sorry >&2; exit 3"))
        .flags(["--params", "{}"])
        .run();
    outcome.assert_error("skill_error", 1, &["skill_exit"]);
    assert!(
        outcome.envelope()["output"]["stderr"]
            .as_str()
            .is_some_and(|o| o.contains("sorry")),
        "{}",
        outcome.show()
    );
    let outcome = cell
        .call(skill("cat"))
        .params(&serde_json::json!({"a": [1]}))
        .run();
    assert_eq!(outcome.assert_ok(), &serde_json::json!({"a": [1]}));
}

#[test]
fn a_missing_interpreter_is_named() {
    let _shared = shared();
    let cell = cell();
    let skill = cell.bundle("command", &[
        ("manifest.yaml", "name: command\nversion: 1.0.0\nexecution: {command: [no-such-interpreter, main]}\n"),
        ("main", ""),
    ]);
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    outcome.assert_error("invalid_input", 2, &["interpreter_missing"]);
    assert!(
        outcome.error_message().contains("no-such-interpreter"),
        "{}",
        outcome.show()
    );
}
