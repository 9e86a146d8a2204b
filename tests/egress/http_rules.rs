//! Methods and paths, by looking into the connection.

use crate::claim;
use crate::network::{cell, network};
use crate::trial::{Grants, Trial};
use serde_json::{Value, json};
use skillcell_tests::{User, shared};

fn grants() -> Grants {
    Grants::egress(
        "{domains: [api.example.com], ports: [443, 80], http: [{methods: [GET], paths: [\"/repos/*\"]}]}",
    )
}

/// The same hosts, looked into all the same, with nothing that a request could run against.
fn any_request() -> Grants {
    Grants::egress(
        "{domains: [api.example.com], ports: [443, 80], http: [{methods: [GET, POST, DELETE], paths: [\"/*\"]}]}",
    )
}

/// A raw request over TLS, believing what the cell believes.
fn raw(method: &str, path: &str) -> Value {
    json!({
        "host": "api.example.com", "port": 443, "sni": "api.example.com", "trust": "default",
        "send": [format!("{method} {path} HTTP/1.1\r\nHost: api.example.com\r\n\r\n")], "expect": "HTTP/1.1 200",
    })
}

claim! {
    fn only_the_named_methods_and_paths_pass(cell) {
        let tag = &format!("held-{}", cell.mark());
        let ask = |scheme: &str, method: &str, path: &str, tag: &str| json!({
            "url": format!("{scheme}://api.example.com{path}?tag={tag}"), "method": method, "trust": "default",
        });
        let trial = |grants: Grants, tag: &str| {
            let mut trial = Trial::new(cell, grants);
            for scheme in ["https", "http"] {
                trial = trial
                    .step(&format!("{scheme} allowed"), "urllib", ask(scheme, "GET", "/repos/a/b", tag))
                    .step(&format!("{scheme} method"), "urllib", ask(scheme, "POST", "/repos/a", tag))
                    .step(&format!("{scheme} delete"), "urllib", ask(scheme, "DELETE", "/repos/a", tag))
                    .step(&format!("{scheme} path"), "urllib", ask(scheme, "GET", "/admin", tag));
            }
            trial
        };
        let free = trial(any_request(), &format!("free-{}", cell.mark())).inside();
        for scheme in ["https", "http"] {
            for step in ["allowed", "method", "delete", "path"] {
                free.ok(&format!("{scheme} {step}"));
            }
        }
        let report = trial(grants(), tag).inside();
        for scheme in ["https", "http"] {
            report.ok(&format!("{scheme} allowed"));
            for step in ["method", "delete", "path"] {
                report.failed(&format!("{scheme} {step}"));
            }
        }
        report.denied("api.example.com", "http_request_not_allowed");
        let arrived = network().arrived(tag);
        let requests: Vec<&Value> = arrived.iter().filter(|a| a["event"] == "request").collect();
        assert_eq!(requests.len(), 2, "{requests:#?}");
        assert!(requests.iter().all(|r| r["method"] == "GET"), "{requests:#?}");
    }
}

claim! {
    /// Two connections, of which the second one has a denied request.
    fn a_recorded_request_names_the_connection_that_it_came_by(cell) {
        let report = Trial::new(cell, grants())
            .step("allowed", "tls", raw("GET", "/repos/one"))
            .step("denied", "tls", raw("GET", "/admin"))
            .inside();
        report.ok("allowed");
        report.failed("denied");
        let decided = report.recorded(&["connection_decided"]);
        let requests = report.recorded(&["http_request"]);
        let numbers = |events: &[Value]| -> Vec<Option<u64>> {
            events.iter().map(|e| e["connection"].as_u64()).collect()
        };
        assert_eq!(requests.len(), 2, "{requests:#?}");
        assert!(numbers(&requests).iter().all(Option::is_some), "{requests:#?}");
        assert_eq!(numbers(&requests), numbers(&decided), "{decided:#?}");
        assert_ne!(requests[0]["connection"], requests[1]["connection"]);
        let paths: Vec<&Value> = requests.iter().map(|r| &r["path"]).collect();
        assert_eq!(paths, ["/repos/one", "/admin"]);
        assert_eq!(requests[1]["denied"], "http_request_not_allowed");
    }
}

