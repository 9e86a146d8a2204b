//! Failures that a skill reports, and denials that it may hide.

use crate::envelope::assert_complete;
use crate::{cell, execute};
use skillcell_tests::shared;

/// Errors come in the dialects of real skills too.
#[test]
fn errors_that_a_skill_reports_are_its_failure() {
    let _shared = shared();
    let cell = cell();
    for body in [
        "return {'error': 'no such account'}",
        "return {'status': 'error', 'message': 'no such account'}",
        "return {'success': False, 'error': 'no such account'}",
    ] {
        let outcome = cell
            .call(execute(&cell, body))
            .flags(["--params", "{}"])
            .run();
        outcome.assert_error("skill_error", 1, &["skill_reported_error"]);
        assert!(
            outcome.error_message().contains("no such account"),
            "{}",
            outcome.show()
        );
        assert!(
            outcome.result().is_object(),
            "the result is kept\n{}",
            outcome.show()
        );
    }
    let fine = cell
        .call(execute(&cell, "return {'error': None, 'status': 'ok'}"))
        .flags(["--params", "{}"])
        .run();
    fine.assert_ok();
}

/// A call that succeeded in spite of denials says so; `--strict-denials` makes it fail.
#[test]
fn strict_denials_turn_a_denial_into_a_failure() {
    let _shared = shared();
    let cell = cell();
    let skill = execute(
        &cell,
        "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 443), timeout=5)\nexcept OSError:\n    pass\nreturn 'clean record'",
    );
    let lenient = cell.call(&skill).flags(["--params", "{}"]).run();
    assert_eq!(lenient.assert_ok(), "clean record");
    lenient.assert_denial("network", "192.0.2.1");
    assert_complete(&lenient);
    let strict = cell
        .call(&skill)
        .flags(["--params", "{}", "--strict-denials"])
        .run();
    strict.assert_status("denied", 3);
    strict.assert_denial("network", "192.0.2.1");
    // In prose: one line per denial, with what would allow it.
    let prose = cell.call(&skill).flags(["--params", "{}"]).run_for_people();
    assert_eq!(prose.code, 0, "{}", prose.show());
    assert!(
        prose.stderr.lines().any(|line| line.contains("192.0.2.1")),
        "{}",
        prose.show()
    );
}

#[test]
fn a_skill_that_fails_because_of_a_denial_was_denied() {
    let _shared = shared();
    let cell = cell();
    let skill = execute(
        &cell,
        "import socket\nsocket.create_connection(('192.0.2.1', 443), timeout=5)",
    );
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    outcome.assert_status("denied", 3);
    assert!(
        outcome
            .denials()
            .iter()
            .all(|d| d["hint"].as_str().is_some_and(|h| !h.is_empty())),
        "{}",
        outcome.show()
    );
}
