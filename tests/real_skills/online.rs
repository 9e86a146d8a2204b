//! Skills that need the network, or a model that must be downloaded first.

use crate::venv;
use serde_json::Value;
use std::collections::BTreeSet;

fn online() -> Value {
    let text = std::fs::read_to_string(venv::script("online.json")).expect("online.json is there");
    serde_json::from_str(&text).expect("online.json is JSON")
}

fn fails_readably(id: &str) {
    let _shared = skillcell_tests::shared();
    let (cell, online) = (venv::cell(), online());
    let case = &online[id];
    let flags = case["flags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let outcome = venv::call(&cell, id)
        .params(&case["params"])
        .flags(flags)
        .run();
    let expected = ["ok", "skill_error", "denied", "limit_exceeded"];
    assert!(expected.contains(&outcome.status()), "{}", outcome.show());
    outcome.assert_readable();
    if outcome.status() != "ok" {
        assert!(!outcome.error_message().is_empty(), "{}", outcome.show());
    }
    if case["network"] == true {
        let told = outcome.denials().iter().any(|d| d["kind"] == "network");
        assert!(
            told,
            "{id} reached out and the envelope does not say so\n{}",
            outcome.show()
        );
    }
}

/// A required variable that nobody gave is told before the skill runs.
#[test]
fn missing_keys_are_told_before_the_skill_runs() {
    let _shared = skillcell_tests::shared();
    for (id, name) in [
        ("finance/wallet_screening", "ETHERSCAN_API_KEY"),
        (
            "finance/uk_companies_house_handler",
            "COMPANIES_HOUSE_API_KEY",
        ),
        ("office/gmail_handler", "GMAIL_APP_PASSWORD"),
        ("defi/evm_tx_handler", "AGENT_WALLET_PRIVATE_KEY"),
    ] {
        let cell = venv::cell();
        let params = match id {
            "finance/wallet_screening" => serde_json::json!({"address": "0x0"}),
            _ => online()[id]["params"].clone(),
        };
        let outcome = venv::call(&cell, id).params(&params).run();
        outcome.assert_error("invalid_input", 2, &["missing_env"]);
        assert!(outcome.error_message().contains(name), "{}", outcome.show());
    }
}

/// Every skill of the package is in one of the two lists, so that a new one is not forgotten.
#[test]
fn every_bundled_skill_is_covered() {
    let mut found = BTreeSet::new();
    for category in std::fs::read_dir(venv::skills())
        .expect("a folder")
        .flatten()
    {
        for skill in std::fs::read_dir(category.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if skill.path().join("manifest.yaml").exists() {
                let names = [category.file_name(), skill.file_name()];
                found.insert(names.map(|n| n.to_string_lossy().into_owned()).join("/"));
            }
        }
    }
    let online = online();
    let online: BTreeSet<String> = online
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    assert_eq!(found.len(), 28, "{found:?}");
    assert_eq!(online.len(), 12);
    assert!(online.is_subset(&found), "{:?}", online.difference(&found));
}

macro_rules! fails_readably {
    ($($name:ident: $id:literal,)*) => {
        $(#[test]
        fn $name() {
            fails_readably($id);
        })*
    };
}

fails_readably! {
    bg_remover_fails_readably: "creative/bg_remover",
    context_optimizer_fails_readably: "optimization/context_optimizer",
    evm_reader_fails_readably: "defi/evm_reader",
    evm_tx_handler_fails_readably: "defi/evm_tx_handler",
    gmail_handler_fails_readably: "office/gmail_handler",
    issue_resolver_answers_without_network: "dev_tools/issue_resolver",
    novelty_extractor_fails_readably: "data_engineering/novelty_extractor",
    pii_masker_tells_that_it_masked_nothing: "compliance/pii_masker",
    synthetic_generator_fails_readably: "data_engineering/synthetic_generator",
    token_security_scanner_fails_readably: "defi/token_security_scanner",
    tos_evaluator_tells_what_it_could_not_reach: "compliance/tos_evaluator",
    uk_companies_house_handler_fails_readably: "finance/uk_companies_house_handler",
}
