//! No record, no call.

use crate::{assert_whole, log, python, shell};
use skillcell_tests::{Cell, Level, User, shared};

/// Everything of the cell sees the folder of its log as a file system of its own, with these options.
pub fn with_log_on(level: Level, user: User, options: &str, then: &str) -> Cell {
    let cell = Cell::new(level, user);
    let folder = cell.folder("home/.local/state/skillcell/audit");
    let script = format!(
        "mount -t tmpfs -o {options} none {0} && {then} && exec \"$@\"",
        folder.display()
    );
    cell.at([
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        &script,
        "sh",
    ])
}

fn everybody() -> impl Iterator<Item = (Level, User)> {
    [Level::Sandbox, Level::Process]
        .into_iter()
        .flat_map(|level| [(level, User::Caller), (level, User::Ordinary)])
}

#[test]
fn a_full_disk_refuses_the_call() {
    let _shared = shared();
    for (level, user) in everybody() {
        let fill =
            "(cat /dev/zero > $HOME/.local/state/skillcell/audit/filler || true) 2>/dev/null";
        let cell = with_log_on(level, user, "size=256k,mode=0777", fill);
        let outcome = cell.call(shell(&cell, "echo '{}'")).run();
        outcome.assert_error("refused", 5, &["audit_unavailable"]);
        outcome.assert_readable();
        let hint = outcome.envelope()["error"]["hint"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
            + outcome.error_message();
        assert!(hint.contains("prune"), "{}", outcome.show());
    }
}

#[test]
fn a_log_that_can_t_be_written_refuses_the_call() {
    let _shared = shared();
    for (level, user) in everybody() {
        let cell = with_log_on(level, user, "ro,mode=0777", "true");
        let outcome = cell.call(shell(&cell, "echo '{}'")).run();
        outcome.assert_error("refused", 5, &["audit_unavailable"]);
    }
}

#[test]
fn without_a_log_a_call_goes_on_only_by_name_and_says_so() {
    let _shared = shared();
    for (level, user) in everybody() {
        let cell = with_log_on(level, user, "ro,mode=0777", "true");
        let outcome = cell
            .call(shell(&cell, "echo '{}'"))
            .flags(["--allow-degraded", "audit"])
            .run();
        outcome.assert_ok();
        let receipt = outcome.envelope()["enforcement"]
            .as_array()
            .expect("a receipt")
            .clone();
        let audit = receipt
            .iter()
            .find(|e| e["control"] == "audit")
            .expect("a control");
        assert_eq!(audit["status"], "degraded", "{}", outcome.show());
    }
}

/// The disk fills while the skill runs: it ends, and what was written before is whole.
#[test]
fn a_disk_that_fills_up_ends_the_call() {
    let _shared = shared();
    let code = "
import os
while True:
    os.stat('/tmp')
";
    for (level, user) in everybody() {
        let cell = Cell::new(level, user);
        let folder = cell.folder("home/.local/state/skillcell/audit");
        let kept = cell.path("work/kept");
        let script = format!(
            "mount -t tmpfs -o size=512k,mode=0777 none {0} && \"$@\"; status=$?; cp -r {0} {1}; chmod -R a+rX {1}; exit $status",
            folder.display(),
            kept.display()
        );
        let there = cell.at([
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            &script,
            "sh",
        ]);
        let outcome = there
            .call(python(&there, code))
            .flags(["--audit", "full", "--timeout", "50s"])
            .run();
        outcome.assert_error("refused", 5, &["audit_unavailable"]);
        let whole = there.skillcell(["audit", "verify", "--log", kept.to_str().expect("text")]);
        assert_eq!(whole.code, 0, "{}", whole.show());
    }
}

#[test]
fn a_log_that_somebody_cut_refuses_calls_until_it_is_moved_away() {
    let _shared = shared();
    let cell = Cell::new(Level::Sandbox, User::Ordinary);
    let skill = shell(&cell, "echo '{}'");
    cell.call(&skill).run().assert_ok();
    assert_whole(&cell);
    let segment = log(&cell).join("00000001.jsonl");
    let text = std::fs::read_to_string(&segment).expect("reads");
    let cut = text.trim_end().rfind('\n').expect("several lines") + 1;
    std::fs::write(&segment, &text[..cut]).expect("writes");
    let verified = cell.skillcell(["audit", "verify"]);
    assert_eq!(verified.code, 3, "{}", verified.show());
    let outcome = cell.call(&skill).run();
    outcome.assert_error("refused", 5, &["audit_unavailable"]);
    std::fs::rename(log(&cell), cell.path("work/old")).expect("moves");
    cell.call(&skill).run().assert_ok();
    assert_whole(&cell);
}
