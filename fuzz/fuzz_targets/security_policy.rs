#![no_main]
//! A policy that is accepted keeps what the checks promise.

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(policy) = skillcell_manifest::parse_security_policy(text) {
        assert_eq!(policy.version, 1);
        for rule in &policy.network.egress {
            assert!(!rule.domains.is_empty() || !rule.cidrs.is_empty());
            assert!(!rule.effective_ports().is_empty());
            assert!(!rule.effective_ports().contains(&0));
        }
    }
});
