//! Rules as lines of YAML that can be pasted into a policy.

use skillcell_core::{Host, embedded_ipv4};
use skillcell_manifest::{EgressRule, HttpRule};
use std::net::IpAddr;

use super::target::Target;

/// A rule on one line, in flow style.
pub(super) fn rule(rule: &EgressRule) -> String {
    let mut parts = Vec::new();
    if !rule.domains.is_empty() {
        parts.push(format!("domains: {}", list(&rule.domains)));
    }
    if !rule.cidrs.is_empty() {
        parts.push(format!("cidrs: {}", list(&rule.cidrs)));
    }
    if !rule.ports.is_empty() {
        parts.push(format!("ports: {}", list(&rule.ports)));
    }
    if !rule.http.is_empty() {
        let http: Vec<String> = rule.http.iter().map(http).collect();
        parts.push(format!("http: [{}]", http.join(", ")));
    }
    format!("{{{}}}", parts.join(", "))
}

/// The line that would allow a destination, and no more than that. `requests` where single
/// requests are what is missing.
pub(super) fn line_for(target: &Target, requests: bool) -> String {
    let host = match &target.host {
        Host::Name(name) => format!("domains: {}", list(&[name])),
        Host::Addr(address) => {
            // What it stands for must be named as well.
            let inner = embedded_ipv4(*address).map(IpAddr::V4);
            let networks = std::iter::once(*address).chain(inner).map(|address| {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                format!("{address}/{bits}")
            });
            format!("cidrs: {}", list(&networks.collect::<Vec<_>>()))
        }
    };
    let http = match &target.request {
        Some(request) if requests => match &request.path {
            Ok(path) => {
                let rule = HttpRule {
                    methods: vec![request.method.clone()],
                    paths: vec![path.to_string()],
                };
                format!(", http: [{}]", http(&rule))
            }
            // Only a rule for all requests lets it through.
            Err(_) => String::new(),
        },
        _ => String::new(),
    };
    format!(
        "network: {{egress: [{{{host}, ports: [{}]{http}}}]}}",
        target.port
    )
}

fn http(rule: &HttpRule) -> String {
    format!(
        "{{methods: {}, paths: {}}}",
        list(&rule.methods),
        list(&rule.paths)
    )
}

fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(|item| scalar(&item.to_string())).collect();
    format!("[{}]", items.join(", "))
}

/// Quoted where YAML could read something else: an alias, a mapping, the end of a list.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    if text.chars().all(plain) && !text.starts_with('-') {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
