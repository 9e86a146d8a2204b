//! What a policy file may hold, and what its author is told when it can't.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

use proptest::prelude::*;
use skillcell_policy::{OperatorPolicy, PolicyError, PolicyFile};

const FULL: &str = r#"
version: 1
defaults:
  isolation: {minimum: process}
  trust: allow
  network:
    egress:
      - {domains: [api.example.com, "*.example.org"], ports: [443]}
      - domains: [api.example.net]
        ports: [443]
        http: [{methods: [GET], paths: ["/repos/*"]}]
  filesystem:
    read: [/data]
    write: [/srv/out]
    scratch: 256MiB
    caller: {read: [/data], write: [/srv/out]}
  env: [API_KEY]
  resources: {timeout: 60s, cpu: 2, memory: 1GiB, processes: 64, output: 4MiB}
  audit: {level: full, segment: 16MiB, segment_days: 1, keep: 2GiB, keep_days: 90}
  dependencies: {source_builds: false, index_hosts: [{domains: [files.example.com]}]}
tiers:
  external: {resources: {timeout: 10s}}
categories:
  "finance/*": {network: {egress: []}}
assign:
  - {tier: core, digests: ["sha256:0000000000000000000000000000000000000000000000000000000000000000"]}
  - {tier: verified, paths: [/opt/skills]}
"#;

fn error(text: &str) -> PolicyError {
    OperatorPolicy::parse(text, "p.yaml").expect_err(text)
}

#[test]
fn the_whole_vocabulary_parses() {
    OperatorPolicy::parse(FULL, "p.yaml").expect("valid");
    OperatorPolicy::parse("version: 1", "p.yaml").expect("the least policy");
}

#[test]
fn an_unknown_field_anywhere_is_an_error_at_its_place() {
    // After each line that opens a block or a flow mapping, a field that nobody knows.
    let mut tried = 0;
    for (number, line) in FULL.lines().enumerate() {
        let broken = if let Some(at) = line.find('{') {
            format!("{}{{bogus: 1, {}", &line[..at], &line[at + 1..])
        } else {
            continue;
        };
        let lines = FULL.lines().enumerate();
        let text: Vec<_> = lines
            .map(|(n, l)| if n == number { broken.as_str() } else { l })
            .collect();
        let error = error(&text.join("\n"));
        let location = error.location().expect("a place");
        assert_eq!(location.line, number as u64 + 1, "{error}");
        assert!(error.to_string().contains("bogus"), "{error}");
        tried += 1;
    }
    assert!(tried >= 9, "{tried}");
    for (text, place) in [
        ("version: 1\nbogus: 1\n", "2:1"),
        ("version: 1\ndefaults:\n  bogus: 1\n", "3:3"),
        (
            "version: 1\ndefaults:\n  filesystem:\n    bogus: 1\n",
            "4:5",
        ),
        (
            "version: 1\ndefaults:\n  network:\n    egress:\n      - bogus: 1\n",
            "5:9",
        ),
        ("version: 1\ntiers:\n  gold: {}\n", "3:3"),
    ] {
        let error = error(text);
        assert_eq!(
            error.location().expect("a place").to_string(),
            place,
            "{error}"
        );
        assert!(
            error
                .to_string()
                .starts_with(&format!("p.yaml:{place}: unknown field")),
            "{error}"
        );
    }
}

#[test]
fn a_doubled_key_is_an_error_at_its_place() {
    for (text, place) in [
        ("version: 1\nversion: 1\n", "2:1"),
        ("version: 1\ndefaults: {env: [], env: [A]}\n", "2:21"),
        ("version: 1\ncategories: {'a/*': {}, 'a/*': {}}\n", "2:25"),
    ] {
        let error = error(text);
        assert_eq!(error.location().expect("a place").to_string(), place);
        assert!(error.to_string().contains("is given twice"), "{error}");
    }
}

#[test]
fn a_field_without_a_value_is_an_error_and_not_inherited() {
    for text in [
        "defaults:",
        "defaults: {network: }",
        "defaults: {env: }",
        "defaults: {resources: {timeout: }}",
        "defaults: {filesystem: {caller: }}",
        "defaults: {filesystem: {caller: {read: }}}",
        "tiers: ~",
        "tiers: {external: }",
        "categories: {'a/*': }",
        "assign: ~",
    ] {
        let error = error(&format!("version: 1\n{text}\n"));
        assert!(
            error.to_string().contains("a value is missing here"),
            "{text}: {error}"
        );
        assert!(error.location().is_some(), "{text}");
    }
}

