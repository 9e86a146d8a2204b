//! A policy can only narrow: properties over arbitrary policies.
#![allow(clippy::expect_used, reason = "a test that fails may panic")]

mod common;

use common::{DOMAINS, PORTS, egress_rule, policy};
use proptest::prelude::*;
use skillcell_core::{Host, HostPattern, SkillId};
use skillcell_manifest::{EgressRule, HttpRule};
use skillcell_policy::{
    Ask, Bounded, Ceiling, Egress, Intent, Layers, NormalPath, OperatorPolicy, Subject, intersect,
};
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

const NAMES: [&str; 5] = [
    "a.example.com",
    "b.example.com",
    "x.a.example.com",
    "example.com",
    "example.org",
];
const ADDRESSES: [&str; 5] = [
    "10.1.2.3",
    "10.1.9.9",
    "10.9.9.9",
    "192.0.2.1",
    "2001:db8::1",
];

/// Single requests: a host by name or address, a port, a method, a path.
fn each_point(mut ask: impl FnMut(&str, u16, &str, &str)) {
    for port in PORTS.into_iter().chain([22]) {
        for method in ["GET", "POST", "PUT"] {
            for path in ["/x/a", "/x/b", "/y", "/z"] {
                for host in NAMES.into_iter().chain(ADDRESSES) {
                    ask(host, port, method, path);
                }
            }
        }
    }
}

/// What the rules say about them. Written apart from the code under test, by asking each rule about
/// one point at a time.
fn requests(rules: &[EgressRule]) -> Vec<bool> {
    let mut points = Vec::new();
    each_point(|host, port, method, path| {
        let reaches = |rule: &EgressRule| match host.parse::<IpAddr>() {
            Ok(address) => rule.cidrs.iter().any(|c| c.contains(&address)),
            Err(_) => {
                let name = HostPattern::parse(host).expect("a name");
                rule.domains.iter().any(|d| d.covers(&name))
            }
        };
        points.push(rules.iter().any(|rule| {
            reaches(rule)
                && rule.ports.contains(&port)
                && (rule.http.is_empty() || rule.http.iter().any(|h| request(h, method, path)))
        }));
    });
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
    prop_assert!(inner.audit.value >= outer.audit.value);
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
    let (i, o) = (&inner.budget, &outer.budget);
    prop_assert!(at_most(&i.bytes_out, &o.bytes_out) && at_most(&i.bytes_in, &o.bytes_in));
    prop_assert!(at_most(&i.connections, &o.connections) && at_most(&i.requests, &o.requests));
    prop_assert!(at_most(&i.hosts, &o.hosts));
    prop_assert!(
        outer
            .deny
            .iter()
            .all(|o| inner.deny.iter().any(|i| i.value == o.value))
    );
    for (name, outer) in &outer.secrets {
        let inner = inner.secrets.get(name);
        prop_assert!(inner.is_some(), "a secret became a plain variable");
        let inner = inner.map(|inner| &inner.value).expect("checked above");
        for host in &inner.hosts {
            prop_assert!(outer.value.hosts.iter().any(|o| o.covers(host)));
        }
        prop_assert!(
            inner
                .places
                .iter()
                .all(|place| outer.value.places.contains(place))
        );
    }
    for (what, inner, outer) in [
        ("egress", &inner.egress, &outer.egress),
        ("index_hosts", &inner.index_hosts, &outer.index_hosts),
    ] {
        let points = requests(&inner.value)
            .into_iter()
            .zip(requests(&outer.value));
        for (i, o) in points {
            prop_assert!(!i || o, "{what} was widened");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The compiled tables against the rules, asked one point at a time.
    #[test]
    fn a_decision_is_what_the_rules_say(bodies in prop::collection::vec(egress_rule(), 0..5)) {
        let rules = rules(&bodies);
        let egress = Egress::compile(&rules, &[]);
        let mut decisions = Vec::new();
        each_point(|host, port, method, path| {
            // Private networks of this vocabulary are named by their rules.
            let host = Host::parse(host).expect("a host");
            let path = NormalPath::parse(path).expect("a path");
            let ask = Ask::Request { port, method, path: &path };
            decisions.push(egress.decide(&Intent { host: &host, ask }).is_allowed());
        });
        prop_assert_eq!(decisions, requests(&rules));
    }

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
