//! Whoever replaces `run` by `run --daemon` sees no difference.

use crate::daemon::Daemon;
use crate::{cell, execute, skill};
use serde_json::Value;
use skillcell_tests::{Call, Cell, Level, Outcome, User, shared};
use std::path::Path;

/// Makes a call both ways, with `--json` and without, and compares everything that can be equal.
#[track_caller]
fn same<'a>(
    cell: &'a Cell,
    daemon: &Daemon,
    skill: &Path,
    flags: impl Fn(Call<'a>) -> Call<'a>,
) -> Outcome {
    let call = |through: bool| {
        let call = flags(cell.call(skill));
        if through {
            call.flag(daemon.flag())
        } else {
            call
        }
    };
    let (cold, warm) = (call(false).run_for_people(), call(true).run_for_people());
    assert_eq!(
        (cold.code, &cold.stdout, &cold.stderr),
        (warm.code, &warm.stdout, &warm.stderr)
    );
    let (cold, warm) = (call(false).run(), call(true).run());
    assert_eq!(cold.code, warm.code, "{}", warm.show());
    assert_eq!(cold.stderr, warm.stderr);
    assert_eq!(comparable(cold.envelope()), comparable(warm.envelope()));
    assert_ne!(cold.run_id(), warm.run_id());
    warm
}

/// An envelope without what differs between any two calls.
fn comparable(envelope: &Value) -> Value {
    let mut envelope = envelope.clone();
    envelope["run_id"] = Value::Null;
    envelope["usage"] = Value::Null;
    envelope["audit"]["head"] = Value::Null;
    // How often an interpreter reads its files is not up to us.
    envelope["audit"]["events"] = Value::Null;
    envelope
}

/// The caller, and a daemon that has another home, other folders and other variables.
fn two(level: Level, user: User) -> (Cell, Cell, Daemon) {
    let (caller, keeper) = (Cell::new(level, user), Cell::new(level, user));
    let daemon = Daemon::start(&keeper, &[]);
    (caller, keeper, daemon)
}

#[test]
fn a_result_is_the_same() {
    let _shared = shared();
    for user in [User::Caller, User::Ordinary] {
        let (cell, _keeper, daemon) = two(Level::Sandbox, user);
        let skill = execute(
            &cell,
            "print('noise')\nreturn {'got': params, 'n': 1.50, 'big': 10**30}",
        );
        let outcome = same(&cell, &daemon, &skill, |call| {
            call.flags(["--params", r#"{"a": 1.0, "é": [null]}"#])
        });
        outcome.assert_status("ok", 0);
        assert!(
            outcome
                .stdout
                .contains("\"big\":1000000000000000000000000000000")
        );
        same(&cell, &daemon, &skill, |call| call.flag("--show-output"));
    }
}

#[test]
fn failures_of_skills_are_the_same() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Sandbox, User::Caller);
    for (name, body, status, code) in [
        (
            "raises",
            "raise ValueError('\\x1b[31mred')",
            "skill_error",
            1,
        ),
        (
            "exits",
            "import sys\nprint('bye')\nsys.exit(7)",
            "skill_error",
            1,
        ),
        ("reports", "return {'error': 'no'}", "skill_error", 1),
        ("nan", "return float('nan')", "invalid_result", 1),
        ("sleeps", "import time\ntime.sleep(60)", "limit_exceeded", 4),
        ("denied", "open('/usr/x', 'w')", "denied", 3),
    ] {
        let skill = skill(&cell, name, "", body);
        let outcome = same(&cell, &daemon, &skill, |call| {
            call.flags(["--timeout", "3s"])
        });
        outcome.assert_status(status, code);
    }
}

#[test]
fn denials_beside_a_result_are_the_same() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Sandbox, User::Caller);
    let body = "try:\n    open('/usr/x', 'w')\nexcept OSError:\n    return 1";
    let skill = execute(&cell, body);
    let outcome = same(&cell, &daemon, &skill, |call| call);
    outcome.assert_ok();
    outcome.assert_denial("filesystem", "/usr/x");
    let outcome = same(&cell, &daemon, &skill, |call| call.flag("--strict-denials"));
    outcome.assert_status("denied", 3);
}