#[test]
fn values_that_would_be_misread_are_errors() {
    for text in [
        "version: 2",
        "version: 1\ndefaults: {isolation: {minimum: in_process}}",
        "version: 1\ndefaults: {isolation: {minimum: strong}}",
        "version: 1\ndefaults: {trust: yes}",
        "version: 1\ndefaults: {dependencies: {source_builds: yes}}",
        "version: 1\ndefaults: {audit: {level: everything}}",
        "version: 1\ndefaults: {audit: {keep_days: 0}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: [files.example.com]}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: [{ports: [443]}]}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: [{domains: ['*'], ports: [443]}]}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: [{domains: [a.b.c], ports: []}]}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: [{domains: [a.b.c], ports: [0]}]}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: [{domains: [a.b.c], http: []}]}}",
        "version: 1\ndefaults: {dependencies: {index_hosts: }}",
        "version: 1\ndefaults: {resources: {processes: 0}}",
        "version: 1\ndefaults: {resources: {memory: lots}}",
        "version: 1\ndefaults: {env: [LD_PRELOAD]}",
        "version: 1\ndefaults: {filesystem: {read: [data]}}",
        "version: 1\ndefaults: {filesystem: {read: [/data/*]}}",
        "version: 1\ndefaults: {network: {egress: [{domains: [a.example.com]}]}}",
        "version: 1\ndefaults: {network: {egress: [{ports: [443]}]}}",
        "version: 1\ndefaults: {network: {egress: [{domains: ['*'], ports: [443]}]}}",
        "version: 1\ndefaults: {network: {egress: [{domains: [a.b.c], ports: [443], http: []}]}}",
        "version: 1\nassign: [{tier: core, digests: ['sha256:abc']}]",
        "version: 1\nassign: [{tier: core, paths: ['/opt/**']}]",
        "version: 1\n---\nversion: 1",
        "version: 1\ndefaults: &a {}\ntiers: {<<: *a}",
        "- version: 1",
        "version: [",
        "",
    ] {
        assert!(error(text).location().is_some(), "{text}");
    }
}

#[test]
fn a_policy_larger_than_a_mebibyte_is_not_read() {
    let text = format!("version: 1\n# {}", "x".repeat(1 << 20));
    assert!(matches!(error(&text), PolicyError::TooLarge { .. }));
}

#[test]
fn nesting_and_aliases_are_bounded() {
    error(&format!("version: {}", "[".repeat(100_000)));
    let mut bomb = String::from("version: 1\ndefaults:\n  env: &a [A]\ncategories:\n");
    for _ in 0..40_000 {
        bomb.push_str("  x: *a\n");
    }
    error(&bomb);
}

#[test]
fn messages_are_one_bounded_line() {
    let error = error(&format!(
        "version: 1\n\"{}\\u001b[31m\\n\": 1",
        "k".repeat(100_000)
    ));
    assert!(error.to_string().len() < 1000);
    assert!(!error.to_string().contains(char::is_control));
}

#[test]
fn the_schema_names_every_section() {
    let schema = serde_json::to_string(&schemars::schema_for!(PolicyFile)).expect("JSON");
    for field in [
        "defaults",
        "tiers",
        "categories",
        "assign",
        "source_builds",
        "index_hosts",
        "minimum",
        "caller",
    ] {
        assert!(schema.contains(&format!("\"{field}\"")), "{field}");
    }
    assert!(
        !schema.contains("null"),
        "an empty value is an error, so no default is one"
    );
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        drop(OperatorPolicy::parse(&text, "p.yaml"));
    }

    #[test]
    fn a_damaged_policy_never_panics(
        at in any::<prop::sample::Index>(),
        length in 0usize..40,
        junk in "[ -~\\n\\t{}\\[\\]&*!|>'\"%@`\u{0}\u{feff}é]{0,12}",
    ) {
        let chars: Vec<char> = FULL.chars().collect();
        let at = at.index(chars.len());
        let end = (at + length).min(chars.len());
        let text: String = chars[..at].iter().copied().chain(junk.chars()).chain(chars[end..].iter().copied()).collect();
        drop(OperatorPolicy::parse(&text, "p.yaml"));
    }
}
