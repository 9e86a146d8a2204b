//! The end of the supervisor is the end of the cell.

use rustix::process::Signal;
use skillcell_tests::{Cell, Probe, Stage, claim};
use std::time::Duration;

/// A tree that would rather stay: children in sessions of their own that ignore what they can.
const STUBBORN: &str = "
import os, signal, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        for number in (1, 2, 15):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(50)
        time.sleep(50)
        os._exit(0)
time.sleep(50)
";

fn assert_ends_with_its_supervisor(cell: &Cell, signal: Signal) {
    let probe = Probe::new(STUBBORN);
    let running = cell
        .call(Stage::get().fixture("probe"))
        .params(&probe.params(cell))
        .start();
    running.skill_processes(7);
    running.supervisor.signal(signal);
    running.assert_skill_ends(Duration::from_secs(5));
}

claim! {
    fn killing_the_supervisor_leaves_no_skill_process_alive(cell) {
        assert_ends_with_its_supervisor(cell, Signal::KILL);
    }
}

claim! {
    fn interrupting_the_supervisor_leaves_no_skill_process_alive(cell) {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            assert_ends_with_its_supervisor(cell, signal);
        }
    }
}

claim! {
    /// At any moment, also while the cell is being made.
    fn killing_the_supervisor_early_leaves_nothing_alive(cell) {
        for delay in (0..200).step_by(10) {
            let probe = Probe::new(STUBBORN);
            let running = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell)).start();
            std::thread::sleep(Duration::from_millis(delay));
            running.supervisor.signal(Signal::KILL);
            // A cell that was half made must not finish itself and start the skill.
            std::thread::sleep(Duration::from_millis(300));
            running.assert_skill_ends(Duration::from_secs(5));
        }
    }
}

claim! {
    /// The next call works as if nothing had happened.
    fn a_killed_call_does_not_disturb_the_next(cell) {
        assert_ends_with_its_supervisor(cell, Signal::KILL);
        let next = Cell::new(cell.level, cell.user);
        assert_eq!(next.probe_value(&Probe::new("value = 42")), 42);
    }
}
