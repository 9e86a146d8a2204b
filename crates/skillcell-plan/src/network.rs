//! Egress: what the manifest asks for, within what the operator allows.

use crate::make::PlanInput;
use crate::model::{Grant, Source};
use crate::refusal::Refusal;
use skillcell_manifest::EgressRule;
use skillcell_policy::{MAX_EGRESS_ENTRIES, allows, entries, intersect};

/// Until rules can be enforced, only an empty list makes a plan: a cell without any way out holds
/// that one. `--allow-degraded network` doesn't help, because there is nothing weaker to fall back
/// to that would still let the skill reach its hosts.
pub(crate) fn decide(
    input: &PlanInput<'_>,
    grants: &mut Vec<Grant>,
) -> Result<Vec<EgressRule>, Refusal> {
    let asked: Vec<EgressRule> = input
        .manifest
        .security_policy
        .network
        .egress
        .iter()
        .map(with_ports)
        .collect();
    let allowed = &input.ceiling.egress;
    let size = entries(&asked);
    if size > MAX_EGRESS_ENTRIES {
        return Err(Refusal::TooManyRules { entries: size });
    }
    let effective = intersect(&asked, &allowed.value);
    let whole = asked.iter().all(|rule| allows(&effective, rule));
    grants.push(Grant {
        what: "network.egress".to_owned(),
        asked: describe(&asked),
        effective: describe(&effective),
        source: if asked.is_empty() {
            Source::Default
        } else {
            Source::Manifest
        },
        narrowed_by: (!whole).then(|| Source::from(&allowed.origin)),
    });
    if effective.is_empty() {
        Ok(effective)
    } else {
        Err(Refusal::Egress {
            rules: describe(&effective),
        })
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
    const SHOWN: usize = 20;
    let mut hosts = Vec::new();
    for rule in rules {
        let ports: Vec<_> = rule.ports.iter().map(u16::to_string).collect();
        let ports = ports.join("|");
        let http = if rule.http.is_empty() {
            ""
        } else {
            " (some requests)"
        };
        hosts.extend(
            rule.domains
                .iter()
                .map(|domain| format!("{domain}:{ports}{http}")),
        );
        hosts.extend(
            rule.cidrs
                .iter()
                .map(|network| format!("{network}:{ports}{http}")),
        );
    }
    match hosts.len() {
        0 => "nothing".to_owned(),
        n if n > SHOWN => format!("{} and {} more", hosts[..SHOWN].join(", "), n - SHOWN),
        _ => hosts.join(", "),
    }
}
