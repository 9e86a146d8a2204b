//! What the types of network rules and secrets can't say. A list that is there but empty is an
//! error: its author wrote "none", and a missing list means something else.

use crate::check_policy::fail;
use crate::error::{ManifestError, clean};
use crate::security_policy::{DenyRule, EgressRule, Network, SecretBinding};
use crate::yaml::{Node, Value};
use skillcell_core::{Location, NormalPath};

/// Checks a `network` section against the tree that it was read from.
pub fn check_network(network: &Network, node: &Node) -> Result<(), ManifestError> {
    let egress = node.get("egress");
    for (index, rule) in network.egress.iter().enumerate() {
        let rule_node = egress.and_then(|e| e.index(index)).unwrap_or(node);
        check_rule(rule, rule_node)?;
    }
    let deny = node.get("deny");
    for (index, rule) in network.deny.iter().enumerate() {
        let rule_node = deny.and_then(|d| d.index(index)).unwrap_or(node);
        check_deny(rule, rule_node)?;
    }
    Ok(())
}

fn check_rule(rule: &EgressRule, node: &Node) -> Result<(), ManifestError> {
    if rule.domains.is_empty() && rule.cidrs.is_empty() {
        return Err(fail(
            "an egress rule needs `domains` or `cidrs`",
            node.location,
        ));
    }
    not_empty(
        node,
        "ports",
        "`ports: []` allows no port: name some, or remove the rule",
    )?;
    not_empty(
        node,
        "http",
        "`http: []` allows no request: remove it to allow any, or the rule",
    )?;
    if !rule.cidrs.is_empty() && rule.ports.is_empty() {
        return Err(fail(
            "an egress rule with `cidrs` needs `ports`",
            node.location,
        ));
    }
    check_ports(&rule.ports, node)?;
    for (index, http) in rule.http.iter().enumerate() {
        let http_node = node
            .get("http")
            .and_then(|h| h.index(index))
            .unwrap_or(node);
        if http.methods.is_empty() || http.paths.is_empty() {
            return Err(fail(
                "an http rule needs at least one method and one path",
                http_node.location,
            ));
        }
        for (index, method) in http.methods.iter().enumerate() {
            if let Some(problem) = method_problem(method) {
                return Err(fail(problem, item(http_node, "methods", index)));
            }
        }
        for (index, path) in http.paths.iter().enumerate() {
            if let Some(problem) = path_problem(path) {
                return Err(fail(problem, item(http_node, "paths", index)));
            }
        }
    }
    Ok(())
}

fn check_deny(rule: &DenyRule, node: &Node) -> Result<(), ManifestError> {
    if rule.domains.is_empty() && rule.cidrs.is_empty() {
        return Err(fail(
            "a deny entry needs `domains` or `cidrs`",
            node.location,
        ));
    }
    not_empty(
        node,
        "ports",
        "`ports: []` denies no port: remove it to deny them all",
    )?;
    check_ports(&rule.ports, node)
}

fn check_ports(ports: &[u16], node: &Node) -> Result<(), ManifestError> {
    match ports.iter().position(|port| *port == 0) {
        Some(index) => Err(fail("port 0 is not a port", item(node, "ports", index))),
        None => Ok(()),
    }
}

/// Checks a list of `secrets` against the tree that it was read from.
pub(crate) fn check_secrets(secrets: &[SecretBinding], node: &Node) -> Result<(), ManifestError> {
    for (index, secret) in secrets.iter().enumerate() {
        let at = node.index(index).unwrap_or(node);
        if secret.hosts.is_empty() {
            return Err(fail(
                format!("the secret `{}` needs at least one host", secret.env),
                at.location,
            ));
        }
        not_empty(
            at,
            "in",
            "`in: []` puts the secret nowhere: write header, query or both",
        )?;
        if secrets[..index].iter().any(|other| other.env == secret.env) {
            let place = at.get("env").unwrap_or(at).location;
            return Err(fail(
                format!(
                    "the secret `{}` is bound twice: list all its hosts once",
                    secret.env
                ),
                place,
            ));
        }
    }
    Ok(())
}

/// Why a text is no method that a rule can name.
pub fn method_problem(method: &str) -> Option<String> {
    let token = |b: u8| b.is_ascii_uppercase() || b == b'-';
    let good = !method.is_empty() && method.len() <= 32 && method.bytes().all(token);
    (!good).then(|| {
        format!(
            "`{}` is not an HTTP method: use upper case, such as GET",
            clean(method)
        )
    })
}

