//! What would be decided about a destination, and who decided it.

use super::target::Target;
use super::yaml;
use serde::Serialize;
use skillcell_core::{AddressClass, Host, Reason};
use skillcell_manifest::{DenyRule, EgressRule};
use skillcell_policy::{Ask, Decision, Egress, Intent, Origin};
use skillcell_supervisor::NetworkView;

#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) skill: String,
    pub(super) target: String,
    pub(super) reason: Option<Reason>,
    pub(super) why: String,
    /// The effective rule that allows it.
    pub(super) rule: Option<String>,
    /// Whether TLS would be taken apart to see each request.
    pub(super) inspected: bool,
    pub(super) manifest: Side,
    pub(super) operator: Side,
    /// Variables whose value would be put in for this host.
    pub(super) secrets: Vec<String>,
    #[serde(rename = "to_allow")]
    pub(super) fixes: Vec<Fix>,
    pub(super) notes: Vec<String>,
}

/// What one side alone says.
#[derive(Debug, Serialize)]
pub(super) struct Side {
    pub(super) allows: bool,
    pub(super) rule: Option<String>,
    /// The `deny` entry that covers the destination.
    pub(super) deny: Option<String>,
    pub(super) text: String,
    #[serde(skip)]
    requests: bool,
}

/// A line to add, and where.
#[derive(Debug, Serialize)]
pub(super) struct Fix {
    pub(super) place: String,
    pub(super) line: String,
}

pub(super) fn judge(view: &NetworkView, target: &Target) -> Verdict {
    let effective = Egress::compile(&view.effective, &view.deny());
    let decision = ask(&effective, target);
    let operator_deny: Vec<DenyRule> = view
        .operator_deny()
        .iter()
        .map(|denied| denied.value.clone())
        .collect();
    let manifest = side("the manifest", &view.asked, &view.asked_deny, target);
    let origin = &view.ceiling.egress.origin;
    let mut operator = side(
        &origin.to_string(),
        &view.ceiling.egress.value,
        &operator_deny,
        target,
    );
    if let Some(deny) = &operator.deny {
        // The one entry by itself says whose it is.
        let by = view.operator_deny().iter().find(|denied| {
            let alone = Egress::compile(&[], std::slice::from_ref(&denied.value));
            denied_by(&ask(&alone, target)).is_some()
        });
        let by = by.map_or_else(|| origin.to_string(), |denied| denied.origin.to_string());
        operator.text = format!("{by} denies it: {deny}");
    }
    let (rule, inspected, reason) = match &decision {
        Decision::Allow { rule, inspect } => (view.effective.get(*rule), *inspect, None),
        Decision::Deny { reason, .. } => (None, false, Some(*reason)),
    };
    let why = match (&decision, rule) {
        (Decision::Allow { .. }, Some(rule)) => {
            format!("both sides allow {}", yaml::rule(rule))
        }
        (Decision::Allow { .. }, None) => "both sides allow it".to_owned(),
        (Decision::Deny { reason, rule }, _) => words(*reason, rule.as_deref(), target),
    };
    let fixes = match reason {
        None | Some(Reason::DeniedByRule) => Vec::new(),
        Some(_) => fixes(&manifest, &operator, origin, target),
    };
    let allowed = reason.is_none();
    Verdict {
        allowed,
        skill: view.skill.clone(),
        target: target.to_string(),
        reason,
        why,
        rule: rule.map(yaml::rule),
        inspected,
        secrets: if allowed {
            secrets(view, target)
        } else {
            Vec::new()
        },
        notes: {
            let mut notes = notes(&decision, &manifest, &operator, target);
            if allowed && !inspected && has_secrets(view) {
                notes.push(
                    "once a secret is granted to the call, all its connections are looked into"
                        .to_owned(),
                );
            }
            notes
        },
        manifest,
        operator,
        fixes,
    }
}

/// As the broker asks: about the connection, and where single requests count about this one.
fn ask(egress: &Egress, target: &Target) -> Decision {
    let (host, port) = (&target.host, target.port);
    let decide = |ask| egress.decide(&Intent { host, ask });
    let connected = decide(Ask::Connect { port });
    match (&target.request, &connected) {
        (Some(request), Decision::Allow { inspect: true, .. }) => match &request.path {
            Ok(path) => decide(Ask::Request {
                port,
                method: &request.method,
                path,
            }),
            Err(error) => Decision::Deny {
                reason: Reason::HttpMalformed,
                rule: Some(error.to_string()),
            },
        },
        _ => connected,
    }
}

fn denied_by(decision: &Decision) -> Option<String> {
    match decision {
        Decision::Deny {
            reason: Reason::DeniedByRule,
            rule,
        } => Some(rule.clone().unwrap_or_default()),
        _ => None,
    }
}

