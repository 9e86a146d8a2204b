//! A policy can only narrow: properties over arbitrary policies.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

mod common;

use common::{DOMAINS, PORTS, egress_rule, policy};
use proptest::prelude::*;
use skillcell_core::{HostPattern, SkillId};
use skillcell_manifest::{EgressRule, HttpRule};
use skillcell_policy::{Bounded, Ceiling, Layers, OperatorPolicy, Subject, intersect};
use std::net::IpAddr;
use std::path::PathBuf;

fn ceiling(texts: &[String]) -> Ceiling {
    let id = SkillId::parse("office/pdf").expect("an id");
    let subject = Subject {
        id: &id,
        category: None,
        digest: None,
        path: None,
    };
    let parse = |text: &String| OperatorPolicy::parse(text, "p.yaml").expect("a policy");
    Layers::new(texts.iter().map(parse).collect()).ceiling_for(&subject)
}

fn rules(bodies: &[String]) -> Vec<EgressRule> {
    let text = format!(
        "version: 1\ndefaults: {{network: {{egress: [{}]}}}}",
        bodies.join(", ")
    );
    ceiling(&[text]).egress.value
}

/// What the rules say about single requests: a host by name or address, a port, a method, a path.
/// Written apart from the code under test, by asking each rule about one point at a time.
fn requests(rules: &[EgressRule]) -> Vec<bool> {
    let names = [
        "a.example.com",
        "b.example.com",
        "x.a.example.com",
        "example.com",
        "example.org",
    ];
    let addresses = [
        "10.1.2.3",
        "10.1.9.9",
        "10.9.9.9",
        "192.0.2.1",
        "2001:db8::1",
    ];
    let mut points = Vec::new();
    for port in PORTS.into_iter().chain([22]) {
        for method in ["GET", "POST", "PUT"] {
            for path in ["/x/a", "/x/b", "/y", "/z"] {
                let http = |rule: &EgressRule| {
                    rule.http.is_empty() || rule.http.iter().any(|h| request(h, method, path))
                };
                for name in names {
                    let name = HostPattern::parse(name).expect("a name");
                    points.push(rules.iter().any(|rule| {
                        rule.domains.iter().any(|d| d.covers(&name))
                            && rule.ports.contains(&port)
                            && http(rule)
                    }));
                }
                for address in addresses {
                    let address: IpAddr = address.parse().expect("an address");
                    points.push(rules.iter().any(|rule| {
                        rule.cidrs.iter().any(|c| c.contains(&address))
                            && rule.ports.contains(&port)
                            && http(rule)
                    }));
                }
            }
        }
    }
    points
}

fn request(rule: &HttpRule, method: &str, path: &str) -> bool {
    let matches = |pattern: &String| match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    };
    rule.methods.iter().any(|m| m == method) && rule.paths.iter().any(matches)
}

fn under(inner: &[PathBuf], outer: &[PathBuf]) -> bool {
    inner.iter().all(|i| outer.iter().any(|o| i.starts_with(o)))
}

fn within(inner: &Ceiling, outer: &Ceiling) -> Result<(), TestCaseError> {
    fn at_most<T: Ord>(inner: &Bounded<T>, outer: &Bounded<T>) -> bool {
        inner.value <= outer.value
    }
    prop_assert!(inner.isolation.value >= outer.isolation.value);
    prop_assert!(at_most(&inner.trust, &outer.trust));
    prop_assert!(at_most(&inner.source_builds, &outer.source_builds));
    prop_assert!(inner.env.value.is_subset(&outer.env.value));
    prop_assert!(under(&inner.read.value, &outer.read.value));
    prop_assert!(under(&inner.write.value, &outer.write.value));
    for (inner, outer) in [
        (&inner.caller_read, &outer.caller_read),
        (&inner.caller_write, &outer.caller_write),
    ] {
        if let Some(outer) = outer {
            let inner = inner.as_ref().map(|inner| &inner.value);
            prop_assert!(inner.is_some_and(|inner| under(inner, &outer.value)));
        }
    }
    let (i, o) = (&inner.limits, &outer.limits);
    prop_assert!(at_most(&i.timeout, &o.timeout) && at_most(&i.cpu, &o.cpu));
    prop_assert!(at_most(&i.memory, &o.memory) && at_most(&i.processes, &o.processes));
    prop_assert!(at_most(&i.output, &o.output) && at_most(&i.scratch, &o.scratch));
    for (i, o) in requests(&inner.egress.value)
        .into_iter()
        .zip(requests(&outer.egress.value))
    {
        prop_assert!(!i || o, "egress was widened");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn adding_a_layer_never_widens_any_dimension(
        layers in prop::collection::vec(policy(), 1..3),
        more in policy(),
        first in any::<bool>(),
    ) {
        let fewer = ceiling(&layers);
        let mut layers = layers;
        layers.insert(if first { 0 } else { layers.len() }, more.clone());
        let both = ceiling(&layers);
        within(&both, &fewer)?;
        within(&both, &ceiling(&[more]))?;
    }

    #[test]
    fn a_tier_or_category_never_widens_defaults(policy in policy()) {
        let defaults: Vec<&str> = policy.lines().take(2).collect();
        within(&ceiling(std::slice::from_ref(&policy)), &ceiling(&[defaults.join("\n")]))?;
    }

    #[test]
    fn an_intersection_of_egress_allows_exactly_what_both_allow(
        a in prop::collection::vec(egress_rule(), 0..4),
        b in prop::collection::vec(egress_rule(), 0..4),
    ) {
        let (a, b) = (rules(&a), rules(&b));
        let both = requests(&intersect(&a, &b));
        let each = requests(&a).into_iter().zip(requests(&b)).map(|(a, b)| a && b);
        prop_assert_eq!(both, each.collect::<Vec<_>>());
    }

    #[test]
    fn an_intersection_of_egress_is_idempotent(a in prop::collection::vec(egress_rule(), 0..4)) {
        let a = rules(&a);
        prop_assert_eq!(requests(&intersect(&a, &a)), requests(&a));
    }
}

#[test]
fn the_points_of_this_test_tell_the_vocabulary_apart() {
    let all = rules(&[format!(
        "{{domains: {DOMAINS:?}, cidrs: ['10.0.0.0/8'], ports: {PORTS:?}}}"
    )]);
    let points = requests(&all);
    assert!(points.iter().any(|p| *p) && points.iter().any(|p| !*p));
}
