//! What is written down of a call, held against what `strace` saw of the same call, and against
//! what goes wrong: hostile words, full disks, killed supervisors.

mod failures;
mod forged;
mod hostile;
mod kills;
mod levels;
mod refused;
mod retention;
mod strace;

use serde_json::Value;
use skillcell_tests::{Cell, Outcome};
use std::path::PathBuf;

/// The log of this cell's user.
fn log(cell: &Cell) -> PathBuf {
    cell.path("home/.local/state/skillcell/audit")
}

/// All lines of the log, oldest first; each must be one JSON object.
fn lines(cell: &Cell) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let segments = segments(cell);
    segments.iter().flat_map(|s| s.lines().map(read)).collect()
}

/// The text of the log's segments, oldest first.
fn segments(cell: &Cell) -> Vec<String> {
    let mut segments: Vec<PathBuf> = std::fs::read_dir(log(cell))
        .expect("there is a log")
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            name.ends_with(".jsonl") && name.starts_with("0")
        })
        .collect();
    segments.sort();
    segments
        .iter()
        .map(|s| std::fs::read_to_string(s).expect("a log is text"))
        .collect()
}

/// The events of one call.
fn events(cell: &Cell, outcome: &Outcome) -> Vec<Value> {
    let run = outcome.run_id().expect("a call has an id").to_owned();
    lines(cell)
        .into_iter()
        .filter(|line| line["run_id"] == run.as_str())
        .collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["event"] == kind)
}

#[track_caller]
fn assert_whole(cell: &Cell) {
    let outcome = cell.skillcell(["audit", "verify"]);
    assert_eq!(outcome.code, 0, "{}", outcome.show());
}

/// A bundle that is one shell script.
fn shell(cell: &Cell, script: &str) -> PathBuf {
    cell.bundle(
        "script",
        &[
            (
                "manifest.yaml",
                "name: script\nversion: 1.0.0\nexecution: {command: [bash, main.sh]}\nsecurity_policy: {version: 1, resources: {processes: 64, timeout: 50s}}\n",
            ),
            ("main.sh", script),
        ],
    )
}

/// A bundle that is one Python program; it prints its result.
fn python(cell: &Cell, code: &str) -> PathBuf {
    cell.bundle(
        "program",
        &[
            (
                "manifest.yaml",
                "name: program\nversion: 1.0.0\nexecution: {command: [python3, main.py]}\nsecurity_policy: {version: 1, resources: {processes: 64, timeout: 50s}}\n",
            ),
            ("main.py", code),
        ],
    )
}
