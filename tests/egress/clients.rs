//! Every client library, as it is, with and without proxy variables.

use crate::network::{cell, network};
use crate::trial::{Grants, Report, Trial};
use serde_json::{Value, json};
use skillcell_tests::{Cell, User, shared};

/// By name of the act. Node's have no proxy variables to obey.
const CLIENTS: [&str; 9] = [
    "urllib",
    "requests",
    "httpx",
    "httpx2",
    "aiohttp",
    "curl",
    "wget",
    "node_fetch",
    "node_http",
];

/// Each client once for a host that is allowed and once for one that is not.
fn trial<'a>(cell: &'a Cell, grants: Grants, clients: &[&str], fields: &Value) -> Trial<'a> {
    let mut trial = Trial::new(cell, grants).with_libraries();
    for client in clients {
        for (name, host) in [
            ("allowed", "api.example.com"),
            ("denied", "other.example.com"),
        ] {
            let mut fields = fields.clone();
            fields["url"] =
                format!("https://{host}/hello?tag={}-{client}-{name}", cell.mark()).into();
            trial = trial.step(&format!("{client} {name}"), client, fields);
        }
    }
    trial
}

#[track_caller]
fn assert_each(report: &Report, clients: &[&str]) {
    for client in clients {
        assert_eq!(
            report.body(&format!("{client} allowed")),
            "hello from api.example.com"
        );
        report.failed(&format!("{client} denied"));
    }
    report.denied("other.example.com", "host_not_allowed");
}

/// No request of this call got to the host that is not allowed.
#[track_caller]
fn assert_none_arrived(cell: &Cell, before: usize) {
    let arrived = network().arrived(&format!("{}-", cell.mark()));
    let denied = arrived
        .iter()
        .filter(|a| a.to_string().contains("-denied"))
        .count();
    assert_eq!(denied, before, "{arrived:#?}");
}

#[test]
fn every_client_reaches_what_is_allowed_and_only_that_without_proxy_variables() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let trial = trial(
        &cell,
        Grants::domain("api.example.com"),
        &CLIENTS,
        &json!({}),
    );
    trial.prove();
    let report = trial.inside();
    assert_each(&report, &CLIENTS);
    assert_eq!(report.ok("httpx2 allowed")["version"], "HTTP/2");
    assert_none_arrived(&cell, CLIENTS.len());
}

#[test]
fn every_client_reaches_what_is_allowed_and_only_that_through_the_http_proxy() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let proxy = "http://127.0.0.1:3128";
    let env = json!({"env": {
        "HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "http_proxy": proxy, "https_proxy": proxy,
    }});
    let report = trial(&cell, Grants::domain("api.example.com"), &CLIENTS, &env).inside();
    assert_each(&report, &CLIENTS);
    assert_none_arrived(&cell, 0);
}

#[test]
fn plain_http_goes_through_the_http_proxy_in_absolute_form() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let env = json!({"http_proxy": "http://127.0.0.1:3128"});
    let mut trial = Trial::new(&cell, Grants::domain("api.example.com")).with_libraries();
    let clients = ["urllib", "requests", "httpx", "aiohttp", "curl", "wget"];
    for client in clients {
        trial = trial
            .step(
                client,
                client,
                json!({"url": "http://api.example.com/hello", "env": env}),
            )
            .step(
                &format!("{client} denied"),
                client,
                json!({"url": "http://other.example.com/hello", "env": env}),
            );
    }
    let report = trial.inside();
    for client in clients {
        assert_eq!(report.body(client), "hello from api.example.com");
        report.failed(&format!("{client} denied"));
    }
    report.denied("other.example.com", "host_not_allowed");
}

/// `socks5h` has the proxy resolve, `socks5` resolves first: then the proxy is given the cell's own
/// synthetic address.
#[test]
fn socks_clients_reach_what_is_allowed_and_only_that() {
    let _shared = shared();
    for scheme in ["socks5h", "socks5"] {
        let cell = cell(User::Caller);
        let proxy = format!("{scheme}://127.0.0.1:1080");
        let env = json!({"env": {"ALL_PROXY": proxy, "all_proxy": proxy}});
        let clients = ["requests", "httpx", "curl"];
        let report = trial(&cell, Grants::domain("api.example.com"), &clients, &env).inside();
        assert_each(&report, &clients);
        assert_none_arrived(&cell, 0);
    }
}

crate::claim! {
    fn a_raw_socket_reaches_what_is_allowed_and_only_that(cell) {
        let step = |host: &str| json!({
            "host": host, "port": 443, "sni": host, "expect": "hello from",
            "send": [format!("GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n")],
        });
        let trial = Trial::new(cell, Grants::domain("api.example.com"))
            .step("allowed", "tls", step("api.example.com"))
            .step("denied", "tls", step("other.example.com"));
        trial.prove();
        let report = trial.inside();
        report.ok("allowed");
        report.failed("denied");
        report.denied("other.example.com", "host_not_allowed");
    }
}

crate::claim! {
    fn clients_of_the_base_system_reach_what_is_allowed_and_only_that(cell) {
        let mut trial = Trial::new(cell, Grants::domain("api.example.com"));
        let clients = ["urllib", "curl", "wget", "node_fetch", "node_http"];
        for client in clients {
            trial = trial
                .step(client, client, json!({"url": "https://api.example.com/hello"}))
                .step(&format!("{client} denied"), client, json!({"url": "https://evil.example.net/hello"}));
        }
        trial.prove();
        let report = trial.inside();
        for client in clients {
            report.ok(client);
            report.failed(&format!("{client} denied"));
        }
    }
}

/// With rules for methods or paths the cell's authority has to be believed by everybody, unasked.
#[test]
fn every_client_believes_the_authority_of_an_inspected_call() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let grants = Grants::egress(
        "{domains: [api.example.com], ports: [443], http: [{methods: [GET], paths: [\"/hello\"]}]}",
    );
    let report = trial(&cell, grants, &CLIENTS, &json!({"trust": "default"})).inside();
    assert_each(&report, &CLIENTS);
    assert_eq!(report.ok("httpx2 allowed")["version"], "HTTP/2");
}

/// Without proxy variables: Java obeys none.
#[test]
fn java_reaches_what_is_allowed_and_only_that() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let mut trial = Trial::new(&cell, Grants::domain("api.example.com"));
    let tag = cell.mark();
    for (name, host) in [
        ("allowed", "api.example.com"),
        ("denied", "other.example.com"),
    ] {
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{host}/hello?tag={tag}-{name}");
            trial = trial.step(&format!("{scheme} {name}"), "java", json!({"url": url}));
        }
    }
    trial.prove();
    let before = network().arrived(&format!("{tag}-denied")).len();
    let report = trial.inside();
    for scheme in ["https", "http"] {
        let body = report.body(&format!("{scheme} allowed"));
        assert_eq!(body, "hello from api.example.com");
        report.failed(&format!("{scheme} denied"));
    }
    report.denied("other.example.com", "host_not_allowed");
    assert_eq!(network().arrived(&format!("{tag}-denied")).len(), before);
}
