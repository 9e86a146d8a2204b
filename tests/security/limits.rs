//! Limits: of the call as a whole, and each with its own answer.

use serde_json::json;
use skillcell_tests::{Cell, Outcome, Probe, claim};
use std::time::Duration;

/// Runs `code` in a probe with these limits; exceptions are the skill's own.
fn run(cell: &Cell, policy: &str, code: &str) -> Outcome {
    let probe = Probe::new(code);
    let outcome = cell
        .call(cell.probe_with(policy))
        .params(&probe.raw_params(cell))
        .run();
    assert!(
        outcome.elapsed < Duration::from_secs(30),
        "took too long\n{}",
        outcome.show()
    );
    outcome
}

/// The counter-proof: what a limit cuts short goes on outside. Small amounts, to spare the machine.
fn prove(cell: &Cell, code: &str) {
    Probe::new(code).prove(cell);
}

const MIB: &str = "MIB = 1 << 20\n";

claim! {
    fn sleeping_forever_ends_at_the_timeout(cell) {
        prove(cell, "import time; time.sleep(1.5)");
        let outcome = run(cell, "resources: {timeout: 1s}", "import time; time.sleep(3600)");
        outcome.assert_limit(&["timeout_exceeded"]);
        assert!(outcome.elapsed < Duration::from_secs(4), "{}", outcome.show());
    }
}

claim! {
    fn runaway_cpu_ends_at_the_timeout(cell) {
        prove(cell, "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass");
        let outcome = run(cell, "resources: {timeout: 1s}", "while True: pass");
        outcome.assert_limit(&["timeout_exceeded"]);
        assert!(outcome.elapsed < Duration::from_secs(4), "{}", outcome.show());
    }
}

claim! {
    fn ignored_signals_don_t_extend_the_timeout(cell) {
        let ignore = "
import os, signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
";
        prove(cell, &format!("{ignore}\nos.kill(os.getpid(), signal.SIGTERM)"));
        let outcome = run(cell, "resources: {timeout: 1s}", &format!("{ignore}\nwhile True: time.sleep(60)"));
        outcome.assert_limit(&["timeout_exceeded"]);
        assert!(outcome.elapsed < Duration::from_secs(4), "{}", outcome.show());
    }
}

claim! {
    fn the_caller_s_timeout_flag_holds(cell) {
        let probe = Probe::new("import time; time.sleep(3600)");
        let call = cell.call(cell.probe_with("resources: {timeout: 30s}")).params(&probe.raw_params(cell));
        let outcome = call.flags(["--timeout", "1s"]).run();
        outcome.assert_limit(&["timeout_exceeded"]);
        assert!(outcome.elapsed < Duration::from_secs(4), "{}", outcome.show());
    }
}

claim! {
    fn a_memory_bomb_ends_at_the_limit(cell) {
        prove(cell, &format!("{MIB}value = len(bytearray(128 * MIB))"));
        let code = format!("{MIB}hoard = []\nwhile True: hoard.append(bytearray(8 * MIB))");
        let outcome = run(cell, "resources: {memory: 64MiB, timeout: 20s}", &code);
        outcome.assert_limit(&["memory_exceeded"]);
    }
}

claim! {
    /// The classic miss: a limit per process lets four children have four times as much.
    fn memory_is_limited_over_all_processes_together(cell) {
        let children = |seconds: u32| format!("{MIB}
import os, time
pids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        hoard = bytearray(os.urandom(1)) * (40 * MIB)
        time.sleep({seconds})
        os._exit(0 if len(hoard) else 1)
    pids.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
assert codes == [0, 0, 0, 0], codes
value = codes
");
        prove(cell, &children(1));
        let outcome = run(cell, "resources: {memory: 128MiB, timeout: 20s, processes: 16}", &children(10));
        outcome.assert_limit(&["memory_exceeded"]);
    }
}

claim! {
    /// Files in memory are memory.
    fn anonymous_files_count_as_memory(cell) {
        let code = |mib: u32| format!("{MIB}
import os
fd = os.memfd_create('hoard')
for _ in range({mib}):
    os.write(fd, bytes(MIB))
");
        prove(cell, &code(8));
        let outcome = run(cell, "resources: {memory: 64MiB, timeout: 20s}", &code(512));
        // Where no cgroup counts them there are none, which is a denial.
        if outcome.status() == "denied" {
            assert!(outcome.show().contains("memfd_create"), "{}", outcome.show());
        } else {
            outcome.assert_limit(&["memory_exceeded"]);
        }
    }
}

claim! {
    fn a_fork_bomb_ends_and_takes_nothing_with_it(cell) {
        let twenty = "
import os, time
pids = []
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        time.sleep(1); os._exit(0)
    pids.append(pid)
value = [os.waitpid(pid, 0) for pid in pids]
";
        prove(cell, twenty);
        let policy = "resources: {processes: 12, timeout: 5s}";
        let outcome = run(cell, policy, twenty);
        outcome.assert_limit(&["processes_exceeded"]);
        let bomb = "
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
";
        let outcome = run(cell, policy, bomb);
        outcome.assert_limit(&["processes_exceeded", "timeout_exceeded"]);
        assert!(outcome.elapsed < Duration::from_secs(15), "{}", outcome.show());
    }
}

claim! {
    fn threads_count_as_processes(cell) {
        let threads = "
import threading, time
all = [threading.Thread(target=time.sleep, args=(1,), daemon=True) for _ in range(20)]
for thread in all:
    thread.start()
";
        prove(cell, threads);
        let outcome = run(cell, "resources: {processes: 12, timeout: 10s}", threads);
        outcome.assert_limit(&["processes_exceeded"]);
    }
}

claim! {
    fn cores_are_not_dumped(cell) {
        let outcome = run(cell, "resources: {timeout: 10s}", "import os; os.abort()");
        outcome.assert_error("skill_error", 1, &["skill_signal"]);
        let left: Vec<_> = std::fs::read_dir(cell.path("work")).expect("own folder").flatten()
            .map(|e| e.file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
        // Outside, the same ends the same way; what is at stake is only the file.
        let plain = Probe::new("
import os
pid = os.fork()
if pid == 0:
    os.abort()
value = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
").args(json!({}));
        assert_eq!(plain.prove(cell), json!(-6));
    }
}
