//! `skillcell policy test` says what happens: asked about each target, and then tried.

use crate::claim;
use crate::trial::{Grants, Trial};
use serde_json::json;
use std::ffi::OsString;

const NETWORK: &str = "egress: [\
    {domains: [api.example.com], ports: [80, 443, 8443], http: [{methods: [GET], paths: [\"/repos/*\", \"/hello\"]}]}, \
    {domains: [other.example.com], ports: [80, 8080]}, \
    {domains: [\"*.wild.example.org\"], ports: [80]}, \
    {cidrs: [198.51.100.0/24], ports: [8080]}, \
    {cidrs: [0.0.0.0/0], ports: [80]}, \
    {cidrs: [10.0.0.0/8], ports: [8080]}], \
    deny: [{domains: [denied.wild.example.org, \"*.deeper.wild.example.org\"]}, {domains: [other.example.com], ports: [8080]}, \
    {cidrs: [198.51.100.20/32]}]";

/// What the names among them resolve to is public: an address that a name leads to is only known when it is dialled.
const TARGETS: [(&str, &str); 38] = [
    ("GET", "https://api.example.com/repos/a"),
    ("GET", "https://api.example.com/hello"),
    ("GET", "https://api.example.com/hello/"),
    ("GET", "https://api.example.com/admin"),
    ("POST", "https://api.example.com/repos/a"),
    ("GET", "http://API.Example.COM./repos/a"),
    ("GET", "https://api.example.com:8443/repos/a"),
    ("GET", "https://api.example.com:9443/repos/a"),
    ("GET", "http://api.example.com/repos/a"),
    ("GET", "http://api.example.com/repos/../admin"),
    ("GET", "http://api.example.com/other/../repos/a"),
    ("GET", "http://api.example.com/repos/%2e%2e/admin"),
    ("GET", "http://api.example.com/repos/a%2Fb"),
    ("GET", "http://api.example.com/repos//a"),
    ("GET", "http://api.example.com/REPOS/a"),
    ("GET", "http://api.example.com:8080/repos/a"),
    ("GET", "http://other.example.com/x%2Fy//z"),
    ("DELETE", "http://other.example.com/"),
    ("GET", "http://other.example.com:8080/"),
    ("GET", "https://other.example.com/"),
    ("GET", "http://a.wild.example.org/"),
    ("GET", "http://a.b.wild.example.org/"),
    ("GET", "http://wild.example.org/"),
    ("GET", "http://denied.wild.example.org/"),
    ("GET", "http://x.denied.wild.example.org/"),
    ("GET", "http://x.deeper.wild.example.org/"),
    ("GET", "http://deeper.wild.example.org/"),
    ("GET", "http://evil.example.net/"),
    ("GET", "http://198.51.100.10:8080/"),
    ("GET", "http://198.51.100.20:8080/"),
    ("GET", "http://198.51.100.20/"),
    ("GET", "http://203.0.113.5/"),
    ("GET", "http://203.0.113.5:8080/"),
    ("GET", "http://10.0.0.5:8080/"),
    ("GET", "http://10.0.0.5/"),
    ("GET", "http://169.254.169.254/"),
    ("GET", "http://[64:ff9b::a9fe:a9fe]/"),
    ("GET", "http://[::ffff:198.51.100.10]:8080/"),
];

claim! {
    fn what_policy_test_says_of_a_target_is_what_happens_to_it(cell) {
        let mut trial = Trial::new(cell, Grants::network(NETWORK));
        for (method, url) in TARGETS {
            trial = trial.step(&format!("{method} {url}"), "urllib", json!({"url": url, "method": method, "trust": "default"}));
        }
        let report = trial.inside();
        let (bundle, policy) = (trial.bundle(), cell.path("work/operator.yaml"));
        let mut wrong = Vec::new();
        let (mut allowed, mut denied) = (0, 0);
        for (method, url) in TARGETS {
            let arguments: [OsString; 9] = [
                "policy".into(), "test".into(), bundle.clone().into(), url.into(), "--method".into(), method.into(),
                "--policy".into(), policy.clone().into(), "--json".into(),
            ];
            let said = cell.skillcell(arguments);
            let verdict = said.envelope()["allowed"].as_bool();
            let happened = report.result(&format!("{method} {url}"));
            match verdict {
                Some(true) => allowed += 1,
                _ => denied += 1,
            }
            if verdict != happened["ok"].as_bool() {
                wrong.push(format!("{method} {url}: said {verdict:?}, was {happened}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", report.show());
        assert!(allowed >= 12 && denied >= 12, "{allowed} and {denied}: the table shows nothing");
    }
}
