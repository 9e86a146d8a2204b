//! Bounds and refusals of the YAML tree.
#![allow(clippy::unwrap_used, reason = "tests")]

use skillcell_manifest::yaml::parse;
use skillcell_manifest::{MAX_BYTES, ManifestError};

fn error(text: &str) -> String {
    match parse(text) {
        Ok(node) => panic!("{node:?}"),
        Err(error) => {
            let location = error.location().map(|l| l.to_string()).unwrap_or_default();
            format!("{location}: {error}")
        }
    }
}

#[test]
fn duplicate_keys_are_an_error_at_any_depth_however_they_are_quoted() {
    assert_eq!(
        error("a: 1\nb: {c: 1, \"c\": 2}\n"),
        "2:11: duplicate key `c`"
    );
    assert_eq!(error("1: a\n'1': b\n"), "2:1: duplicate key `1`");
}

#[test]
fn alias_bombs_cost_no_more_than_the_budget() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for i in 1..40 {
        let before = format!("*a{}", i - 1);
        bomb.push_str(&format!(
            "a{i}: &a{i} [{}]\n",
            [before.as_str(); 10].join(",")
        ));
    }
    assert!(error(&bomb).contains("once aliases are expanded"));
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        ["*a"; 1000].join(",")
    );
    assert!(error(&long).contains("once aliases are expanded"));
}

#[test]
fn depth_is_bounded_with_and_without_aliases() {
    for deep in ["[", "- ", "{a: ", "a:\n ", "? "] {
        assert!(parse(&deep.repeat(5000)).is_err(), "{deep}");
    }
    assert!(error(&format!("{}{}", "[".repeat(65), "]".repeat(65))).contains("levels deep"));
    let half = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let chained = format!("a: &a {half}\nb: {}*a{}\n", "[".repeat(40), "]".repeat(40));
    assert!(error(&chained).contains("levels deep"));
    assert!(parse(&half).is_ok());
}

#[test]
fn what_parsers_read_differently_is_refused() {
    assert!(error("a: &a {b: 1}\nc: {<<: *a}\n").contains("merge keys"));
    assert!(error("a: !!python/object:os.system x\n").contains("tag"));
    assert!(error("a: &a [*a]\n").contains("never ends"));
    assert!(error("a: 1\n---\nb: 2\n").starts_with("2:1: a second document"));
    assert!(error("? [a]\n: b\n").contains("key must be text"));
    assert!(error("a: *nope\n").contains("YAML"));
}

#[test]
fn syntax_errors_say_where_and_what() {
    let message = error("name: a\ndescription: b: c\n");
    assert!(message.starts_with("2:"), "{message}");
    assert!(message.len() > "2:15: not valid YAML: ".len(), "{message}");
}

#[test]
fn an_empty_document_is_null() {
    assert!(parse("").is_ok_and(|n| n.is_null()));
    assert!(parse("# only a comment\n").is_ok_and(|n| n.is_null()));
}

#[test]
fn text_above_the_limit_is_not_parsed() {
    assert!(matches!(
        parse(&" ".repeat(MAX_BYTES + 1)),
        Err(ManifestError::TooLarge { .. })
    ));
}
