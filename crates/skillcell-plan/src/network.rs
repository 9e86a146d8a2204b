//! The network: what the manifest asks for, within what the operator allows.

use crate::limits::Narrow;
use crate::make::PlanInput;
use crate::model::{Budget, EnvGrant, Grant, PlanNetwork, Source};
use crate::network_secrets;
use crate::refusal::Refusal;
use skillcell_core::{ByteSize, Isolation};
use skillcell_manifest::{DenyRule, EgressRule, Manifest};
use skillcell_policy::{Ceiling, MAX_EGRESS_ENTRIES, allows, entries, intersect};
use std::fmt::Display;

const BYTES_OUT: ByteSize = ByteSize::mib(100);
const BYTES_IN: ByteSize = ByteSize::mib(2 << 10);
const CONNECTIONS: u64 = 1000;
const REQUESTS: u64 = 10_000;
const HOSTS: u64 = 64;

impl Default for Budget {
    /// What a skill gets that asks for nothing.
    fn default() -> Self {
        Budget {
            bytes_out: BYTES_OUT,
            bytes_in: BYTES_IN,
            connections: CONNECTIONS,
            requests: REQUESTS,
            hosts: HOSTS,
        }
    }
}

/// What a skill may reach: its rules, within the operator's.
pub fn effective_egress(
    manifest: &Manifest,
    ceiling: &Ceiling,
) -> Result<Vec<EgressRule>, Refusal> {
    let asked = asked_egress(manifest)?;
    Ok(intersect(&asked, &ceiling.egress.value))
}

pub(crate) fn decide(
    input: &PlanInput<'_>,
    level: Isolation,
    env: &[EnvGrant],
    grants: &mut Vec<Grant>,
) -> Result<PlanNetwork, Refusal> {
    let allowed = &input.ceiling.egress;
    let asked = asked_egress(input.manifest)?;
    let egress = intersect(&asked, &allowed.value);
    let whole = asked.iter().all(|rule| allows(&egress, rule));
    grants.push(Grant {
        what: "network.egress".to_owned(),
        asked: describe(&asked),
        effective: describe(&egress),
        source: if asked.is_empty() {
            Source::Default
        } else {
            Source::Manifest
        },
        narrowed_by: (!whole).then(|| Source::from(&allowed.origin)),
    });
    // Only a network namespace has a door that can be watched. `--allow-degraded network` doesn't
    // help: there is nothing weaker to fall back to that would still hold the skill to its hosts.
    if !egress.is_empty() && level < Isolation::Sandbox {
        return Err(Refusal::Egress {
            level,
            rules: describe(&egress),
        });
    }
    let secrets = network_secrets::decide(input, &egress, env, grants);
    // A call without network has nothing to deny, to count or to resolve.
    if egress.is_empty() {
        return Ok(PlanNetwork {
            secrets,
            ..PlanNetwork::default()
        });
    }
    let resolver = input.ceiling.resolver.as_ref();
    if let Some(resolver) = resolver {
        grants.push(Grant {
            what: "network.resolver".to_owned(),
            asked: "the host's".to_owned(),
            effective: resolver.value.to_string(),
            source: Source::from(&resolver.origin),
            narrowed_by: None,
        });
    }
    Ok(PlanNetwork {
        egress,
        deny: deny(input, grants),
        budget: budget(input, grants),
        secrets,
        resolver: resolver.map(|resolver| resolver.value),
    })
}

fn asked_egress(manifest: &Manifest) -> Result<Vec<EgressRule>, Refusal> {
    let network = &manifest.security_policy.network;
    let size = entries(&network.egress) + network.deny.iter().map(deny_entries).sum::<usize>();
    if size > MAX_EGRESS_ENTRIES {
        return Err(Refusal::TooManyRules { entries: size });
    }
    Ok(network.egress.iter().map(with_ports).collect())
}

fn deny_entries(rule: &DenyRule) -> usize {
    rule.domains.len() + rule.cidrs.len() + rule.ports.len() + 1
}

/// Both sides' entries: each only takes away.
fn deny(input: &PlanInput<'_>, grants: &mut Vec<Grant>) -> Vec<DenyRule> {
    let own = &input.manifest.security_policy.network.deny;
    let mut all = own.clone();
    let mut last = None;
    for denied in &input.ceiling.deny {
        if !all.contains(&denied.value) {
            all.push(denied.value.clone());
            last = Some(Source::from(&denied.origin));
        }
    }
    if !all.is_empty() {
        grants.push(Grant {
            what: "network.deny".to_owned(),
            asked: list(own.iter().flat_map(denied_hosts)),
            effective: list(all.iter().flat_map(denied_hosts)),
            source: match (&last, own.is_empty()) {
                (Some(source), true) => source.clone(),
                _ => Source::Manifest,
            },
            narrowed_by: last,
        });
    }
    all
}

fn budget(input: &PlanInput<'_>, grants: &mut Vec<Grant>) -> Budget {
    let asked = &input.manifest.security_policy.network.budget;
    let allowed = &input.ceiling.budget;
    let mut narrow = Narrow { grants };
    Budget {
        bytes_out: narrow.limit(
            "network.budget.bytes_out",
            None,
            asked.bytes_out,
            BYTES_OUT,
            &allowed.bytes_out,
        ),
        bytes_in: narrow.limit(
            "network.budget.bytes_in",
            None,
            asked.bytes_in,
            BYTES_IN,
            &allowed.bytes_in,
        ),
        connections: narrow.limit(
            "network.budget.connections",
            None,
            asked.connections,
            CONNECTIONS,
            &allowed.connections,
        ),
        requests: narrow.limit(
            "network.budget.requests",
            None,
            asked.requests,
            REQUESTS,
            &allowed.requests,
        ),
        hosts: narrow.limit(
            "network.budget.hosts",
            None,
            asked.hosts,
            HOSTS,
            &allowed.hosts,
        ),
    }
}

/// What is implied, written out: a plan leaves nothing to be read two ways.
fn with_ports(rule: &EgressRule) -> EgressRule {
    EgressRule {
        ports: rule.effective_ports().to_vec(),
        ..rule.clone()
    }
}

fn describe(rules: &[EgressRule]) -> String {
    list(rules.iter().flat_map(|rule| {
        let ports = ports(&rule.ports);
        let http = if rule.http.is_empty() {
            ""
        } else {
            " (some requests)"
        };
        let end = format!("{ports}{http}");
        hosts(&rule.domains, &rule.cidrs, &end)
    }))
}

fn denied_hosts(rule: &DenyRule) -> Vec<String> {
    hosts(&rule.domains, &rule.cidrs, &ports(&rule.ports))
}

fn ports(ports: &[u16]) -> String {
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    if ports.is_empty() {
        String::new()
    } else {
        format!(":{}", ports.join("|"))
    }
}

fn hosts<D: Display, C: Display>(domains: &[D], cidrs: &[C], end: &str) -> Vec<String> {
    let domains = domains.iter().map(|domain| format!("{domain}{end}"));
    domains
        .chain(cidrs.iter().map(|network| format!("{network}{end}")))
        .collect()
}

/// The first of them, and how many more there are.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 20;
    let items: Vec<String> = items.collect();
    match items.len() {
        0 => "nothing".to_owned(),
        n if n > SHOWN => format!("{} and {} more", items[..SHOWN].join(", "), n - SHOWN),
        _ => items.join(", "),
    }
}
