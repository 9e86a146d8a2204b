//! TCP: tokens, and TLS.

use crate::cell;
use crate::daemon::{Daemon, ask, spawn};
use serde_json::{Value, json};
use skillcell_tests::{Cell, Child, Stage, shared, venv};
use std::net::TcpStream;
use std::path::PathBuf;

fn library(cell: &Cell) {
    cell.folder("work/skills/greet");
    cell.file(
        "work/skills/greet/manifest.yaml",
        "name: greet\nversion: 1.0.0\n",
    );
    let code = "class S:\n    def execute(self, p):\n        return 'hello'\n";
    cell.file("work/skills/greet/skill.py", code);
}

/// Makes a token by the command, and the file with its hash.
fn token(cell: &Cell, name: &str) -> (PathBuf, String) {
    let file = cell.path("tokens");
    let mut command = cell.command(Stage::get().binary());
    command
        .args(["serve", "token", name, "--token-file"])
        .arg(&file);
    let made = Child::spawn(command, None)
        .finish()
        .expect_success("a token");
    (file, made.stdout.trim().to_owned())
}

fn call(address: &str, token: Option<&str>) -> crate::daemon::Answer {
    let wire = TcpStream::connect(address).expect("it listens");
    let token = token
        .map(|t| format!("Authorization: Bearer {t}\r\n"))
        .unwrap_or_default();
    let head = format!("{}{token}", crate::daemon::post_head("/v1/run"));
    ask(wire, &head, &json!({"skill": "greet"}).to_string())
}

#[test]
fn over_tcp_only_who_has_a_token_is_answered() {
    let _shared = shared();
    let cell = cell();
    library(&cell);
    let (file, good) = token(&cell, "ci");
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&good));
    let file = file.to_string_lossy();
    let mut daemon = Daemon::start(&cell, &["--listen", "127.0.0.1:0", "--token-file", &file]);
    let address = daemon.tcp();
    for bad in [None, Some(""), Some("skc_0"), Some(&good[..good.len() - 1])] {
        let answer = call(&address, bad);
        answer.assert_error(401, "unauthorized");
        assert!(
            answer.head.contains("WWW-Authenticate: Bearer"),
            "{answer:?}"
        );
    }
    for path in [
        "/v1/health",
        "/metrics",
        "/openapi.json",
        "/v1/skills",
        "/x",
    ] {
        let wire = TcpStream::connect(&address).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n");
        ask(wire, &head, "").assert_error(401, "unauthorized");
    }
    let answer = call(&address, Some(&good));
    assert_eq!(answer.json()["result"], "hello", "{answer:?}");
    let log =
        std::fs::read_to_string(cell.path("home/.local/state/skillcell/audit/00000001.jsonl"));
    assert!(
        log.unwrap().contains("token ci"),
        "the record names the token"
    );
    // A token that is taken out no longer counts, without a restart.
    let (_, second) = token(&cell, "other");
    assert_eq!(call(&address, Some(&second)).status, 200);
    let kept = std::fs::read_to_string(&*file)
        .unwrap()
        .lines()
        .nth(1)
        .unwrap()
        .to_owned();
    std::fs::write(&*file, format!("{kept}\n")).unwrap();
    call(&address, Some(&good)).assert_error(401, "unauthorized");
    assert_eq!(call(&address, Some(&second)).status, 200);
}

#[test]
fn who_has_a_token_is_a_guest() {
    let _shared = shared();
    let cell = cell();
    library(&cell);
    let (file, good) = token(&cell, "ci");
    let mut daemon = Daemon::start(
        &cell,
        &[
            "--listen",
            "127.0.0.1:0",
            "--token-file",
            &file.to_string_lossy(),
        ],
    );
    let address = daemon.tcp();
    let say = |body: Value| {
        let head = format!(
            "{}Authorization: Bearer {good}\r\n",
            crate::daemon::post_head("/v1/run")
        );
        ask(
            TcpStream::connect(&address).unwrap(),
            &head,
            &body.to_string(),
        )
    };
    say(json!({"skill": "greet", "trust": true})).assert_error(403, "forbidden");
    say(json!({"skill": "greet", "environment": {"HOME": "/x"}})).assert_error(403, "forbidden");
    say(json!({"skill": cell.path("work/skills/greet")})).assert_error(404, "not_found");
    // The counter-proof: the owner may, on the socket.
    let owner = daemon.post(
        "/v1/run",
        &json!({"skill": cell.path("work/skills/greet")}).to_string(),
    );
    assert_eq!(owner.json()["result"], "hello");
}