claim! {
    /// Outside, a server gets each of them as it was written: what it makes of it is its own affair.
    fn paths_are_normalised_before_they_are_matched(cell) {
        let tricks = [
            "/repos/../admin", "/repos/%2e%2e/admin", "/repos/%2E%2E/admin", "/repos/.%2e/admin", "/repos/..%2fadmin",
            "/repos/a/../../admin", "//repos/../admin", "/./admin", "/repos/%252e%252e/admin", "/repos\\..\\admin",
            "/repos/..;/admin", "/repos/%5c..%5cadmin", "/repos/%00/../admin", "/REPOS/admin", "/reposadmin",
        ];
        let tag = format!("{}-trick", cell.mark());
        let mut trial = Trial::new(cell, grants())
            .step("straight", "tls", raw("GET", "/repos/admin?x=/../.."))
            .step("around", "tls", raw("GET", "/other/../repos/x"));
        let mut outside = Trial::new(cell, Grants::none());
        for trick in tricks {
            trial = trial.step(trick, "tls", raw("GET", &format!("{trick}?tag={tag}")));
            outside = outside.step(trick, "tls", raw("GET", &format!("{trick}?tag=outside-{tag}")));
        }
        outside.prove();
        for trick in tricks {
            let target = format!("{trick}?tag=outside-{tag}");
            assert!(network().arrived(&format!("outside-{tag}")).iter().any(|a| a["target"] == target), "{trick}");
        }
        let report = trial.inside();
        report.ok("straight");
        let escaped: Vec<Value> = network().arrived(&format!("?tag={tag}")).into_iter().filter(|a| {
            a["target"].as_str().is_some_and(|t| !t.starts_with("/repos/") || t.contains("..") || t.to_lowercase().contains("%2e"))
        }).collect();
        assert!(escaped.is_empty(), "{escaped:#?}");
        for trick in ["/repos/../admin", "/repos/%2e%2e/admin", "//repos/../admin", "/./admin", "/REPOS/admin", "/reposadmin"] {
            report.failed(trick);
        }
    }
}

claim! {
    fn each_request_of_a_kept_connection_is_asked_about(cell) {
        let tag = cell.mark();
        let mut fields = raw("GET", "/repos/a");
        let second = format!("GET /admin?tag={tag} HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        fields["send"] = json!([fields["send"][0], second]);
        let report = Trial::new(cell, grants()).step("second", "tls", fields.clone()).inside();
        report.failed("second");
        report.denied("api.example.com", "http_request_not_allowed");
        assert!(network().arrived(tag).is_empty());
        Trial::new(cell, any_request()).step("second", "tls", fields).inside().ok("second");
        assert!(!network().arrived(tag).is_empty(), "the counter-proof arrives");
    }
}

#[test]
fn http_2_requests_are_held_to_the_same_rules() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let trial = |grants: Grants, tag: &str| {
        let ask = |method: &str, path: &str| {
            json!({"url": format!("https://api.example.com{path}?tag={tag}"), "method": method,
                "trust": "default"})
        };
        let mut authority = ask("GET", "/repos/x");
        authority["headers"] = json!({"Host": "evil.example.net"});
        Trial::new(&cell, grants)
            .with_libraries()
            .step("allowed", "httpx2", ask("GET", "/repos/a"))
            .step("method", "httpx2", ask("POST", "/repos/a"))
            .step("path", "httpx2", ask("GET", "/admin"))
            .step("authority", "httpx2", authority)
    };
    let free = format!("free-{}", cell.mark());
    trial(Grants::none(), &free).prove();
    let inspected = trial(any_request(), &free).inside();
    for step in ["allowed", "method", "path"] {
        inspected.ok(step);
    }
    let tag = format!("held-{}", cell.mark());
    let report = trial(grants(), &tag).inside();
    assert_eq!(report.ok("allowed")["version"], "HTTP/2");
    for step in ["method", "path", "authority"] {
        report.failed(step);
    }
    report.denied("api.example.com", "http_request_not_allowed");
    report.denied("api.example.com", "http_host_mismatch");
    let arrived = network().arrived(&tag);
    let requests: Vec<_> = arrived.iter().filter(|a| a["event"] == "request").collect();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    assert_eq!(requests[0]["version"], "2", "upstream too");
}