fn side(who: &str, rules: &[EgressRule], deny: &[DenyRule], target: &Target) -> Side {
    let decision = ask(&Egress::compile(rules, deny), target);
    let deny = denied_by(&decision);
    let (rule, text) = match &decision {
        Decision::Allow { rule, .. } => {
            let text = rules.get(*rule).map(yaml::rule);
            let shown = text.clone().unwrap_or_default();
            (text, format!("{who} allows {shown}"))
        }
        Decision::Deny { reason, .. } => {
            let text = match (&deny, reason) {
                (Some(deny), _) => format!("{who} denies it: {deny}"),
                (None, Reason::NetworkNotAllowed) => format!("{who} has no network rules"),
                (None, Reason::PortNotAllowed) => {
                    format!("{who} names the host, but not port {}", target.port)
                }
                (None, Reason::HttpRequestNotAllowed | Reason::HttpMalformed) => {
                    format!("{who} names the host, but not this request")
                }
                (None, Reason::AddressNotPublic) => {
                    format!("{who} has no rule that names this address closely enough")
                }
                (None, _) => format!("{who} doesn't name the host"),
            };
            (None, text)
        }
    };
    let requests = matches!(
        &decision,
        Decision::Deny {
            reason: Reason::HttpRequestNotAllowed | Reason::HttpMalformed,
            ..
        }
    );
    Side {
        allows: decision.is_allowed(),
        rule,
        deny,
        text,
        requests,
    }
}

fn words(reason: Reason, rule: Option<&str>, target: &Target) -> String {
    let host = &target.host;
    match reason {
        Reason::NetworkNotAllowed => "nothing that the skill asks for is allowed".to_owned(),
        Reason::PortNotAllowed => format!("no rule allows port {} of {host}", target.port),
        Reason::DeniedByRule => format!("an entry of `deny` wins: {}", rule.unwrap_or_default()),
        Reason::AddressNotPublic => format!(
            "{host} is a {}, and no CIDR rule names it",
            rule.unwrap_or("special address")
        ),
        Reason::HttpMalformed => format!(
            "rules are about paths of {host}, and this one has two readings: {}",
            rule.unwrap_or_default()
        ),
        Reason::HttpRequestNotAllowed => {
            format!("rules name {host}, but not this method and path")
        }
        _ => format!("no rule that both sides allow names {host}"),
    }
}

fn fixes(manifest: &Side, operator: &Side, origin: &Origin, target: &Target) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if !manifest.allows && manifest.deny.is_none() {
        fixes.push(Fix {
            place: "in the skill's security_policy".to_owned(),
            line: yaml::line_for(target, manifest.requests),
        });
    }
    if !operator.allows && operator.deny.is_none() {
        fixes.push(Fix {
            place: match origin {
                Origin::BuiltIn => "in an operator policy, under `defaults:`".to_owned(),
                Origin::File { file, section } => format!("in {file}, under `{section}:`"),
            },
            line: yaml::line_for(target, operator.requests),
        });
    }
    fixes
}

/// Whether a variable of the skill's, if it is granted, is a secret.
fn has_secrets(view: &NetworkView) -> bool {
    !view.asked_secrets.is_empty()
        || view
            .asked_env
            .iter()
            .any(|variable| view.ceiling.secrets.contains_key(variable))
}

/// Secrets that are bound to this host, by name.
fn secrets(view: &NetworkView, target: &Target) -> Vec<String> {
    let Host::Name(name) = &target.host else {
        return Vec::new();
    };
    let asked = view.asked_secrets.iter();
    let mut found: Vec<String> = asked
        .filter(|secret| secret.hosts.iter().any(|host| host.matches(name)))
        .filter(|secret| {
            let bound = view.ceiling.secrets.get(&secret.env);
            bound.is_none_or(|bound| bound.value.hosts.iter().any(|host| host.matches(name)))
        })
        .map(|secret| format!("{} would be put in, if it is granted", secret.env))
        .collect();
    for variable in &view.asked_env {
        let bound = view.ceiling.secrets.get(variable);
        let declared = view.asked_secrets.iter().any(|s| s.env == *variable);
        if let Some(bound) = bound
            && !declared
            && bound.value.hosts.iter().any(|host| host.matches(name))
        {
            found.push(format!(
                "{variable} would be put in, if it is granted; {} makes it a secret",
                bound.origin
            ));
        }
    }
    found
}

fn notes(decision: &Decision, manifest: &Side, operator: &Side, target: &Target) -> Vec<String> {
    let mut notes = Vec::new();
    if let Decision::Allow { inspect: true, .. } = decision {
        notes.push(match target.request {
            Some(_) => "rules are about single requests here, so TLS is inspected".to_owned(),
            None => "each request on the connection is decided by itself".to_owned(),
        });
    }
    if let Host::Addr(address) = &target.host {
        let class = AddressClass::of(*address);
        if !class.is_public() {
            notes.push(format!("{address} is a {class} address"));
        }
    }
    if !decision.is_allowed() && manifest.allows && operator.allows {
        notes.push(
            "each side allows it by itself, but no two of their rules meet: a rule by name and \
             one by address don't, nor do paths of which neither contains the other"
                .to_owned(),
        );
    }
    notes
}