#[test]
fn wrong_input_is_told_in_the_same_words() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Sandbox, User::Caller);
    let skill = skill(
        &cell,
        "strict",
        "parameters: {type: object, required: [name]}\nenv_vars: {TOKEN: {required: true}}\n",
        "return 1",
    );
    for flags in [
        vec!["--params", "{\"name\":"],
        vec!["--params", "[]"],
        vec!["--params", "null"],
        vec!["--params", "{\"name\": 18446744073709551617}"],
        vec!["--params", "{}"],
        vec!["--params-file", "nowhere.json"],
        vec!["--params", "{\"name\": 1}"],
        vec!["--params", "{\"name\": 1}", "--env", "TOKEN"],
        vec![
            "--params",
            "{\"name\": 1}",
            "--env",
            "TOKEN=x",
            "--policy",
            "nowhere.yaml",
        ],
        vec![
            "--params",
            "{\"name\": 1}",
            "--env",
            "TOKEN=x",
            "--read",
            "nowhere",
        ],
    ] {
        let outcome = same(&cell, &daemon, &skill, |call| call.flags(&flags));
        outcome.assert_status("invalid_input", 2);
    }
    for text in ["{\"name\":", "\0", "{}"] {
        let outcome = same(&cell, &daemon, &skill, |call| {
            call.flags(["--params", "-"]).stdin(text)
        });
        outcome.assert_status("invalid_input", 2);
    }
    let outcome = same(&cell, &daemon, &skill, |call| {
        call.flags(["--params", "-"]).stdin(b"\xff{}")
    });
    outcome.assert_status("invalid_input", 2);
    let outcome = same(&cell, &daemon, Path::new("no/such_skill"), |call| call);
    outcome.assert_error("invalid_input", 2, &["skill_not_found"]);
}

#[test]
fn a_refusal_is_the_same() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Sandbox, User::Caller);
    let skill = execute(&cell, "return 1");
    let outcome = same(&cell, &daemon, &skill, |call| {
        call.flags(["--isolation", "microvm"])
    });
    outcome.assert_status("refused", 5);
}

#[test]
fn a_warning_before_the_call_is_the_same() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Process, User::Caller);
    let outcome = same(&cell, &daemon, &execute(&cell, "return 1"), |call| call);
    outcome.assert_ok();
    assert!(outcome.stderr.contains("TRUSTED"), "{}", outcome.show());
}

#[test]
fn relative_paths_and_variables_are_the_callers() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Sandbox, User::Caller);
    let manifest = "env_vars: {TOKEN: {required: true}}\nsecurity_policy:\n  version: 1\n  filesystem: {params: {file: read}}\n";
    let body = "import os\nreturn [os.environ['TOKEN'], open(params['file']).read()]";
    skill(&cell, "reader", manifest, body);
    std::os::unix::fs::symlink(cell.path("bundles/reader"), cell.path("work/reader")).unwrap();
    cell.file("work/data.txt", "of the caller");
    cell.file("work/call.json", r#"{"file": "data.txt"}"#);
    let outcome = same(&cell, &daemon, Path::new("./reader"), |call| {
        call.flags([
            "--params-file",
            "call.json",
            "--read",
            "data.txt",
            "--env",
            "TOKEN",
        ])
        .host_env("TOKEN", "mine")
    });
    assert_eq!(
        outcome.assert_ok(),
        &serde_json::json!(["mine", "of the caller"])
    );
}

/// A policy that is found by way of a variable would be lost if the daemon's variables were used.
#[test]
fn the_callers_own_policy_holds_and_the_daemons_does_not() {
    let _shared = shared();
    let (cell, keeper, daemon) = two(Level::Sandbox, User::Caller);
    let policy = "version: 1\ndefaults: {resources: {timeout: 1s}}\n";
    let skill = execute(&cell, "import time\ntime.sleep(3)\nreturn 1");
    keeper.file("home/.config/skillcell/skillcell.yaml", policy);
    same(&cell, &daemon, &skill, |call| call).assert_ok();
    cell.file("home/.config/skillcell/skillcell.yaml", policy);
    same(&cell, &daemon, &skill, |call| call).assert_status("limit_exceeded", 4);
}

#[test]
fn an_interrupted_call_ends_in_the_same_envelope() {
    let _shared = shared();
    let (cell, _keeper, daemon) = two(Level::Sandbox, User::Caller);
    let skill = execute(&cell, "import time\ntime.sleep(60)");
    let end = |through: bool| {
        let call = cell.call(&skill);
        let call = if through {
            call.flag(daemon.flag())
        } else {
            call
        };
        let running = call.start();
        std::thread::sleep(std::time::Duration::from_millis(1500));
        running.supervisor.signal(rustix::process::Signal::INT);
        Outcome::new(running.finish())
    };
    let (cold, warm) = (end(false), end(true));
    assert_eq!((cold.code, warm.code), (70, 70), "{}", warm.show());
    assert_eq!(comparable(cold.envelope()), comparable(warm.envelope()));
}

#[test]
fn without_a_daemon_nothing_is_run() {
    let _shared = shared();
    let cell = cell();
    let mark = cell.path("work/ran");
    let skill = execute(&cell, "return 1");
    let flag = format!("--daemon={}", cell.path("nowhere.sock").display());
    let outcome = cell.call(&skill).flag(&flag).run();
    outcome.assert_error("refused", 5, &["daemon_unavailable"]);
    let outcome = cell.call(&skill).flag(&flag).run_for_people();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (5, ""));
    assert!(
        outcome.stderr.contains("skillcell serve"),
        "{}",
        outcome.show()
    );
    assert!(!mark.exists() && !cell.path("home/.local/state/skillcell/audit").exists());
}
