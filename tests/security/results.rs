//! Hostile results: whatever a skill says, the envelope stays one readable JSON document.

use skillcell_tests::{Cell, Outcome, Probe, claim};
use std::time::Duration;

fn run(cell: &Cell, code: &str) -> Outcome {
    let probe = Probe::new(code);
    let bundle = cell.probe_with("resources: {output: 1MiB, timeout: 20s, memory: 512MiB}");
    let outcome = cell.call(bundle).params(&probe.raw_params(cell)).run();
    assert!(
        outcome.elapsed < Duration::from_secs(25),
        "took too long\n{}",
        outcome.show()
    );
    outcome
}

claim! {
    fn a_giant_result_is_cut_off(cell) {
        let value = Probe::new("value = len('x' * (8 << 20))").prove(cell);
        assert_eq!(value, 8 << 20, "the counter-proof: Python can make it");
        let outcome = run(cell, "value = 'x' * (8 << 20)");
        outcome.assert_limit(&["output_exceeded"]);
        assert!(outcome.stdout.len() < 1 << 20, "the envelope has {} bytes", outcome.stdout.len());
    }
}

claim! {
    fn a_deep_result_is_refused(cell) {
        let outcome = run(cell, "
value = []
for _ in range(900):
    value = [value]
");
        outcome.assert_error("invalid_result", 1, &["result_too_deep"]);
        outcome.assert_readable();
    }
}

claim! {
    /// The private descriptor takes bytes, not objects: the skill may write to it itself.
    fn a_result_forged_on_the_private_descriptor_is_checked_as_well(cell) {
        for forged in ["'[' * 200000", "'{\"a\":' * 100000", "'NaN'", "'\\xff'", "'{} {}'", "'' "] {
            let outcome = run(cell, &format!("
import os
for fd in (4, 3):
    try:
        os.write(fd, ({forged}).encode('latin-1'))
        break
    except OSError:
        pass
os._exit(0)
"));
            assert_ne!(outcome.status(), "ok", "{forged}\n{}", outcome.show());
            assert_ne!(outcome.status(), "internal_error", "{forged}\n{}", outcome.show());
            outcome.assert_readable();
        }
    }
}

claim! {
    fn numbers_that_are_not_json_are_refused(cell) {
        for code in ["value = float('nan')", "value = {'a': [float('inf')]}", "value = -float('inf')"] {
            let outcome = run(cell, code);
            outcome.assert_error("invalid_result", 1, &["result_not_json"]);
            outcome.assert_readable();
        }
    }
}

claim! {
    fn objects_that_are_not_json_are_refused(cell) {
        for code in ["value = object()", "value = {1, 2}", "value = b'bytes'", "value = {'a': lambda: 0}",
                     "value = {(1, 2): 3}", "value = '\\ud800'"] {
            let outcome = run(cell, code);
            outcome.assert_error("invalid_result", 1, &["result_not_json"]);
            outcome.assert_readable();
        }
    }
}

claim! {
    fn a_circular_result_is_refused(cell) {
        let outcome = run(cell, "value = []; value.append(value)");
        outcome.assert_error("invalid_result", 1, &["result_not_json", "result_too_deep"]);
    }
}

claim! {
    /// The runner's own functions are in reach of the skill; what they check is checked again outside.
    fn a_skill_that_breaks_its_runner_still_gets_an_envelope(cell) {
        for code in [
            "import json; json.dumps = None; json.dump = None; value = 1",
            "import sys; sys.stdout.close(); sys.stderr.close(); value = 1",
            "import os; os.closerange(0, 64); value = 1",
            "import os; os._exit(0)",
            "import os; os._exit(7)",
            "import sys; sys.exit(3)",
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
            "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
            "raise KeyboardInterrupt",
            "raise SystemExit('bye')",
            "class E(BaseException):\n    def __str__(self): raise self\nraise E()",
            "import sys; sys.modules.clear(); value = 1",
        ] {
            let probe = Probe::new(code);
            let call = cell.call(cell.probe_with("resources: {timeout: 3s}")).params(&probe.raw_params(cell));
            let outcome = call.run();
            let status = outcome.status();
            assert!(matches!(status, "ok" | "skill_error" | "invalid_result" | "limit_exceeded"), "{code}\n{}", outcome.show());
            outcome.assert_readable();
        }
    }
}

claim! {
    /// Control characters in names and messages must not reach a person's terminal.
    fn terminal_escapes_of_the_skill_are_defused(cell) {
        let probe = Probe::new("raise RuntimeError('\\x1b[2J\\x1b]0;owned\\x07')");
        let outcome = cell.call(cell.probe_with("resources: {timeout: 10s}")).params(&probe.raw_params(cell)).run_for_people();
        assert_eq!(outcome.code, 1, "{}", outcome.show());
        assert!(!outcome.stderr.contains("\x1b[2J") && !outcome.stderr.contains('\x07'), "{:?}", outcome.stderr);
    }
}
