#![no_main]
//! A policy that is accepted never allows more than it says: no file, no network.

use skillcell_core::SkillId;
use skillcell_policy::{Layers, OperatorPolicy, Subject};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(policy) = OperatorPolicy::parse(text, "skillcell.yaml") else { return };
    let Ok(id) = SkillId::parse("finance/probe") else { return };
    let subject = Subject { id: &id, category: Some("finance"), digest: None, path: None };
    let silent = policy.file().defaults.network.is_none();
    let ceiling = Layers::new(vec![policy]).ceiling_for(&subject);
    assert!(!silent || ceiling.egress.value.is_empty());
});
