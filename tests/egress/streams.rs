//! Connections that last and connections in number, relayed as they are and taken apart.

use crate::network::{cell, network};
use crate::trial::{Grants, Trial};
use serde_json::{Value, json};
use skillcell_tests::{User, shared};

const BUDGET: &str =
    "budget: {bytes_in: 4GiB, bytes_out: 1GiB, connections: 1000, requests: 10000, hosts: 10}";

#[derive(Clone, Copy, PartialEq)]
enum How {
    Relayed,
    Inspected,
}

impl How {
    fn grants(self) -> Grants {
        let http = match self {
            How::Relayed => "",
            How::Inspected => ", http: [{methods: [GET, POST], paths: [\"/*\"]}]",
        };
        let rule = format!("{{domains: [api.example.com], ports: [80, 443, 8083]{http}}}");
        Grants::network(&format!("egress: [{rule}], {BUDGET}"))
    }

    /// A step's fields, with the trust that this way needs.
    fn step(self, mut fields: Value) -> Value {
        if self == How::Inspected {
            fields["trust"] = "default".into();
        }
        fields
    }
}

/// `both! { fn name(how) { … } }` makes `name::{relayed,inspected}`.
macro_rules! both {
    ($(#[$doc:meta])* fn $name:ident($how:ident) $body:block) => {
        $(#[$doc])*
        mod $name {
            use super::*;
            fn check($how: How) $body
            #[test]
            fn relayed() {
                let _shared = shared();
                check(How::Relayed);
            }
            #[test]
            fn inspected() {
                let _shared = shared();
                check(How::Inspected);
            }
        }
    };
}

both! {
    fn websockets_pass(how) {
        let cell = cell(User::Caller);
        let trial = Trial::new(&cell, how.grants())
            .with_libraries()
            .step("wss", "websocket", how.step(json!({"url": "wss://api.example.com/ws"})))
            .step("ws", "websocket", how.step(json!({"url": "ws://api.example.com/ws"})))
            .step("denied", "websocket", how.step(json!({"url": "wss://other.example.com/ws"})));
        let report = trial.inside();
        for step in ["wss", "ws"] {
            assert_eq!(report.ok(step), &json!({"text": "echo one", "binary": 1 << 20}));
        }
        report.failed("denied");
    }
}

both! {
    fn events_come_one_by_one(how) {
        let cell = cell(User::Caller);
        let trial = Trial::new(&cell, how.grants())
            .step("tls", "events", how.step(json!({"url": "https://api.example.com/sse"})))
            .step("plain", "events", how.step(json!({"url": "http://api.example.com/sse"})));
        let report = trial.inside();
        for step in ["tls", "plain"] {
            let seen = report.ok(step);
            assert_eq!(seen["events"], json!(["tick 0", "tick 1", "tick 2"]));
            assert!(seen["spread_ms"].as_u64().is_some_and(|ms| ms > 400), "held back\n{}", report.show());
        }
    }
}

both! {
    fn a_gibibyte_comes_down(how) {
        let cell = cell(User::Caller);
        let bytes = 1_u64 << 30;
        let url = format!("https://api.example.com/big?bytes={bytes}");
        let trial = Trial::new(&cell, how.grants()).step("big", "download", how.step(json!({"url": url})));
        let report = trial.inside();
        assert_eq!(report.ok("big")["length"], bytes);
        let counted = report.outcome().envelope()["usage"]["bytes_in"].as_u64();
        assert!(counted.is_some_and(|n| n >= bytes), "counted\n{}", report.show());
    }
}

both! {
    fn ten_mebibytes_go_up_unchanged(how) {
        let cell = cell(User::Caller);
        let url = |tls: bool| format!("http{}://api.example.com/upload", if tls { "s" } else { "" });
        let mut trial = Trial::new(&cell, how.grants());
        for (name, tls, chunked) in [("whole", true, false), ("chunked", true, true), ("plain", false, true)] {
            let fields = json!({"url": url(tls), "bytes": 10 << 20, "chunked": chunked});
            trial = trial.step(name, "upload", how.step(fields));
        }
        let report = trial.inside();
        for step in ["whole", "chunked", "plain"] {
            let seen = report.ok(step);
            let got: Value = serde_json::from_str(seen["body"].as_str().expect("a body")).expect("JSON");
            assert_eq!((&got["length"], &got["sha256"]), (&json!(10 << 20), &seen["sha256"]), "{step}");
        }
    }
}

both! {
    fn a_kept_connection_is_one_connection(how) {
        let cell = cell(User::Caller);
        let mut trial = Trial::new(&cell, how.grants());
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://api.example.com/connections");
            trial = trial.step(scheme, "keep_alive", how.step(json!({"url": url, "times": 20})));
        }
        let report = trial.inside();
        for scheme in ["https", "http"] {
            let bodies = report.ok(scheme)["bodies"].as_array().expect("a list");
            assert_eq!(bodies.len(), 20);
            assert!(bodies.iter().all(|b| b == &bodies[0]), "one connection upstream\n{}", report.show());
        }
    }
}

both! {
    fn two_hundred_connections_at_the_same_time(how) {
        let cell = cell(User::Caller);
        let trial = Trial::new(&cell, how.grants())
            .step("many", "parallel", how.step(json!({"url": "https://api.example.com/hello", "count": 200})));
        let report = trial.inside();
        assert_eq!(report.ok("many"), &json!({"hello from api.example.com": 200}));
        report.nothing_denied();
    }
}

both! {
    /// gRPC has its status there.
    fn what_stands_behind_a_body_passes_both_ways(how) {
        let cell = cell(User::Caller);
        let sum = format!("{}-sum", cell.mark());
        let trial = Trial::new(&cell, how.grants())
            .with_libraries()
            .step("1.1", "http1_trailers", json!({"host": "api.example.com", "port": 8083, "sum": sum}))
            .step("2", "http2_trailers", how.step(json!({"host": "api.example.com", "sum": sum})));
        for report in [trial.prove(), trial.inside()] {
            assert_eq!(report.ok("1.1")["behind"], "x-check: whole", "{}", report.show());
            assert_eq!(report.ok("2")["behind"], json!({"x-check": "whole"}), "{}", report.show());
        }
        let arrived = network().arrived(&sum);
        assert_eq!(arrived.len(), 4, "outside and inside, each with both\n{arrived:#?}");
    }
}

/// What the servers can do at all: without this a failure above could be theirs.
#[test]
fn the_world_has_these_streams() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let report = Trial::new(&cell, Grants::none())
        .with_libraries()
        .step(
            "wss",
            "websocket",
            json!({"url": "wss://api.example.com/ws"}),
        )
        .step("ws", "websocket", json!({"url": "ws://api.example.com/ws"}))
        .step(
            "sse",
            "events",
            json!({"url": "https://api.example.com/sse"}),
        )
        .step(
            "big",
            "download",
            json!({"url": format!("https://api.example.com/big?bytes={}", 64 << 20)}),
        )
        .step(
            "up",
            "upload",
            json!({"url": "https://api.example.com/upload", "bytes": 10 << 20, "chunked": true}),
        )
        .step(
            "kept",
            "keep_alive",
            json!({"url": "https://api.example.com/connections", "times": 20}),
        )
        .step(
            "many",
            "parallel",
            json!({"url": "https://api.example.com/hello", "count": 200}),
        )
        .prove();
    assert_eq!(report.ok("big")["length"], 64 << 20);
    assert_eq!(
        report.ok("many"),
        &json!({"hello from api.example.com": 200})
    );
    assert_eq!(report.ok("wss")["binary"], 1 << 20);
}
