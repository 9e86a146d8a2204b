//! Sections and files narrow, and every value knows who set it.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

use skillcell_core::{ByteSize, CpuCount, Digest, Isolation, SkillId, Timeout};
use skillcell_policy::{Ceiling, Layers, OperatorPolicy, Origin, Subject, Tier, Trust};
use std::path::{Path, PathBuf};

fn policy(name: &str, body: &str) -> OperatorPolicy {
    OperatorPolicy::parse(&format!("version: 1\n{body}"), name).expect("a policy")
}

fn ceiling(policies: Vec<OperatorPolicy>) -> Ceiling {
    let id = SkillId::parse("finance/wallet").expect("an id");
    let path = Path::new("/opt/skills/wallet");
    let subject = Subject {
        id: &id,
        category: None,
        digest: None,
        path: Some(path),
    };
    Layers::new(policies).ceiling_for(&subject)
}

fn origin(file: &str, section: &str) -> Origin {
    Origin::File {
        file: file.into(),
        section: section.into(),
    }
}

#[test]
fn without_a_policy_nothing_comes_without_a_flag() {
    let built_in = ceiling(vec![]);
    assert_eq!(built_in.isolation.value, Isolation::Sandbox);
    assert_eq!(built_in.trust.value, Trust::Allow);
    assert!(built_in.egress.value.is_empty());
    assert!(built_in.env.value.is_empty());
    assert!(built_in.read.value.is_empty() && built_in.write.value.is_empty());
    assert!(built_in.caller_read.is_none() && built_in.caller_write.is_none());
    assert!(!built_in.source_builds.value && built_in.index_hosts.value.is_empty());
    assert_eq!(built_in.limits.timeout.value, Timeout::secs(600));
    assert_eq!(built_in.limits.cpu.value, CpuCount::whole(1024));
    assert_eq!(built_in.limits.memory.value, ByteSize::mib(8192));
    assert_eq!(built_in.limits.scratch.value, ByteSize::mib(4096));
    assert!(built_in.sections.is_empty());
}

#[test]
fn a_file_that_says_nothing_allows_nothing_and_no_trust() {
    let least = ceiling(vec![policy("p", "")]);
    assert_eq!(least.trust.value, Trust::Deny);
    assert_eq!(least.isolation.value, Isolation::Sandbox);
    assert!(least.egress.value.is_empty() && least.env.value.is_empty());
    assert_eq!(least.limits.memory.origin, Origin::BuiltIn);
}

#[test]
fn hosts_of_an_index_are_on_443_and_only_what_every_file_lists() {
    let hosts = |text: &str| policy(text, &format!("defaults: {{dependencies: {text}}}"));
    let one = hosts("{index_hosts: [{domains: [files.example.com, '*.cdn.example.com']}]}");
    let listed = ceiling(vec![one.clone()]).index_hosts;
    assert_eq!(listed.value[0].ports, [443]);
    assert_eq!(listed.value[0].domains.len(), 2);
    let two = hosts("{index_hosts: [{domains: [a.cdn.example.com], ports: [443, 8443]}]}");
    let both = ceiling(vec![one.clone(), two]).index_hosts.value;
    assert_eq!(both.len(), 1);
    assert_eq!(both[0].domains[0].as_str(), "a.cdn.example.com");
    assert_eq!(both[0].ports, [443]);
    // A file that says nothing of it allows none.
    let none = ceiling(vec![one, hosts("{source_builds: true}")]);
    assert!(none.index_hosts.value.is_empty() && !none.source_builds.value);
}

#[test]
fn sections_only_narrow_what_defaults_allow() {
    let narrowed = ceiling(vec![policy(
        "p",
        "defaults: {env: [A, B], resources: {timeout: 60s, memory: 1GiB}, trust: allow}
tiers: {external: {env: [B, C], resources: {timeout: 5m, memory: 512MiB}}}
categories: {'finance/*': {isolation: {minimum: microvm}, trust: deny}, 'other/*': {env: []}}",
    )]);
    let env: Vec<_> = narrowed
        .env
        .value
        .iter()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(env, ["B"]);
    assert_eq!(narrowed.env.origin, origin("p", "tiers.external"));
    assert_eq!(narrowed.limits.timeout.value, Timeout::secs(60));
    assert_eq!(narrowed.limits.timeout.origin, origin("p", "defaults"));
    assert_eq!(narrowed.limits.memory.value, ByteSize::mib(512));
    assert_eq!(narrowed.isolation.value, Isolation::Microvm);
    assert_eq!(
        narrowed.isolation.origin,
        origin("p", "categories.\"finance/*\"")
    );
    assert_eq!(narrowed.trust.value, Trust::Deny);
    assert_eq!(narrowed.sections.len(), 3);
}

