//! Answers that come while the call runs.

use crate::daemon::{Daemon, ask, post_head};
use crate::{cell, execute};
use serde_json::{Value, json};
use skillcell_tests::shared;
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

/// Events with when they came.
fn events(daemon: &Daemon, body: &str) -> Vec<(Instant, Value)> {
    let mut wire = daemon.connect();
    let head = post_head("/v1/run");
    let request = format!(
        "{head}Accept: application/x-ndjson\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.write_all(request.as_bytes()).unwrap();
    BufReader::new(wire)
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.starts_with('{'))
        .map(|line| (Instant::now(), serde_json::from_str(&line).unwrap()))
        .collect()
}

#[test]
fn what_a_skill_prints_is_told_while_it_runs() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let skill = execute(
        &cell,
        "import sys, time\nprint('one é', flush=True)\ntime.sleep(2)\nprint('two', file=sys.stderr, flush=True)\nreturn 3",
    );
    let events = events(&daemon, &json!({"skill": skill}).to_string());
    let find = |stream: &str, text: &str| {
        let wanted = json!({"event": "output", "stream": stream, "text": text});
        let found = events.iter().find(|(_, e)| *e == wanted);
        found
            .unwrap_or_else(|| panic!("no {wanted} in {events:?}"))
            .0
    };
    let (one, two) = (find("stdout", "one é\n"), find("stderr", "two\n"));
    assert!(two - one > Duration::from_secs(1), "they came together");
    let (_, last) = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["envelope"]["result"]),
        (&json!("end"), &json!(3))
    );
    assert_eq!(last["dropped"], 0);
}

#[test]
fn a_stream_of_server_sent_events_ends_in_the_envelope() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let skill = execute(&cell, "return 'a\\nb'");
    let head = format!("{}Accept: text/event-stream\r\n", post_head("/v1/run"));
    let answer = ask(
        daemon.connect(),
        &head,
        &json!({"skill": skill}).to_string(),
    );
    assert!(
        answer.head.contains("Content-Type: text/event-stream"),
        "{answer:?}"
    );
    let data = answer
        .body
        .lines()
        .skip_while(|l| *l != "event: end")
        .nth(1)
        .unwrap();
    let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(event["envelope"]["result"], "a\nb");
}

/// A supervisor that waited for this reader would not see the deadline.
#[test]
fn a_client_that_does_not_read_does_not_stop_the_clock() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let manifest = "security_policy: {version: 1, resources: {output: 64MiB}}\n";
    let body = "import sys\nwhile True:\n    sys.stdout.write('x' * 1000 + '\\n')\n    import time; time.sleep(0.001)";
    let skill = crate::skill(&cell, "talker", manifest, body);
    let mut wire = daemon.connect();
    let head = post_head("/v1/run");
    let body = json!({"skill": skill, "timeout": "2s"}).to_string();
    let request = format!(
        "{head}Accept: application/x-ndjson\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.write_all(request.as_bytes()).unwrap();
    let begun = Instant::now();
    // Nothing is read until the call is over.
    while !daemon
        .get("/metrics")
        .body
        .contains("skillcell_calls_total{status=\"limit_exceeded\"} 1")
    {
        assert!(
            begun.elapsed() < Duration::from_secs(12),
            "the deadline was not seen"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let last = BufReader::new(wire)
        .lines()
        .map_while(Result::ok)
        .filter(|l| l.starts_with('{'))
        .last();
    let last: Value = serde_json::from_str(&last.unwrap()).unwrap();
    assert_eq!(last["envelope"]["status"], "limit_exceeded");
}
