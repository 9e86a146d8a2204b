//! What the API answers to requests that are right, wrong, and neither.

use crate::daemon::{Daemon, answer, ask, post_head};
use crate::{cell, execute};
use serde_json::json;
use skillcell_tests::{Cell, shared};
use std::io::{BufRead, BufReader, Read, Write};

fn staged() -> (Cell, Daemon) {
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    (cell, daemon)
}

#[test]
fn a_call_is_answered_with_its_envelope() {
    let _shared = shared();
    let (cell, daemon) = staged();
    let skill = execute(&cell, "return params['n'] + 1");
    let body = json!({"skill": skill, "params": {"n": 41}}).to_string();
    let answer = daemon.post("/v1/run", &body);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["status"], "ok");
    assert_eq!(answer.json()["result"], 42);
    assert!(answer.json().get("output").is_none());
    // A call that failed has an envelope as well.
    let body = json!({"skill": skill, "params": {}}).to_string();
    let answer = daemon.post("/v1/run", &body);
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (200, &json!("skill_error"))
    );
    assert!(answer.json()["output"]["stderr"].as_str().is_some());
}

#[test]
fn requests_that_are_none_are_told_why() {
    let _shared = shared();
    let (cell, daemon) = staged();
    let skill = execute(&cell, "return 1");
    let skill = skill.to_string_lossy();
    for (body, word) in [
        (String::new(), "EOF"),
        ("[]".into(), "RunRequest"),
        ("{}".into(), "skill"),
        (format!(r#"{{"skill": "{skill}", "param": {{}}}}"#), "param"),
        (
            format!(r#"{{"skill": "{skill}", "skill": "x"}}"#),
            "duplicate",
        ),
        (format!(r#"{{"skill": "{skill}", "params": []}}"#), "object"),
        (
            format!(r#"{{"skill": "{skill}", "timeout": "soon"}}"#),
            "soon",
        ),
        (
            format!(r#"{{"skill": "{skill}", "timeout": 0}}"#),
            "duration",
        ),
        (format!(r#"{{"skill": "{skill}", "memory": -1}}"#), "number"),
        (
            format!(r#"{{"skill": "{skill}", "isolation": "none"}}"#),
            "none",
        ),
        (
            format!(r#"{{"skill": "{skill}", "env": [{{"name": "LD_PRELOAD", "value": "x"}}]}}"#),
            "LD_PRELOAD",
        ),
        (
            format!(r#"{{"skill": "{skill}", "folder": "here"}}"#),
            "absolute",
        ),
        (
            format!(r#"{{"skill": "{skill}", "folder": "/no/such/folder"}}"#),
            "folder",
        ),
        (
            format!(r#"{{"skill": "{skill}", "environment": {{"A=B": "x"}}}}"#),
            "A=B",
        ),
        (
            format!(r#"{{"skill": "{skill}", "params": {{}}, "params_file": "/x"}}"#),
            "one of them",
        ),
        (format!(r#"{{"skill": "{skill}\u0000"}}"#), "NUL"),
        (format!(r#"{{"skill": "{skill}"}} x"#), "trailing"),
    ] {
        for path in ["/v1/run", "/v1/explain"] {
            let answer = daemon.post(path, &body);
            answer.assert_error(400, "bad_request");
            assert!(answer.body.contains(word), "no `{word}` in {answer:?}");
        }
    }
}

#[test]
fn paths_methods_and_types_are_checked_before_the_body() {
    let _shared = shared();
    let (_cell, daemon) = staged();
    daemon.get("/").assert_error(404, "not_found");
    daemon.get("/v1/run/").assert_error(404, "not_found");
    daemon
        .get("/v1/skills?all")
        .assert_error(400, "bad_request");
    let answer = daemon.get("/v1/run");
    answer.assert_error(405, "method_not_allowed");
    assert!(answer.head.contains("Allow: POST"), "{answer:?}");
    let answer = daemon.post("/metrics", "{}");
    answer.assert_error(405, "method_not_allowed");
    assert!(answer.head.contains("Allow: GET"), "{answer:?}");
    let bare = ask(
        daemon.connect(),
        "HEAD /v1/health HTTP/1.1\r\nHost: x\r\n",
        "",
    );
    assert_eq!((bare.status, bare.body.as_str()), (405, ""));
    let plain = "POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n";
    ask(daemon.connect(), plain, "{}").assert_error(415, "unsupported_media_type");
    let chunked = format!("{}Transfer-Encoding: chunked\r\n", post_head("/v1/run"));
    ask(daemon.connect(), &chunked, "0\r\n\r\n").assert_error(411, "length_required");
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n", "a".repeat(20_000));
    ask(daemon.connect(), &long, "").assert_error(431, "headers_too_large");
    let old = "GET /v1/health HTTP/1.0\r\nHost: x\r\n";
    ask(daemon.connect(), old, "").assert_error(505, "version_not_supported");
    ask(daemon.connect(), "\x16\x03\x01 nonsense\r\n", "").assert_error(400, "bad_request");
}

#[test]
fn a_body_that_is_too_long_is_not_read() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &["--max-body", "1KiB"]);
    let body = format!(r#"{{"skill": "{}"}}"#, "x".repeat(2000));
    let answer = daemon.post("/v1/run", &body);
    answer.assert_error(413, "body_too_large");
    assert!(answer.body.contains("--max-body"), "{answer:?}");
    // One that says so and waits is told before it sends anything.
    let mut wire = daemon.connect();
    let head = format!(
        "{}Content-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n",
        post_head("/v1/run")
    );
    wire.write_all(head.as_bytes()).unwrap();
    answer_of(wire).assert_error(413, "body_too_large");
}

fn answer_of(wire: impl Read) -> crate::daemon::Answer {
    answer(wire)
}

#[test]
fn a_connection_serves_many_requests_also_when_they_come_together() {
    let _shared = shared();
    let (_cell, daemon) = staged();
    let mut wire = daemon.connect();
    let one = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n";
    wire.write_all(one.repeat(3).as_bytes()).unwrap();
    let mut reader = BufReader::new(wire.try_clone().unwrap());
    for _ in 0..3 {
        health(&mut reader);
    }
    wire.write_all(&one.as_bytes()[..20]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    wire.write_all(&one.as_bytes()[20..]).unwrap();
    health(&mut reader);
}

fn health(reader: &mut impl BufRead) {
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    assert!(String::from_utf8_lossy(&body).contains(r#""status":"ok""#));
}

#[test]
fn skills_explanations_and_metrics_are_there() {
    let _shared = shared();
    let cell = cell();
    let root = cell.folder("library/tools");
    for (name, manifest) in [
        ("good", "name: good\nversion: 2.0.0\n"),
        ("bad", "name: [\n"),
    ] {
        cell.file(&format!("library/tools/{name}/manifest.yaml"), manifest);
        cell.file(
            &format!("library/tools/{name}/skill.py"),
            "class S:\n    def execute(self, p):\n        return 5\n",
        );
    }
    std::fs::create_dir_all(cell.path("work/skills")).unwrap();
    std::os::unix::fs::symlink(&root, cell.path("work/skills/tools")).unwrap();
    let daemon = Daemon::start(&cell, &[]);
    let skills = daemon.get("/v1/skills").json();
    let find = |id: &str| {
        skills["skills"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["id"] == id)
            .cloned()
    };
    assert_eq!(find("tools/good").unwrap()["version"], "2.0.0");
    assert!(find("tools/bad").unwrap()["error"].is_string());
    let explained = daemon.post("/v1/explain", r#"{"skill": "tools/good"}"#);
    assert_eq!(
        explained.json()["plan"]["isolation"],
        "sandbox",
        "{explained:?}"
    );
    let explained = daemon
        .post("/v1/explain", r#"{"skill": "tools/bad"}"#)
        .json();
    assert_eq!(explained["error"]["code"], "invalid_manifest");
    daemon.post("/v1/run", r#"{"skill": "tools/good"}"#);
    let metrics = daemon.get("/metrics");
    assert!(
        metrics.head.contains("text/plain; version=0.0.4"),
        "{metrics:?}"
    );
    for line in [
        "skillcell_calls_total{status=\"ok\"} 1",
        "skillcell_call_seconds_count 1",
        "skillcell_calls_running 0",
        "skillcell_http_requests_total{route=\"/v1/explain\",code=\"200\"} 2",
    ] {
        assert!(
            metrics.body.lines().any(|l| l == line),
            "no {line} in {metrics:?}"
        );
    }
}

#[test]
fn a_slow_request_does_not_hold_a_place_for_ever() {
    let _shared = shared();
    let (_cell, daemon) = staged();
    let mut wire = daemon.connect();
    wire.write_all(b"GET /v1/hea").unwrap();
    let begun = std::time::Instant::now();
    answer(wire).assert_error(408, "request_timeout");
    assert!(begun.elapsed().as_secs() < 60);
}
