//! How daemons and calls end.

use crate::daemon::{Daemon, ask, post_head};
use crate::{cell, execute};
use rustix::process::Signal;
use serde_json::json;
use skillcell_tests::{Cell, alone, processes_named, shared};
use std::io::Write;
use std::net::Shutdown;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A skill that names its process by the cell's mark, and sleeps.
fn sleeper(cell: &Cell, seconds: f32) -> PathBuf {
    let mark = cell.mark();
    execute(
        cell,
        &format!(
            "import ctypes, time\nctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\ntime.sleep({seconds})\nreturn 'slept'"
        ),
    )
}

fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !happened() {
        assert!(Instant::now() < end, "it did not happen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn runs(cell: &Cell) -> bool {
    !processes_named(cell.mark()).is_empty()
}

fn body(skill: &PathBuf) -> String {
    json!({"skill": skill, "params": {}}).to_string()
}

/// Sends a request and doesn't wait for its answer.
fn send(daemon: &Daemon, body: &str) -> std::os::unix::net::UnixStream {
    let mut wire = daemon.connect();
    let head = post_head("/v1/run");
    let request = format!(
        "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.write_all(request.as_bytes()).unwrap();
    wire
}

#[test]
fn a_client_that_leaves_ends_its_call() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let wire = send(&daemon, &body(&sleeper(&cell, 50.0)));
    until("the skill runs", || runs(&cell));
    drop(wire);
    until("the skill ends", || !runs(&cell));
    until("the place is free", || {
        daemon
            .get("/metrics")
            .body
            .contains("skillcell_workers_running 0")
    });
}

#[test]
fn a_client_that_only_says_that_it_is_done_gets_the_envelope() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let wire = send(&daemon, &body(&sleeper(&cell, 50.0)));
    until("the skill runs", || runs(&cell));
    wire.shutdown(Shutdown::Write).unwrap();
    let answer = crate::daemon::answer(wire);
    assert_eq!(answer.json()["status"], "internal_error", "{answer:?}");
    until("the skill ends", || !runs(&cell));
}

#[test]
fn a_drained_daemon_finishes_its_calls_and_begins_no_others() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let quick = body(&sleeper(&cell, 2.0));
    let running = send(&daemon, &quick);
    let mut idle = daemon.connect();
    until("the skill runs", || runs(&cell));
    // A connection that has begun a request is not idle.
    let head = post_head("/v1/run");
    let rest = format!(
        "Connection: close\r\nContent-Length: {}\r\n\r\n{quick}",
        quick.len()
    );
    idle.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let socket = daemon.socket.clone();
    daemon.child.signal(Signal::TERM);
    until("the socket goes", || !socket.exists());
    idle.write_all(rest.as_bytes()).unwrap();
    let refused = crate::daemon::answer(idle);
    refused.assert_error(503, "draining");
    assert!(refused.head.contains("Retry-After:"), "{refused:?}");
    assert_eq!(crate::daemon::answer(running).json()["result"], "slept");
    let ended = daemon.child.finish();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
}

#[test]
fn calls_that_outlast_the_drain_are_ended_and_answered() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &["--drain-timeout", "500ms"]);
    let wire = send(&daemon, &body(&sleeper(&cell, 50.0)));
    until("the skill runs", || runs(&cell));
    let begun = Instant::now();
    let ended = daemon.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(!runs(&cell));
    assert_eq!(
        crate::daemon::answer(wire).json()["status"],
        "internal_error"
    );
}

#[test]
fn a_second_signal_ends_the_drain() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &["--drain-timeout", "100s"]);
    let _wire = send(&daemon, &body(&sleeper(&cell, 50.0)));
    until("the skill runs", || runs(&cell));
    daemon.child.signal(Signal::TERM);
    until("it drains", || !daemon.socket.exists());
    let begun = Instant::now();
    assert_eq!(daemon.end().code(), 0);
    assert!(begun.elapsed() < Duration::from_secs(10) && !runs(&cell));
}

#[test]
fn a_killed_daemon_leaves_nothing_and_the_next_one_takes_its_place() {
    let _alone = alone();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let wire = send(&daemon, &body(&sleeper(&cell, 50.0)));
    until("the skill runs", || runs(&cell));
    // A call's cgroup bears the number of its supervisor.
    let workers = children(daemon.child.id());
    let cgroups = || -> Vec<PathBuf> {
        let names = workers.iter().map(|pid| format!("skillcell-{pid}-"));
        names
            .flat_map(|name| skillcell_tests::cgroups_named(&name))
            .collect()
    };
    assert!(!workers.is_empty(), "the call has no supervisor");
    daemon.child.signal(Signal::KILL);
    let socket = daemon.socket.clone();
    assert_eq!(daemon.child.finish().code(), 137);
    until("the skill ends", || !runs(&cell));
    assert!(socket.exists(), "a killed daemon can't remove its socket");
    drop(wire);
    until("its cgroups go", || cgroups().is_empty());
    let next = Daemon::start(&cell, &[]);
    let answer = next.post("/v1/run", &body(&execute(&cell, "return 1")));
    assert_eq!(answer.json()["result"], 1);
    assert_eq!(next.end().code(), 0);
    assert!(!socket.exists());
}

#[test]
fn a_killed_worker_fails_its_call_alone() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let wire = send(&daemon, &body(&sleeper(&cell, 50.0)));
    until("the skill runs", || runs(&cell));
    for worker in children(daemon.child.id()) {
        let pid = rustix::process::Pid::from_raw(worker as i32).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
    let envelope = crate::daemon::answer(wire).json();
    assert_eq!(envelope["status"], "internal_error");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("signal: 9"), "{message}");
    until("the skill ends", || !runs(&cell));
    let answer = daemon.post("/v1/run", &body(&execute(&cell, "return 1")));
    assert_eq!(answer.json()["result"], 1);
}

fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task"))
        .unwrap()
        .flatten();
    let lists =
        tasks.map(|t| std::fs::read_to_string(t.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|l| {
            l.split_whitespace()
                .map(|p| p.parse().unwrap())
                .collect::<Vec<u32>>()
        })
        .collect()
}

#[test]
fn a_daemon_can_be_bound_to_the_life_of_who_started_it() {
    let _shared = shared();
    let cell = cell();
    let (theirs, ours) = std::io::pipe().unwrap();
    let socket = cell.path("daemon/daemon.sock");
    let mut command = cell.command(skillcell_tests::Stage::get().binary());
    command
        .args(["serve", "--stop-with-stdin", "--socket"])
        .arg(&socket);
    let child = skillcell_tests::Child::spawn_on(command, theirs);
    until("it listens", || socket.exists());
    let wire = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    assert_eq!(
        ask(wire, "GET /v1/health HTTP/1.1\r\nHost: x\r\n", "").status,
        200
    );
    drop(ours);
    assert_eq!(child.finish().code(), 0);
}