claim! {
    /// Looking into a connection must not make the other end believable to a skill that it isn't.
    fn an_upstream_that_nobody_vouches_for_is_refused(cell) {
        // Of an authority that nobody knows; from long ago; for another name.
        for port in [9443, 9444, 9445] {
            let ask = |trust: &str| json!({"url": format!("https://api.example.com:{port}/hello"), "trust": trust});
            let trial = |http: &str| {
                let rule = format!("{{domains: [api.example.com], ports: [{port}]{http}}}");
                Trial::new(cell, Grants::egress(&rule)).step("believes anybody", "urllib", ask("anybody"))
            };
            let relayed = trial("");
            relayed.prove();
            relayed.inside().ok("believes anybody");
            let report = trial(", http: [{methods: [GET], paths: [\"/*\"]}]")
                .step("believes the cell", "urllib", ask("default"))
                .inside();
            report.failed("believes anybody");
            report.failed("believes the cell");
            report.denied(&format!("api.example.com:{port}"), "upstream_tls");
        }
    }
}

claim! {
    /// The test authority of the upstream is believed where nothing is looked into, and not where it is.
    fn only_connections_with_such_rules_are_looked_into(cell) {
        let grants = Grants::egress(
            "{domains: [api.example.com], ports: [443], http: [{methods: [GET], paths: [\"/*\"]}]}, \
             {domains: [other.example.com], ports: [443]}",
        );
        let report = Trial::new(cell, grants)
            .step("inspected", "urllib", json!({"url": "https://api.example.com/hello", "trust": "default"}))
            .step("as it is", "urllib", json!({"url": "https://other.example.com/hello"}))
            .step("replaced", "urllib", json!({"url": "https://api.example.com/hello"}))
            .step("not replaced", "urllib", json!({"url": "https://other.example.com/hello", "trust": "default"}))
            .inside();
        report.ok("inspected");
        report.ok("as it is");
        report.failed("replaced");
        report.failed("not replaced");
    }
}

claim! {
    fn the_authority_is_of_one_call_and_its_key_is_not_in_the_cell(cell) {
        let look = "
import glob, os
paths = [os.environ['SSL_CERT_FILE'], os.environ['REQUESTS_CA_BUNDLE'], os.environ['NODE_EXTRA_CA_CERTS']]
texts = [open(path).read() for path in paths]
keys = [path for folder in ('/etc/ssl', '/tmp', '/scratch', '/run') for path in glob.glob(folder + '/**', recursive=True)
        if os.path.isfile(path) and os.access(path, os.R_OK) and b'PRIVATE KEY' in open(path, 'rb').read()]
value = {'last': texts[2], 'keys': keys, 'inside': any('PRIVATE KEY' in text for text in texts)}
";
        let one = || {
            let report = Trial::new(cell, grants()).step("look", "python", json!({"code": look})).inside();
            report.ok("look").clone()
        };
        let (first, second) = (one(), one());
        assert_eq!((&first["keys"], &first["inside"]), (&json!([]), &json!(false)));
        assert_ne!(first["last"], second["last"], "every call has its own");
    }
}

