//! Broken bundles: a clear error, exit 2, nothing left behind.

use crate::{cell, python_skill};
use skillcell_tests::{Cell, Outcome, shared};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const FINE: &str = "class Fine:\n    def execute(self, params):\n        return 1\n";

fn run(cell: &Cell, skill: impl AsRef<Path>) -> Outcome {
    cell.call(skill.as_ref()).flags(["--params", "{}"]).run()
}

#[track_caller]
fn assert_invalid(outcome: &Outcome, codes: &[&str], words: &[&str]) {
    outcome.assert_error("invalid_input", 2, codes);
    for word in words {
        assert!(
            outcome.error_message().contains(word),
            "no `{word}`\n{}",
            outcome.show()
        );
    }
    assert!(
        outcome
            .stderr
            .contains(outcome.error_message().lines().next().unwrap_or_default())
            || outcome.stderr.is_empty(),
        "stderr says something else\n{}",
        outcome.show()
    );
    outcome.assert_readable();
}

#[test]
fn no_such_skill_is_named_with_where_it_was_looked_for() {
    let _shared = shared();
    let cell = cell();
    assert_invalid(&run(&cell, "no/such"), &["skill_not_found"], &["no/such"]);
    assert_invalid(
        &run(&cell, cell.path("work/absent")),
        &["skill_not_found"],
        &["absent"],
    );
    cell.folder("work/empty");
    assert_invalid(
        &run(&cell, cell.path("work/empty")),
        &["skill_not_found", "invalid_manifest"],
        &["empty"],
    );
}

#[test]
fn broken_yaml_is_told_by_file_line_and_column() {
    let _shared = shared();
    let cell = cell();
    let skill = cell.bundle(
        "broken",
        &[
            (
                "manifest.yaml",
                "name: broken\nversion: \"1.0\nparameters: {\n",
            ),
            ("skill.py", FINE),
        ],
    );
    let outcome = run(&cell, skill);
    assert_invalid(&outcome, &["invalid_manifest"], &["manifest.yaml:"]);
    let place = outcome
        .error_message()
        .split("manifest.yaml:")
        .nth(1)
        .unwrap_or_default();
    let mut numbers = place.split(':');
    assert!(
        numbers
            .next()
            .is_some_and(|line| line.parse::<u32>().is_ok()),
        "{place}"
    );
    let column = numbers.next().unwrap_or_default();
    assert!(column.starts_with(|c: char| c.is_ascii_digit()), "{place}");
}

#[test]
fn unknown_policy_fields_are_errors_with_their_place() {
    let _shared = shared();
    let cell = cell();
    for (manifest, word, line) in [
        (
            "security_policy:\n  version: 1\n  netwrok: {}\n",
            "netwrok",
            "manifest.yaml:5:",
        ),
        (
            "security_policy:\n  version: 1\n  resources: {memroy: 1GiB}\n",
            "memroy",
            "manifest.yaml:5:",
        ),
        (
            "security_policy:\n  version: 1\n  filesystem: {write: [/]}\n",
            "write",
            "manifest.yaml:5:",
        ),
    ] {
        let outcome = run(&cell, python_skill(&cell, manifest, FINE));
        assert_invalid(
            &outcome,
            &["invalid_manifest", "invalid_policy"],
            &[word, line],
        );
    }
}

#[test]
fn wrong_types_and_values_are_errors_with_their_place() {
    let _shared = shared();
    let cell = cell();
    for (manifest, word) in [
        ("security_policy: everything\n", "security_policy"),
        ("security_policy:\n  version: 2\n", "version"),
        ("security_policy:\n  resources: {}\n", "version"),
        (
            "security_policy:\n  version: 1\n  resources: {timeout: soon}\n",
            "soon",
        ),
        (
            "security_policy:\n  version: 1\n  resources: {memory: -1}\n",
            "manifest.yaml:5:",
        ),
        (
            "security_policy:\n  version: 1\n  env: [LD_PRELOAD]\n",
            "LD_PRELOAD",
        ),
        (
            "security_policy:\n  version: 1\n  network: {egress: [{domains: ['*']}]}\n",
            "*",
        ),
        ("execution: in_a_box\n", "in_a_box"),
        ("requirements: humanize\n", "requirements"),
        ("env_vars: 7\n", "env_vars"),
    ] {
        let outcome = run(&cell, python_skill(&cell, manifest, FINE));
        assert_invalid(&outcome, &["invalid_manifest", "invalid_policy"], &[word]);
    }
}

