//! Requests that try to become something else than requests to the permitted host.

use super::get;
use crate::claim;
use crate::network::network;
use crate::trial::{Grants, Trial};
use serde_json::{Value, json};

/// Answers of the world's web server say whose they are; the door's don't.
const SERVER: &str = "aiohttp";

fn send(parts: Vec<String>, expect: &str) -> Value {
    json!({"host": "api.example.com", "port": 80, "send": parts, "expect": expect})
}

claim! {
    /// Each of them gets to the server outside, whatever it makes of it.
    fn what_is_not_http_1_in_the_clear_does_not_get_to_the_server(cell) {
        let shapes = [
            ("HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
            ("a tunnel", "CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\n\r\n".to_owned()),
            ("lower-case tunnel", "connect /hello HTTP/1.1\r\nHost: api.example.com\r\n\r\n".to_owned()),
            ("HTTP/0.9", "GET /hello\r\n\r\n".to_owned()),
            ("another version", "GET /hello HTTP/1.2\r\nHost: api.example.com\r\n\r\n".to_owned()),
        ];
        let mut trial = Trial::new(cell, Grants::domain("api.example.com"));
        for (name, bytes) in &shapes {
            trial = trial.step(name, "connect", send(vec![bytes.clone()], SERVER));
        }
        trial.prove();
        let report = trial
            .step("well-formed", "connect", send(vec![get("api.example.com", "/hello")], SERVER))
            .inside();
        report.ok("well-formed");
        for (name, _) in &shapes {
            report.failed(name);
        }
        report.denied_for_one_of("api.example.com:80", &["http_malformed", "protocol_not_allowed"]);
    }
}

claim! {
    /// The wish for another protocol stays behind, and what follows it is a request like any other.
    fn an_upgrade_that_the_server_does_not_take_ends_nothing(cell) {
        let tag = format!("{}-upgrade", cell.mark());
        let ask = |wish: &str, name: &str| {
            let head = format!("GET /hello?tag={tag}-{name} HTTP/1.1\r\nHost: api.example.com\r\n{wish}\r\n");
            send(vec![head, get("evil.example.net", &format!("/hello?tag={tag}-hidden"))], "hello from evil")
        };
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("h2c", "connect", ask("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "h2c"))
            .step("half a websocket", "connect", ask("Connection: Upgrade\r\nUpgrade: websocket\r\n", "half"))
            .step("websocket", "connect", ask("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "whole"));
        trial.prove();
        let hidden = || network().arrived(&format!("{tag}-hidden")).len();
        let before = hidden();
        assert_eq!(before, 3, "the counter-proof arrives");
        let report = trial.inside();
        for step in ["h2c", "half a websocket", "websocket"] {
            report.failed(step);
        }
        report.denied("api.example.com:80", "http_host_mismatch");
        assert_eq!(hidden(), before);
        let wishes = |event: &Value| event["headers"].to_string().to_lowercase().contains("h2c");
        let arrived = network().arrived(&format!("{tag}-h2c"));
        assert_eq!(arrived.iter().filter(|a| wishes(a)).count(), 1, "outside only: {arrived:#?}");
        assert_eq!(arrived.len(), 2);
    }
}

claim! {
    fn a_body_that_waits_for_leave_gets_it(cell) {
        let head = format!("POST /echo?tag={} HTTP/1.1\r\nHost: api.example.com\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("waits", "connect", send(vec![head, "body".to_owned()], "\"length\": 4"));
        trial.prove();
        let report = trial.inside();
        report.ok("waits");
        report.nothing_denied();
    }
}

claim! {
    /// One name, spelled otherwise; and another that only begins like it.
    fn spellings_of_the_server_name_are_that_name(cell) {
        let hello = |sni: &str| json!({"host": "api.example.com", "sni": sni});
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("upper case", "hello", hello("API.Example.COM"))
            .step("longer", "hello", hello("api.example.com.evil.example.net"));
        trial.prove();
        let report = trial.inside();
        report.ok("upper case");
        report.failed("longer");
        report.denied("api.example.com", "tls_server_name_mismatch");
    }
}

claim! {
    /// On a port where a server may be the one that begins, a client that takes its time is no other client.
    fn a_late_request_is_held_to_the_name_like_any_other(cell) {
        let code = "
import socket, time
with socket.create_connection(('api.example.com', 8080), timeout=5) as stream:
    time.sleep(0.6)
    stream.sendall(f'GET /hello?tag={args[\"tag\"]} HTTP/1.1\\r\\nHost: {args[\"host\"]}:8080\\r\\n\\r\\n'.encode())
    answer = stream.recv(4096)
    if b'aiohttp' not in answer:
        raise ConnectionError(answer)
";
        let tag = format!("{}-late", cell.mark());
        let step = |host: &str| json!({"code": code, "args": {"host": host, "tag": format!("{tag}-{host}")}});
        let trial = Trial::new(cell, Grants::egress("{domains: [api.example.com], ports: [8080]}"))
            .step("right", "python", step("api.example.com"))
            .step("wrong", "python", step("evil.example.net"));
        trial.prove();
        let wrong = || network().arrived(&format!("{tag}-evil")).len();
        let before = wrong();
        let report = trial.inside();
        report.ok("right");
        report.failed("wrong");
        report.denied("api.example.com:8080", "http_host_mismatch");
        assert!(before > 0 && wrong() == before);
    }
}