#[test]
fn files_are_ceilings_for_each_other_in_any_order() {
    let mine = || {
        policy(
            "mine",
            "defaults: {env: [A], filesystem: {read: [/data]}, isolation: {minimum: process},
             network: {egress: [{domains: ['*.example.com'], ports: [443, 80]}]}, resources: {timeout: 1h}}",
        )
    };
    let theirs = || {
        policy(
            "theirs",
            "defaults: {env: [A, B], filesystem: {read: [/data/x, /else], caller: {read: [/data]}},
             network: {egress: [{domains: [api.example.com], ports: [443]}]}}",
        )
    };
    let ab = ceiling(vec![mine(), theirs()]);
    let ba = ceiling(vec![theirs(), mine()]);
    assert_eq!(ab.read.value, [PathBuf::from("/data/x")]);
    assert_eq!(ab.read.origin, origin("theirs", "defaults"));
    assert_eq!(ab.env.origin, origin("mine", "defaults"));
    assert_eq!(ab.egress.value[0].domains[0].as_str(), "api.example.com");
    assert_eq!(ab.egress.value[0].ports, [443]);
    assert_eq!(ab.isolation.value, Isolation::Sandbox);
    // A file that is silent about a resource stands for the built-in maximum.
    assert_eq!(ab.limits.timeout.value, Timeout::secs(600));
    assert_eq!(
        ab.caller_read.as_ref().map(|c| c.value.as_slice()),
        Some(&[PathBuf::from("/data")][..])
    );
    assert_eq!(ab.caller_write.as_ref().map(|c| c.value.len()), Some(0));
    assert_eq!(
        (
            &ab.read.value,
            &ab.env.value,
            &ab.egress.value,
            &ab.isolation.value,
            &ab.limits.timeout.value
        ),
        (
            &ba.read.value,
            &ba.env.value,
            &ba.egress.value,
            &ba.isolation.value,
            &ba.limits.timeout.value
        ),
    );
}

#[test]
fn an_operator_may_raise_a_resource_above_the_built_in_maximum() {
    let raised = ceiling(vec![policy("p", "defaults: {resources: {timeout: 1h}}")]);
    assert_eq!(raised.limits.timeout.value, Timeout::secs(3600));
}

#[test]
fn who_may_write_may_read() {
    let both = ceiling(vec![policy(
        "p",
        "defaults: {filesystem: {write: [/srv/out]}}",
    )]);
    assert_eq!(both.read.value, [PathBuf::from("/srv/out")]);
}

#[test]
fn a_tier_is_given_by_digest_or_folder_and_is_external_otherwise() {
    let digest = Digest::sha256(&[7; 32]);
    let policy = policy(
        "p",
        &format!(
            "assign:\n  - {{tier: core, digests: ['{digest}']}}\n  - {{tier: verified, paths: [/opt/skills]}}"
        ),
    );
    let id = SkillId::parse("core/claims-to-be-core").expect("an id");
    let tier = |digest: Option<&Digest>, path: &str| {
        let path = Some(Path::new(path));
        policy.tier_of(&Subject {
            id: &id,
            category: Some("core"),
            digest,
            path,
        })
    };
    assert_eq!(tier(Some(&digest), "/home/me/skill"), Tier::Core);
    assert_eq!(tier(None, "/opt/skills/a"), Tier::Verified);
    assert_eq!(tier(None, "/opt/skills-evil/a"), Tier::External);
    assert_eq!(tier(None, "/opt/skills/../../home/me"), Tier::External);
    assert_eq!(
        tier(Some(&Digest::sha256(&[8; 32])), "/home/me/skill"),
        Tier::External
    );
}

/// Two files of ten thousand rules each meet in the time of a test, not of a coffee.
#[test]
fn ten_thousand_rules_are_read_and_combined() {
    let file = |port: u16| {
        let mut text = "version: 1\ndefaults:\n  network:\n    egress:\n".to_owned();
        for i in 0..10_000 {
            text += &format!("      - {{domains: [h{i}.example.com], ports: [443, {port}]}}\n");
        }
        skillcell_policy::OperatorPolicy::parse(&text, "many.yaml").expect("a policy")
    };
    let id = skillcell_core::SkillId::parse("a/b").expect("an id");
    let subject = skillcell_policy::Subject {
        id: &id,
        category: None,
        digest: None,
        path: None,
    };
    let layers = skillcell_policy::Layers::new(vec![file(80), file(8443)]);
    let ceiling = layers.ceiling_for(&subject);
    assert_eq!(ceiling.egress.value.len(), 10_000);
    assert!(ceiling.egress.value.iter().all(|rule| rule.ports == [443]));
}