/// A few bytes that would become gigabytes.
#[test]
fn yaml_bombs_are_refused() {
    let _shared = shared();
    let cell = cell();
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", "));
    }
    let deep = format!("deep: {}{}\n", "[".repeat(20_000), "]".repeat(20_000));
    for manifest in [bomb, deep] {
        let outcome = run(&cell, python_skill(&cell, &manifest, FINE));
        outcome.assert_error("invalid_input", 2, &["invalid_manifest"]);
        assert!(
            outcome.elapsed < Duration::from_secs(5),
            "{}",
            outcome.show()
        );
        outcome.assert_readable();
    }
}

#[test]
fn a_huge_manifest_is_refused_unread() {
    let _shared = shared();
    let cell = cell();
    let skill = python_skill(&cell, "", FINE);
    let manifest = std::fs::File::options()
        .write(true)
        .open(skill.join("manifest.yaml"))
        .expect("own file");
    manifest.set_len(1 << 30).expect("sparse files exist");
    let outcome = run(&cell, skill);
    outcome.assert_error("invalid_input", 2, &["invalid_manifest"]);
    assert!(
        outcome.elapsed < Duration::from_secs(5),
        "{}",
        outcome.show()
    );
    outcome.assert_readable();
}

#[test]
fn symlink_loops_are_refused() {
    let _shared = shared();
    let cell = cell();
    let skill = cell.path("work/loop");
    symlink("loop", &skill).expect("own folder");
    let outcome = run(&cell, &skill);
    outcome.assert_error("invalid_input", 2, &["skill_not_found", "invalid_manifest"]);
    outcome.assert_readable();

    let skill = python_skill(&cell, "", FINE);
    symlink(".", skill.join("again")).expect("own folder");
    symlink("b", skill.join("a")).expect("own folder");
    symlink("a", skill.join("b")).expect("own folder");
    let outcome = run(&cell, &skill);
    assert!(matches!(outcome.code, 0 | 2), "{}", outcome.show());
    assert!(
        outcome.elapsed < Duration::from_secs(5),
        "{}",
        outcome.show()
    );
    outcome.assert_readable();
}

/// A manifest that is a FIFO, a device or a folder must not hang the caller.
#[test]
fn manifests_that_are_no_files_are_refused() {
    let _shared = shared();
    let cell = cell();
    for make in ["mkfifo", "mkdir", "ln -s /dev/zero", "ln -s /etc/passwd"] {
        let skill = python_skill(&cell, "", FINE);
        let manifest = skill.join("manifest.yaml");
        std::fs::remove_file(&manifest).expect("own file");
        let mut command = cell.command("sh");
        command
            .args(["-c", &format!("{make} \"$0\"")])
            .arg(&manifest);
        skillcell_tests::Child::spawn(command, None)
            .finish()
            .expect_success(make);
        let outcome = run(&cell, &skill);
        outcome.assert_error("invalid_input", 2, &["skill_not_found", "invalid_manifest"]);
        assert!(
            !outcome.stdout.contains("root:"),
            "the host's file is shown\n{}",
            outcome.show()
        );
        assert!(
            outcome.elapsed < Duration::from_secs(5),
            "{make}\n{}",
            outcome.show()
        );
        outcome.assert_readable();
        if manifest.is_dir() && make == "mkdir" {
            std::fs::remove_dir(&manifest).expect("own folder");
        } else {
            std::fs::remove_file(&manifest).expect("own file");
        }
    }
}

#[test]
fn usage_errors_exit_with_two() {
    let _shared = shared();
    let cell = cell();
    for arguments in [
        &["run"][..],
        &["run", "--no-such-flag"],
        &["no-such-command"],
        &["run", "x", "--timeout", "soon"],
        &["run", "x", "--memory", "lots"],
        &["run", "x", "--isolation", "box"],
        &[],
    ] {
        let outcome = cell.skillcell(arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}\n{}", outcome.show());
        outcome.assert_readable();
    }
}