/// Why a text is no pattern over paths: requests are compared in normal form, so a pattern in
/// another form would never match.
pub fn path_problem(path: &str) -> Option<String> {
    let shown = clean(path);
    if !path.starts_with('/') {
        return Some(format!("`{shown}` is not an HTTP path: begin it with `/`"));
    }
    if path.bytes().any(|b| b <= b' ' || b == 0x7f) || path.contains(['?', '#']) {
        return Some(format!(
            "`{shown}` is not an HTTP path: spaces, control characters, `?` and `#` never match"
        ));
    }
    match NormalPath::parse(path) {
        Ok(normal) if normal.as_str() == path => None,
        Ok(normal) => Some(format!(
            "`{shown}` is not in normal form and would never match: write `{normal}`"
        )),
        Err(error) => Some(format!("`{shown}` would never match: {error}")),
    }
}

/// An error where a list is written out as empty.
fn not_empty(node: &Node, field: &str, message: &str) -> Result<(), ManifestError> {
    match node.get(field) {
        Some(list) if matches!(&list.value, Value::Sequence(items) if items.is_empty()) => {
            Err(fail(message, list.location))
        }
        _ => Ok(()),
    }
}

/// The place of one item in a list field.
fn item(node: &Node, field: &str, index: usize) -> Location {
    node.get(field)
        .and_then(|list| list.index(index))
        .unwrap_or(node)
        .location
}

#[cfg(test)]
mod tests {
    use crate::parse_security_policy;

    fn error(text: &str) -> String {
        let error = parse_security_policy(text).unwrap_err();
        format!("{}: {error}", error.location().unwrap())
    }

    fn network(body: &str) -> String {
        error(&format!("version: 1\nnetwork:\n  {body}\n"))
    }

    #[test]
    fn a_list_that_is_there_but_empty_is_an_error_and_never_all() {
        assert!(network("egress: [{domains: [a.com], ports: []}]").starts_with("3:38: "));
        assert!(network("egress: [{domains: [a.com], http: []}]").contains("allows no request"));
        assert!(network("deny: [{domains: [a.com], ports: []}]").contains("denies no port"));
        assert!(network("egress: [{domains: []}]").contains("needs `domains` or `cidrs`"));
        assert!(network("deny: [{ports: [80]}]").contains("a deny entry needs"));
        assert!(network("deny: [{domains: [a.com], ports: [0]}]").contains("port 0"));
    }

    #[test]
    fn wildcards_on_public_suffixes_are_refused_in_rules_and_taken_in_deny() {
        let message = network("egress: [{domains: ['*.co.uk']}]");
        assert!(message.contains("`co.uk` is a public suffix"), "{message}");
        assert!(message.starts_with("3:23: "), "{message}");
        let text = "version: 1\nnetwork: {deny: [{domains: ['*.github.io']}]}\n";
        assert!(parse_security_policy(text).is_ok());
    }

    #[test]
    fn a_path_that_could_never_match_is_an_error() {
        let path = |path: &str| {
            network(&format!(
                "egress: [{{domains: [a.com], http: [{{methods: [GET], paths: ['{path}']}}]}}]"
            ))
        };
        assert!(path("/a/../b").contains("write `/b`"));
        assert!(path("/%61").contains("write `/a`"));
        assert!(path("/a//b").contains("empty segment"));
        assert!(path("/a%2fb").contains("encoded slash"));
    }

    #[test]
    fn secrets_are_bound_once_to_hosts_and_places() {
        let text = "version: 1\nsecrets: [{env: KEY, hosts: [a.com], in: [header, query]}, {env: B, hosts: [b.com]}]\n";
        let policy = parse_security_policy(text).expect("secrets");
        let places: Vec<_> = policy.secrets.iter().map(|s| s.places.len()).collect();
        assert_eq!(places, [2, 1]);
        let secrets = |body: &str| error(&format!("version: 1\nsecrets: [{body}]\n"));
        assert!(secrets("{env: KEY, hosts: []}").contains("needs at least one host"));
        assert!(secrets("{env: KEY}").contains("missing field `hosts`"));
        assert!(secrets("{env: KEY, hosts: [a.com], in: []}").contains("puts the secret nowhere"));
        assert!(secrets("{env: KEY, hosts: [a.com], in: [body]}").starts_with("2:43: "));
        assert!(
            secrets("{env: KEY, hosts: [a.com]}, {env: KEY, hosts: [b.com]}")
                .contains("bound twice")
        );
        assert!(secrets("{env: KEY, host: [a.com]}").contains("unknown field `host`"));
        assert!(secrets("{env: LD_PRELOAD, hosts: [a.com]}").starts_with("2:17: "));
    }

    #[test]
    fn a_budget_is_made_of_sizes_and_counts() {
        let text = "version: 1\nnetwork: {budget: {bytes_out: 1MiB, connections: 5, hosts: 0}}\n";
        assert!(parse_security_policy(text).is_ok());
        assert!(network("budget: {bytes: 1MiB}").contains("unknown field `bytes`"));
        assert!(network("budget: {requests: -1}").contains("whole number from 0"));
    }
}
