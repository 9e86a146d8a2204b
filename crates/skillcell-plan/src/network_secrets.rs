//! Secrets: variables that are inside as placeholders only, and whom their values may go to.
//!
//! A variable is a secret if either side says so. The hosts are what manifest, operator and the
//! effective rules have in common; where that is nothing, the variable stays a placeholder: its
//! value must never get inside because a list came out empty.

use crate::make::PlanInput;
use crate::model::{EnvGrant, Grant, Source};
use crate::network::list;
use skillcell_core::HostPattern;
use skillcell_manifest::{EgressRule, SecretBinding};
use skillcell_policy::intersect_hosts;

/// Bindings for those of the granted variables that are secrets.
pub(crate) fn decide(
    input: &PlanInput<'_>,
    egress: &[EgressRule],
    env: &[EnvGrant],
    grants: &mut Vec<Grant>,
) -> Vec<SecretBinding> {
    let reachable: Vec<HostPattern> = egress.iter().flat_map(|r| r.domains.clone()).collect();
    let mut secrets = Vec::new();
    for name in env.iter().map(|grant| &grant.name) {
        let declared = &input.manifest.security_policy.secrets;
        let asked = declared.iter().find(|secret| secret.env == *name);
        let bound = input.ceiling.secrets.get(name);
        let within = match (asked, bound) {
            (None, None) => continue,
            (Some(asked), None) => asked.clone(),
            (None, Some(bound)) => SecretBinding {
                env: name.clone(),
                hosts: bound.value.hosts.clone(),
                places: bound.value.places.clone(),
            },
            (Some(asked), Some(bound)) => SecretBinding {
                env: name.clone(),
                hosts: intersect_hosts(&asked.hosts, &bound.value.hosts),
                places: asked
                    .places
                    .iter()
                    .copied()
                    .filter(|place| bound.value.places.contains(place))
                    .collect(),
            },
        };
        let effective = SecretBinding {
            hosts: intersect_hosts(&within.hosts, &reachable),
            ..within.clone()
        };
        // Named: whoever took the last of it away.
        let narrowed_by = match (asked, bound) {
            _ if effective.hosts != within.hosts => {
                Some(Source::from(&input.ceiling.egress.origin))
            }
            (Some(asked), Some(bound)) if *asked != within => Some(Source::from(&bound.origin)),
            (None, Some(bound)) => Some(Source::from(&bound.origin)),
            _ => None,
        };
        grants.push(Grant {
            what: format!("secrets.{name}"),
            asked: asked.map_or_else(|| "as a plain variable".to_owned(), describe),
            effective: describe(&effective),
            source: match (asked, bound) {
                (None, Some(bound)) => Source::from(&bound.origin),
                _ => Source::Manifest,
            },
            narrowed_by,
        });
        secrets.push(effective);
    }
    secrets
}

fn describe(secret: &SecretBinding) -> String {
    if secret.hosts.is_empty() || secret.places.is_empty() {
        return "a placeholder that goes nowhere".to_owned();
    }
    let places: Vec<&str> = secret.places.iter().map(|place| place.as_str()).collect();
    format!(
        "a placeholder; the value to {} in {}",
        list(secret.hosts.iter().map(ToString::to_string)),
        places.join(" and ")
    )
}
