//! Many callers at once.

use crate::daemon::Daemon;
use crate::{cell, execute, skill};
use serde_json::json;
use skillcell_tests::{alone, shared};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[test]
fn what_is_too_much_is_busy_and_says_so() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(
        &cell,
        &[
            "--max-templates",
            "0",
            "--max-running",
            "1",
            "--max-waiting",
            "2",
        ],
    );
    let slow = execute(&cell, "import time\ntime.sleep(2)\nreturn 1");
    let body = json!({"skill": slow}).to_string();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| daemon.post("/v1/run", &body)))
            .collect();
        calls.into_iter().map(|c| c.join().unwrap()).collect()
    });
    let busy: Vec<_> = answers.iter().filter(|a| a.status == 503).collect();
    let done = answers
        .iter()
        .filter(|a| a.status == 200 && a.json()["result"] == 1)
        .count();
    // One runs, one waits: a skill has half of the room.
    assert_eq!((done, busy.len()), (2, 4), "{answers:?}");
    for answer in busy {
        answer.assert_error(503, "busy");
        assert!(answer.head.contains("Retry-After: 1"), "{answer:?}");
    }
    assert!(
        daemon
            .get("/metrics")
            .body
            .contains("skillcell_busy_total 4")
    );
}

#[test]
fn run_tells_busy_as_refused() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(
        &cell,
        &[
            "--max-templates",
            "0",
            "--max-running",
            "1",
            "--max-waiting",
            "0",
        ],
    );
    let slow = execute(&cell, "import time\ntime.sleep(3)\nreturn 1");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| daemon.post("/v1/run", &json!({"skill": slow}).to_string()));
        let end = Instant::now() + Duration::from_secs(10);
        while !daemon
            .get("/metrics")
            .body
            .contains("skillcell_workers_running 1")
        {
            assert!(Instant::now() < end);
        }
        let outcome = cell.call(&slow).flag(daemon.flag()).run();
        outcome.assert_error("refused", 5, &["busy"]);
        assert_eq!(first.join().unwrap().json()["result"], 1);
    });
}

/// Who has no token yet, or never will, can't keep the owner out.
#[test]
fn connections_of_others_take_none_of_the_owners() {
    let _shared = shared();
    let cell = cell();
    let tokens = cell.path("tokens");
    let mut make = cell.command(skillcell_tests::Stage::get().binary());
    make.args(["serve", "token", "x", "--token-file"])
        .arg(&tokens);
    let made = skillcell_tests::Child::spawn(make, None).finish();
    made.expect_success("a token");
    let tokens = tokens.to_string_lossy();
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        &tokens,
        "--max-connections",
        "4",
    ];
    let mut daemon = Daemon::start(&cell, &flags);
    let address = daemon.tcp();
    let connect = || std::net::TcpStream::connect(&address).unwrap();
    let held: Vec<_> = (0..4).map(|_| connect()).collect();
    let end = Instant::now() + Duration::from_secs(10);
    while !daemon
        .get("/metrics")
        .body
        .contains("skillcell_connections 5")
    {
        assert!(Instant::now() < end);
    }
    let refused = crate::daemon::answer(connect());
    refused.assert_error(503, "busy");
    assert!(refused.body.contains("--max-connections"), "{refused:?}");
    assert_eq!(daemon.get("/v1/health").status, 200);
    drop(held);
}

/// One skill floods the daemon; a call of another one is among the next.
#[test]
fn a_flood_of_one_skill_does_not_hold_up_another() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &["--max-running", "1", "--max-waiting", "64"]);
    let flood = skill(&cell, "flood", "", "import time\ntime.sleep(0.5)\nreturn 1");
    let other = skill(&cell, "other", "", "return 2");
    let finished = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let answer = daemon.post("/v1/run", &json!({"skill": flood}).to_string());
                assert_eq!(answer.json()["result"], 1);
                finished.fetch_add(1, Ordering::Relaxed);
            });
        }
        let end = Instant::now() + Duration::from_secs(10);
        while !daemon
            .get("/metrics")
            .body
            .contains("skillcell_workers_waiting 11")
        {
            assert!(Instant::now() < end);
        }
        let answer = daemon.post("/v1/run", &json!({"skill": other}).to_string());
        assert_eq!(answer.json()["result"], 2);
        assert!(
            finished.load(Ordering::Relaxed) <= 4,
            "it waited for the flood"
        );
    });
}

#[test]
fn sixty_four_clients_get_their_own_answers() {
    let _alone = alone();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let skill = execute(&cell, "return params['n']");
    std::thread::scope(|scope| {
        for client in 0..64 {
            let (daemon, skill) = (&daemon, &skill);
            scope.spawn(move || {
                for call in 0..2 {
                    let n = client * 10 + call;
                    let body = json!({"skill": skill, "params": {"n": n}}).to_string();
                    let answer = daemon.post("/v1/run", &body);
                    assert_eq!(answer.status, 200, "{answer:?}");
                    assert_eq!(answer.json()["result"], n);
                }
            });
        }
    });
    let metrics = daemon.get("/metrics").body;
    assert!(
        metrics.contains("skillcell_calls_total{status=\"ok\"} 128"),
        "{metrics}"
    );
    assert_eq!(daemon.end().code(), 0);
}
