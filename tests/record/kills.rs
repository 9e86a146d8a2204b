//! A supervisor that is killed at any moment leaves a log that can be checked, with every decision
//! that the skill had been told.

use crate::{assert_whole, python, segments};
use rustix::process::Signal;
use skillcell_tests::{Cell, Level, User, processes_named, shared};
use std::time::{Duration, Instant};

/// Is denied again and again, and shows in its name how often it has been told so.
const DENIED: &str = "
import ctypes, os
libc = ctypes.CDLL(None)
n = 0
while n < 50000:
    try:
        os.mkdir('/usr/no')
    except OSError:
        n += 1
        libc.prctl(15, ('%s%d' % (MARK, n)).encode(), 0, 0, 0)
";

/// The highest number that a process with this mark bears.
fn told(mark: &str) -> Option<u64> {
    std::fs::read_dir("/proc")
        .expect("/proc is readable")
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("comm")).ok())
        .filter_map(|comm| comm.trim().strip_prefix(mark)?.parse().ok())
        .max()
}

/// Denials in whole lines: nobody was told of a line that its writer did not finish.
fn denied(cell: &Cell) -> u64 {
    let whole = |line: &&str| line.ends_with('\n') && line.contains(r#""event":"denied""#);
    let count = |text: &String| text.split_inclusive('\n').filter(whole).count() as u64;
    segments(cell).iter().map(count).sum()
}

#[test]
fn no_moment_of_a_kill_breaks_the_log_or_loses_a_decision() {
    let _shared = shared();
    let cell = Cell::new(Level::Sandbox, User::Caller);
    let mark = format!("{}z", &cell.mark()[..cell.mark().len().min(9)]);
    let code = DENIED.replace("MARK", &format!("'{mark}'"));
    let skill = python(&cell, &code);
    let mut seed = 88_172_645_463_325_252u64;
    let (mut before, mut with_denials) = (0, 0);
    for round in 0..200u32 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let running = cell.call(&skill).flags(["--audit", "security"]).start();
        // Half of them at any moment, also of the set-up; half while denials come in.
        let mut seen = 0;
        if round % 2 == 1 {
            let patience = Instant::now() + Duration::from_secs(10);
            while seen == 0 {
                assert!(
                    Instant::now() < patience,
                    "round {round}: the skill doesn't start"
                );
                seen = told(&mark).unwrap_or(0);
            }
        }
        let deadline = Instant::now() + Duration::from_micros(seed % 100_000);
        while Instant::now() < deadline {
            seen = told(&mark).unwrap_or(seen).max(seen);
        }
        running.supervisor.signal(Signal::KILL);
        drop(running.finish());
        let patience = Instant::now() + Duration::from_secs(10);
        while told(&mark).is_some() || !processes_named(cell.mark()).is_empty() {
            assert!(
                Instant::now() < patience,
                "round {round}: the skill lives on"
            );
        }
        let denied = denied(&cell);
        assert!(
            denied - before >= seen,
            "round {round}: the skill was told {seen} times, the log has {}",
            denied - before
        );
        with_denials += u32::from(seen > 0);
        before = denied;
        if round % 20 == 19 {
            assert_whole(&cell);
        }
    }
    assert!(
        with_denials >= 100,
        "only {with_denials} kills came after a denial"
    );
    assert_whole(&cell);
    // And the next call goes on from there.
    cell.call(python(&cell, "print('{}')")).run().assert_ok();
    assert_whole(&cell);
}
