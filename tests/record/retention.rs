//! How the operator's policy divides the log, and how much of it stays.

use crate::{assert_whole, lines, log, of_kind, shell};
use skillcell_tests::{Cell, Level, Outcome, User, claim, shared};
use std::path::{Path, PathBuf};

fn policy(cell: &Cell, audit: &str) -> PathBuf {
    let text = format!("version: 1\ndefaults: {{trust: allow, audit: {{{audit}}}}}\n");
    cell.file("work/policy.yaml", text)
}

fn call(cell: &Cell, policy: &Path) -> Outcome {
    let call = cell.call(shell(cell, "echo '{}'"));
    let outcome = call.flag("--policy").flag(policy).run();
    outcome.assert_ok();
    outcome
}

/// The numbers of the segments that are there, oldest first, and their bytes.
fn segments(cell: &Cell) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = std::fs::read_dir(log(cell))
        .expect("there is a log")
        .filter_map(|entry| {
            let entry = entry.expect("a folder can be read");
            let name = entry.file_name().into_string().expect("text");
            let number = name.strip_suffix(".jsonl")?.parse().ok()?;
            Some((number, entry.metadata().expect("a file").len()))
        })
        .collect();
    all.sort_unstable();
    all
}

claim! {
    fn a_small_segment_is_closed_by_the_next_call_and_all_are_kept(cell) {
        let policy = policy(cell, "segment: 1B");
        for _ in 0..3 {
            call(cell, &policy);
        }
        let numbers: Vec<u64> = segments(cell).into_iter().map(|(number, _)| number).collect();
        assert!(numbers.len() >= 3, "{numbers:?}");
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(of_kind(&lines(cell), "pruned").count(), 0);
        assert_whole(cell);
    }
}

claim! {
    fn the_oldest_segments_go_beyond_what_is_kept_and_the_log_is_whole(cell) {
        let keep = 16 << 10;
        let policy = policy(cell, "segment: 2KiB, keep: 16KiB");
        let first = call(cell, &policy);
        let mut last = first.run_id().expect("an id").to_owned();
        for _ in 0..8 {
            last = call(cell, &policy).run_id().expect("an id").to_owned();
        }
        let left = segments(cell);
        assert!(left[0].0 > 1, "{left:?}");
        // What was written since the last segment was begun is not counted.
        let (_, active) = left.last().expect("one");
        let total: u64 = left.iter().map(|(_, bytes)| bytes).sum();
        assert!(total - active <= keep, "{left:?}");
        assert!(of_kind(&lines(cell), "pruned").count() > 0);
        assert_whole(cell);
        let listed = cell.skillcell(["audit", "list", "--json"]);
        assert!(listed.stdout.contains(&last), "{}", listed.show());
        assert!(!listed.stdout.contains(first.run_id().expect("an id")), "{}", listed.show());
    }
}

/// Age by hand: the test can't wait for days.
#[test]
fn segments_that_are_too_old_go_when_the_next_one_is_begun() {
    let _shared = shared();
    let cell = Cell::new(Level::Sandbox, User::Caller);
    let policy = policy(&cell, "segment: 1B, keep_days: 2");
    call(&cell, &policy);
    let before = segments(&cell);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 24 * 3600);
    let file = std::fs::File::options()
        .append(true)
        .open(log(&cell).join("00000001.jsonl"))
        .expect("the first segment");
    file.set_modified(old).expect("own file");
    call(&cell, &policy);
    let left = segments(&cell);
    assert_eq!((before[0].0, left[0].0), (1, 2), "{left:?}");
    assert_whole(&cell);
}

/// Who is refused again and again doesn't fill the disk either.
#[test]
fn calls_that_are_refused_are_kept_no_longer_than_others() {
    let _shared = shared();
    let cell = Cell::new(Level::Sandbox, User::Caller);
    let policy = policy(&cell, "segment: 1B, keep: 1B");
    for _ in 0..3 {
        let call = cell.call(shell(&cell, "echo '{}'")).flag("--policy");
        let outcome = call.flag(&policy).flags(["--params", "["]).run();
        outcome.assert_error("invalid_input", 2, &["invalid_params"]);
        assert_eq!(outcome.envelope()["audit"]["events"], 1);
    }
    let left = segments(&cell);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].0 > 2, "{left:?}");
    assert_whole(&cell);
}