#[test]
fn without_tokens_or_without_tls_abroad_it_does_not_begin() {
    let _shared = shared();
    let cell = cell();
    let (file, _) = token(&cell, "ci");
    let (file, empty) = (file.to_string_lossy(), cell.file("empty", "# none\n"));
    let socket = cell.path("daemon/daemon.sock");
    let begin = |flags: &[&str]| spawn(&cell, &socket, flags).finish();
    for (flags, word) in [
        (vec!["--listen", "127.0.0.1:0"], "--token-file"),
        (
            vec!["--listen", "127.0.0.1:0", "--token-file", "/no/such"],
            "/no/such",
        ),
        (
            vec![
                "--listen",
                "127.0.0.1:0",
                "--token-file",
                empty.to_str().unwrap(),
            ],
            "no token",
        ),
        (
            vec!["--listen", "0.0.0.0:0", "--token-file", &file],
            "--tls-cert",
        ),
        (
            vec!["--listen", "192.0.2.1:0", "--token-file", &file],
            "--tls-cert",
        ),
        (
            vec!["--listen", "[::]:0", "--token-file", &file],
            "--tls-cert",
        ),
        (
            vec!["--listen", "[::ffff:192.0.2.1]:0", "--token-file", &file],
            "--tls-cert",
        ),
    ] {
        let ended = begin(&flags);
        assert_eq!(ended.code(), 2, "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "no `{word}`: {}", ended.stderr);
        assert!(!socket.exists());
    }
    std::fs::set_permissions(&*file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let ended = begin(&["--listen", "127.0.0.1:0", "--token-file", &file]);
    assert_eq!(ended.code(), 2);
    assert!(
        ended.stderr.contains("others can write"),
        "{}",
        ended.stderr
    );
}

#[test]
fn with_tls_a_call_is_made_and_plain_http_is_not_answered() {
    let _shared = shared();
    let cell = cell();
    library(&cell);
    let (file, good) = token(&cell, "ci");
    let certs = cell.folder("certs");
    let mut trustme = cell.command(venv().join("bin/python"));
    trustme
        .args(["-m", "trustme", "-q", "-i", "127.0.0.1", "-d"])
        .arg(&certs);
    Child::spawn(trustme, None)
        .finish()
        .expect_success("certificates");
    let path = |name: &str| certs.join(name).to_string_lossy().into_owned();
    // The address is loopback because no other is there; what TLS does is the same.
    let mut daemon = Daemon::start(
        &cell,
        &[
            "--listen",
            "127.0.0.1:0",
            "--token-file",
            &file.to_string_lossy(),
            "--tls-cert",
            &path("server.pem"),
            "--tls-key",
            &path("server.key"),
        ],
    );
    let address = daemon.tcp();
    let curl = |accept: &str| {
        let mut curl = cell.command("curl");
        curl.args(["-sS", "--max-time", "30", "--cacert", &path("client.pem")])
            .args([
                "-H",
                "Content-Type: application/json",
                "-H",
                &format!("Accept: {accept}"),
            ])
            .args(["-H", &format!("Authorization: Bearer {good}")])
            .args([
                "-d",
                r#"{"skill": "greet"}"#,
                &format!("https://{address}/v1/run"),
            ]);
        Child::spawn(curl, None)
            .finish()
            .expect_success("a call over TLS")
            .stdout
    };
    let envelope: Value = serde_json::from_str(&curl("application/json")).unwrap();
    assert_eq!(envelope["result"], "hello");
    assert!(curl("application/x-ndjson").contains(r#""result":"hello""#));
    use std::io::{Read, Write};
    let mut plain = TcpStream::connect(&address).unwrap();
    plain
        .write_all(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut said = Vec::new();
    plain.read_to_end(&mut said).unwrap_or(0);
    assert!(!said.starts_with(b"HTTP/"), "{said:?}");
}
