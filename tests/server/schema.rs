//! The served description, held against the daemon that serves it.

use crate::cell;
use crate::daemon::Daemon;
use crate::daemon::post_head;
use serde_json::{Value, json};
use skillcell_tests::Stage;
use skillcell_tests::{Child, shared, venv};
use std::time::Duration;

/// Requests that fit the document and requests that don't, made up by schemathesis: no answer may be
/// one that the document doesn't have, and what doesn't fit must be rejected.
///
/// Over TCP, as a guest: made-up requests of an owner could name any path of the host. Whether all
/// that fits is accepted is not asked: some of it is for owners only.
#[test]
fn the_daemon_keeps_to_its_own_description() {
    let _shared = shared();
    let cell = cell();
    cell.file(
        "work/skills/hello/manifest.yaml",
        "name: hello\nversion: 1.0.0\n",
    );
    let code = "class S:\n    def execute(self, p):\n        return {'greeting': 'hello'}\n";
    cell.file("work/skills/hello/skill.py", code);
    let tokens = cell.path("tokens");
    let mut make = cell.command(Stage::get().binary());
    make.args(["serve", "token", "test", "--token-file"])
        .arg(&tokens);
    let token = Child::spawn(make, None)
        .finish()
        .expect_success("a token")
        .stdout;
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        &tokens.to_string_lossy(),
    ];
    let mut daemon = Daemon::start(&cell, &flags);
    let address = format!("http://{}/openapi.json", daemon.tcp());
    let mut schemathesis = cell.command(venv().join("bin/schemathesis"));
    schemathesis
        .args(["run", &address, "--no-color", "--seed", "1"])
        .args(["-H", &format!("Authorization: Bearer {}", token.trim())])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            "40",
        ])
        .args(["--max-time", "60", "--request-timeout", "30"])
        .args(["-c", "all", "--exclude-checks", "positive_data_acceptance"]);
    let ended = Child::spawn(schemathesis, None).finish_within(Duration::from_secs(170));
    assert_eq!(ended.code(), 0, "{}\n{}", ended.stdout, ended.stderr);
    // It has really called, and calls were really made.
    let metrics = daemon.get("/metrics").body;
    let count = |start: &str| -> u64 {
        let line = metrics.lines().find_map(|l| l.strip_prefix(start));
        line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    };
    let bad = count("skillcell_http_requests_total{route=\"/v1/run\",code=\"400\"}");
    let good = count("skillcell_calls_total{status=\"ok\"}");
    assert!(bad > 20 && good > 0, "{bad} bad, {good} good\n{metrics}");
}

#[test]
fn the_document_names_every_path_and_the_envelope() {
    let _shared = shared();
    let cell = cell();
    let daemon = Daemon::start(&cell, &[]);
    let answer = daemon.get("/openapi.json");
    assert!(
        answer.head.contains("Content-Type: application/json"),
        "{answer:?}"
    );
    let document: Value = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/v1/run",
        "/v1/explain",
        "/v1/skills",
        "/v1/health",
        "/metrics",
        "/openapi.json",
    ] {
        let operation = paths[path].as_object().unwrap();
        let method = operation.keys().next().unwrap().to_uppercase();
        // Each is there, with the method that is named.
        let head = match method.as_str() {
            "POST" => post_head(path),
            _ => format!("GET {path} HTTP/1.1\r\nHost: x\r\n"),
        };
        let status = crate::daemon::ask(daemon.connect(), &head, "").status;
        assert!(
            matches!((method.as_str(), status), ("GET", 200) | ("POST", 400)),
            "{path}: {status}"
        );
    }
    let schemas = &document["components"]["schemas"];
    assert!(schemas["RunRequest"]["properties"]["skill"].is_object());
    let statuses = schemas["Status"].to_string();
    assert!(statuses.contains("limit_exceeded"), "{statuses}");
    assert_eq!(
        document["paths"]["/v1/run"]["post"]["requestBody"]["required"],
        json!(true)
    );
}
