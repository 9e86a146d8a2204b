use crate::{json, skill, skillcell, whole};
use std::fs;

const MANIFEST: &str = "\
name: asking
security_policy:
  version: 1
  network:
    egress:
      - {domains: [api.example.com, '*.example.org']}
      - {domains: [git.example.com], ports: [443], http: [{methods: [GET], paths: ['/repos/*']}]}
      - {cidrs: [203.0.113.0/24], ports: [5432]}
    deny: [{domains: [bad.example.org]}]
  secrets: [{env: KEY, hosts: [api.example.com], in: [header, query]}]
";
const POLICY: &str = "\
version: 1
defaults:
  network:
    egress:
      - {domains: ['*.example.com', '*.example.org'], ports: [443]}
      - {cidrs: [203.0.113.0/28], ports: [5432]}
    deny: [{domains: ['*.evil.example.org']}]
";

#[test]
fn the_answer_says_who_allows_or_denies_and_which_line_would_allow_it() {
    let dir = tempfile::tempdir().unwrap();
    let asking = skill(dir.path(), "asking", MANIFEST);
    let policy = dir.path().join("team.yaml");
    fs::write(&policy, POLICY).unwrap();
    let mut text = String::new();
    for (target, method, code) in [
        ("https://API.example.com./v1?key=x", "GET", 0),
        ("https://git.example.com/repos/a/b", "GET", 0),
        ("https://git.example.com/repos/a/b", "POST", 3),
        ("https://git.example.com/repos/../admin", "GET", 3),
        ("http://api.example.com/", "GET", 3),
        ("https://x.evil.example.org/", "GET", 3),
        ("https://bad.example.org/", "GET", 3),
        ("https://elsewhere.test/", "GET", 3),
        ("203.0.113.5:5432", "GET", 0),
        ("203.0.113.99:5432", "GET", 3),
        ("https://169.254.169.254/latest", "GET", 3),
        ("https://user@api.example.com/", "GET", 2),
        ("https://2130706433/", "GET", 2),
    ] {
        let args = ["policy", "test", &asking, target, "--method", method];
        let output = skillcell(&[&args[..], &["--policy", policy.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(code), "{target}: {output:?}");
        text += &format!("$ {method} {target}\n{}\n", whole(&output, dir.path()));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn without_a_policy_everything_is_denied_and_the_way_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let asking = skill(dir.path(), "asking", MANIFEST);
    let output = skillcell(&[
        "policy",
        "test",
        &asking,
        "https://api.example.com/",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(3));
    let report = json(&output);
    assert_eq!(report["allowed"], false);
    assert_eq!(report["reason"], "network_not_allowed");
    assert_eq!(report["manifest"]["allows"], true);
    assert_eq!(report["operator"]["allows"], false);
    let fixes = report["to_allow"].as_array().unwrap();
    assert_eq!(fixes.len(), 1);
    assert_eq!(
        fixes[0]["line"],
        "network: {egress: [{domains: [api.example.com], ports: [443]}]}"
    );
}

/// The lines in `to_allow` are not only shown: with them the answer is yes.
#[test]
fn the_lines_that_are_given_do_allow_it() {
    let dir = tempfile::tempdir().unwrap();
    for target in [
        "https://new.example.com/",
        "198.51.100.7:22",
        "[2001:db8::7]:443",
        "10.0.0.7:5432",
    ] {
        let ask = |manifest: &str, policy: &str| {
            let folder = skill(dir.path(), "growing", manifest);
            let file = dir.path().join("p.yaml");
            fs::write(&file, policy).unwrap();
            let file = file.to_str().unwrap();
            let args = [
                "policy", "test", &folder, target, "--json", "--policy", file,
            ];
            json(&skillcell(&args))
        };
        let (name, version) = ("name: growing\n", "version: 1\n");
        let denied = ask(name, version);
        let line = |at: usize| denied["to_allow"][at]["line"].as_str().unwrap().to_owned();
        let manifest = format!("{name}security_policy:\n  version: 1\n  {}\n", line(0));
        let policy = format!("{version}defaults:\n  {}\n", line(1));
        let answer = ask(&manifest, &policy);
        assert_eq!(answer["allowed"], true, "{target}: {answer}");
    }
}
