//! The full record is what `strace -f` saw of the same processes: nothing lost, nothing invented.

use crate::{events, of_kind, python, shell};
use serde_json::Value;
use skillcell_tests::{Cell, Outcome, Stage, claim};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const THREADS: &str = "
import os, threading, json
def work(n):
    for i in range(20):
        open(os.environ.get('TMPDIR', '/tmp') + '/t%d-%d' % (n, i), 'w').close()
all = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in all: t.start()
for t in all: t.join()
print(json.dumps({'ok': True}))
";

const PIPELINE: &str = "
seq 1 100 | cat | cat | cat | cat | cat | cat | cat | cat | cat | cat | cat | cat | cat | cat | cat \\
  | cat | sort -n | tail -1 | sed 's/.*/{\"last\": &}/'
";

const STORM: &str = "
import os, json
for _ in range(60):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        os._exit(0)
    os.waitpid(pid, 0)
print(json.dumps({'ok': True}))
";

/// What strace saw: the calls of each thread, and whether somebody killed it.
#[derive(Default)]
pub struct Seen {
    pub calls: Vec<(String, String)>,
    /// Calls that a signal came before: they are made again, by number.
    restarted: BTreeSet<usize>,
    pub killed: bool,
}

/// What strace has to say of one call.
pub struct Trace {
    /// The thread that was there first. Not the lowest number: the kernel begins anew at its end.
    supervisor: u64,
    threads: BTreeMap<u64, Seen>,
}

/// One call under strace.
pub fn traced(cell: &Cell, skill: &Path, level: &str) -> (Outcome, Trace) {
    let trace = cell.path("work/trace");
    let outcome = cell
        .call(skill)
        .flags(["--audit", level, "--timeout", "150s"])
        .through([
            "/usr/bin/strace",
            "-f",
            "-s",
            "256",
            "-o",
            trace.to_str().expect("text"),
        ])
        .run();
    outcome.assert_ok();
    let text = String::from_utf8_lossy(&std::fs::read(&trace).expect("strace wrote")).into_owned();
    let mut supervisor = None;
    let mut threads: BTreeMap<u64, Seen> = BTreeMap::new();
    for line in text.lines() {
        let (tid, rest) = line.split_once(' ').expect("strace begins with the thread");
        let tid = tid.parse().expect("a number");
        supervisor.get_or_insert(tid);
        let seen = threads.entry(tid).or_default();
        let rest = rest.trim_start();
        if rest.starts_with("+++ killed") {
            seen.killed = true;
        } else if let Some((name, args)) = rest.split_once('(')
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && !name.is_empty()
        {
            seen.calls.push((name.to_owned(), args.to_owned()));
        }
        if rest.contains("= ? ERESTART") {
            seen.restarted.insert(seen.calls.len() - 1);
        }
    }
    let supervisor = supervisor.expect("strace saw something");
    (
        outcome,
        Trace {
            supervisor,
            threads,
        },
    )
}

/// The threads of the skill: from the first program that the payload executes.
pub fn of_the_skill(trace: Trace, recorded: &[u64]) -> BTreeMap<u64, Seen> {
    let mut skill = BTreeMap::new();
    for (tid, mut seen) in trace.threads {
        let has = |what: &str| {
            seen.calls
                .iter()
                .any(|(name, args)| name == what || args.contains(what))
        };
        let ours = tid == trace.supervisor
            || has("SECCOMP_IOCTL_NOTIF_RECV")
            || has("execveat")
            || seen.calls.is_empty();
        if ours && !recorded.contains(&tid) {
            continue;
        }
        // Until then it is our own code that gets ready.
        if seen
            .calls
            .iter()
            .any(|(name, _)| name == "landlock_restrict_self" || name == "seccomp")
        {
            let start = seen.calls.iter().position(|(name, _)| name == "execve");
            let start = start.expect("the payload executes the skill");
            seen.calls.drain(..start);
            seen.restarted = seen
                .restarted
                .iter()
                .filter_map(|at| at.checked_sub(start))
                .collect();
        }
        skill.insert(tid, seen);
    }
    skill
}

fn assert_equal(cell: &Cell, skill: &Path) {
    let (outcome, trace) = traced(cell, skill, "full");
    let events = events(cell, &outcome);
    let mut recorded: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for event in of_kind(&events, "syscall") {
        let name = event["data"]["name"].as_str().expect("a name").to_owned();
        recorded
            .entry(event["tid"].as_u64().expect("a thread"))
            .or_default()
            .push(name);
    }
    let threads: Vec<u64> = recorded.keys().copied().collect();
    let seen = of_the_skill(trace, &threads);
    assert_eq!(
        threads,
        seen.keys().copied().collect::<Vec<_>>(),
        "the same threads"
    );
    let mut total = 0;
    for (tid, mine) in &recorded {
        let theirs = &seen[tid];
        assert_same(*tid, mine, theirs);
        total += mine.len();
    }
    assert!(total > 50, "only {total} calls");
    let counted: u64 = summary(&events)["syscalls"]
        .as_object()
        .expect("counts")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(counted, total as u64, "the summary counts what is recorded");
}

/// Call by call. One that a signal interrupts before the supervisor has taken it up was never begun:
/// strace shows it twice, and the record has it when it is begun.
fn assert_same(tid: u64, mine: &[String], theirs: &Seen) {
    // How many of the record's calls can be accounted for, in every possible way.
    let mut reached = BTreeSet::from([0]);
    for (at, (name, _)) in theirs.calls.iter().enumerate() {
        // A thread that is killed while it waits for its answer has asked, and that was all.
        let unanswered = theirs.killed && at + 1 == theirs.calls.len();
        let optional = theirs.restarted.contains(&at) || unanswered;
        let mut next = BTreeSet::new();
        for count in reached.iter().copied() {
            if mine.get(count) == Some(name) {
                next.insert(count + 1);
            }
            if optional {
                next.insert(count);
            }
        }
        assert!(
            !next.is_empty(),
            "thread {tid}: strace saw {name} as call {at}; the record has {:?}; restarted {:?}\n{:?}",
            reached
                .iter()
                .map(|count| mine.get(*count))
                .collect::<Vec<_>>(),
            theirs.restarted,
            theirs.calls
        );
        reached = next;
    }
    assert!(
        reached.contains(&mine.len()),
        "thread {tid}: the record has more than strace saw: {:?}",
        reached.last().map(|count| &mine[*count..])
    );
}

fn summary(events: &[Value]) -> &Value {
    &of_kind(events, "call_ended")
        .next()
        .expect("the call ended")["data"]["summary"]
}

claim! {
    fn a_python_program_is_recorded_call_by_call(cell) {
        assert_equal(cell, &python(cell, "import json; print(json.dumps({'ok': True}))"));
    }
}

claim! {
    fn threads_are_recorded_call_by_call(cell) {
        assert_equal(cell, &python(cell, THREADS));
    }
}

claim! {
    fn a_pipeline_of_twenty_processes_is_recorded_call_by_call(cell) {
        assert_equal(cell, &shell(cell, PIPELINE));
    }
}

claim! {
    fn a_static_program_is_recorded_call_by_call(cell) {
        let bundle = cell.bundle("static", &[("manifest.yaml", "name: static\nversion: 1.0.0\nexecution: {command: [./calls, '8']}\n")]);
        std::fs::copy(Stage::get().program("calls"), bundle.join("calls")).expect("copies");
        cell.user.own(&bundle.join("calls"));
        assert_equal(cell, &bundle);
    }
}

claim! {
    fn a_storm_of_forks_is_recorded_call_by_call(cell) {
        assert_equal(cell, &python(cell, STORM));
    }
}