claim! {
    /// After a handshake nobody reads along, so a server that repeats "101" must not end the looking.
    fn only_a_server_that_proves_it_speaks_websocket_is_let_alone(cell) {
        let tag = format!("{}-upgraded", cell.mark());
        let ask = |path: &str| json!({
            "host": "api.example.com", "port": 8081, "expect": "tag",
            "send": [
                format!("GET {path} HTTP/1.1\r\nHost: api.example.com:8081\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
                format!("GET /admin?tag={tag}{path} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
            ],
        });
        let grants = Grants::egress(
            "{domains: [api.example.com], ports: [8081], http: [{methods: [GET], paths: [\"/right\", \"/wrong\"]}]}",
        );
        let trial = Trial::new(cell, grants)
            .step("right", "connect", ask("/right"))
            .step("wrong", "connect", ask("/wrong"));
        trial.prove();
        let before = network().arrived(&format!("{tag}/wrong")).len();
        assert!(before > 0, "the counter-proof arrives");
        let report = trial.inside();
        report.ok("right");
        report.failed("wrong");
        report.denied("api.example.com:8081", "protocol_not_allowed");
        assert_eq!(network().arrived(&format!("{tag}/wrong")).len(), before);
    }
}

claim! {
    /// There are servers that take the method or the path from elsewhere than the request line.
    fn a_permitted_request_can_t_say_that_it_is_another_one(cell) {
        let tag = format!("{}-override", cell.mark());
        let tricks = [
            ("method", "/repos/a?", "X-HTTP-Method-Override: DELETE\r\n"),
            ("path", "/repos/a?", "X-Original-URL: /admin\r\n"),
            ("rewrite", "/repos/a?", "X-Rewrite-URL: /admin\r\n"),
            ("parameter", "/repos/a?_method=DELETE&", ""),
            ("escaped", "/repos/a?%5Fmethod=DELETE&", ""),
        ];
        let trial = |grants: Grants, tag: &str| {
            let mut trial = Trial::new(cell, grants);
            for (name, path, header) in tricks {
                let send = format!("GET {path}tag={tag} HTTP/1.1\r\nHost: api.example.com\r\n{header}\r\n");
                trial = trial.step(name, "connect", json!({
                    "host": "api.example.com", "port": 80, "send": [send], "expect": "HTTP/1.1 200",
                }));
            }
            trial
        };
        let free = trial(Grants::domain("api.example.com"), &format!("free-{tag}")).inside();
        let report = trial(grants(), &format!("held-{tag}")).inside();
        for (name, ..) in tricks {
            free.ok(name);
            report.failed(name);
        }
        assert_eq!(network().arrived(&format!("free-{tag}")).len(), tricks.len(), "the counter-proof arrives");
        assert!(network().arrived(&format!("held-{tag}")).is_empty());
        report.denied("api.example.com:80", "http_request_not_allowed");
    }
}

claim! {
    /// Nobody matches it, so nobody may change it: a name with a slash in it is one segment for its server.
    fn where_all_requests_are_allowed_a_path_arrives_as_it_was_written(cell) {
        let tag = cell.mark();
        let target = format!("/a%2Fb//c/../%7Ed?tag={tag}");
        let fields = json!({
            "host": "api.example.com", "port": 80, "expect": "HTTP/1.1 200",
            "send": [format!("GET {target} HTTP/1.1\r\nHost: api.example.com\r\n\r\n")],
        });
        let report = Trial::new(cell, Grants::domain("api.example.com")).step("odd", "connect", fields.clone()).inside();
        report.ok("odd");
        report.nothing_denied();
        let arrived = network().arrived(tag);
        assert!(arrived.iter().any(|a| a["target"] == target), "{arrived:#?}");
        Trial::new(cell, any_request()).step("odd", "connect", fields).inside().failed("odd");
    }
}

claim! {
    /// Some clients refuse two certificates of one issuer with one number.
    fn certificates_of_a_call_differ_and_don_t_outlive_it_by_much(cell) {
        let code = "
import socket, ssl
value = []
for host in ('api.example.com', 'other.example.com'):
    with socket.create_connection((host, 443), timeout=5) as plain:
        with ssl.create_default_context().wrap_socket(plain, server_hostname=host) as stream:
            got = stream.getpeercert()
            days = (ssl.cert_time_to_seconds(got['notAfter']) - ssl.cert_time_to_seconds(got['notBefore'])) / 86400
            value.append([got['serialNumber'], days])
";
        let rule = "{domains: [api.example.com, other.example.com], ports: [443], http: [{methods: [GET], paths: [\"/*\"]}]}";
        let report = Trial::new(cell, Grants::egress(rule)).step("look", "python", json!({"code": code})).inside();
        let seen = report.ok("look");
        assert_ne!(seen[0][0], seen[1][0], "{seen}");
        assert!(seen[0][1].as_f64().is_some_and(|days| days < 32.0), "{seen}");
    }
}
