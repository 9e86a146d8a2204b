//! What the types of a `security_policy` can't say.
//!
//! A rule that allows nothing, or a port that was forgotten, is a mistake that would show only
//! when a call is denied; here it still has a line number. The checks for parts are public because
//! operator policies are made of the same parts.

use crate::check_network::{check_network, check_secrets};
use crate::error::ManifestError;
use crate::security_policy::{Resources, SecurityPolicy};
use crate::yaml::{self, Node, Value};
use skillcell_core::Location;

const MAX_PROCESSES: u32 = 65_536;

/// Reads a policy file: the fields themselves, or the same below one `security_policy` key.
pub fn parse_security_policy(text: &str) -> Result<SecurityPolicy, ManifestError> {
    let root = yaml::parse(text)?;
    match &root.value {
        Value::Mapping(entries) if entries.len() == 1 && entries[0].key == "security_policy" => {
            from_node(&entries[0].value)
        }
        _ => from_node(&root),
    }
}

pub(crate) fn from_node(node: &Node) -> Result<SecurityPolicy, ManifestError> {
    let policy: SecurityPolicy = node.decode().map_err(|error| ManifestError::Policy {
        location: error.location.unwrap_or(node.location),
        message: error.message,
    })?;
    if policy.version != 1 {
        let location = node.get("version").unwrap_or(node).location;
        let message = format!(
            "version {} is not known: write `version: 1`",
            policy.version
        );
        return Err(ManifestError::Policy { message, location });
    }
    if let Some(network) = node.get("network") {
        check_network(&policy.network, network)?;
    }
    if let Some(secrets) = node.get("secrets") {
        check_secrets(&policy.secrets, secrets)?;
    }
    if let Some(resources) = node.get("resources") {
        check_resources(&policy.resources, resources)?;
    }
    let params = node.get("filesystem").and_then(|f| f.get("params"));
    if policy
        .filesystem
        .params
        .keys()
        .any(|name| name.trim().is_empty())
    {
        let location = params.unwrap_or(node).location;
        return Err(fail(
            "filesystem.params: the name of a param is empty",
            location,
        ));
    }
    Ok(policy)
}

/// Checks a `resources` section against the tree that it was read from.
pub fn check_resources(resources: &Resources, node: &Node) -> Result<(), ManifestError> {
    match resources.processes {
        Some(count) if !(1..=MAX_PROCESSES).contains(&count) => {
            let location = node.get("processes").unwrap_or(node).location;
            Err(fail(
                format!("processes: expected 1 to {MAX_PROCESSES}, found {count}"),
                location,
            ))
        }
        _ => Ok(()),
    }
}

pub(crate) fn fail(message: impl Into<String>, location: Location) -> ManifestError {
    ManifestError::Policy {
        message: message.into(),
        location,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = parse_security_policy(text).unwrap_err();
        assert!(error.hint().is_some());
        format!("{}: {error}", error.location().unwrap())
    }

    #[test]
    fn the_documented_policy_parses() {
        let text = r#"
version: 1
network:
  egress:
    - domains: [api.etherscan.io, "*.example.com"]
      ports: [443]
    - cidrs: [203.0.113.0/24]
      ports: [5432]
    - domains: [api.github.com]
      http: [{methods: [GET], paths: ["/repos/*"]}]
filesystem:
  params: {pdf_path: read, output_path: write}
  scratch: 64MiB
env: [ETHERSCAN_API_KEY]
resources: {timeout: 30s, cpu: 1, memory: 256MiB, processes: 32, output: 1MiB}
"#;
        let policy = parse_security_policy(text).unwrap();
        assert_eq!(policy.network.egress.len(), 3);
        assert_eq!(policy.network.egress[2].effective_ports(), [443, 80]);
        assert_eq!(policy.resources.processes, Some(32));
        let indented = text.replace('\n', "\n  ");
        assert_eq!(
            parse_security_policy(&format!("security_policy:{indented}")).unwrap(),
            policy
        );
    }

    #[test]
    fn an_unknown_field_is_an_error_at_any_depth_with_its_place() {
        let text = "version: 1\nnetwork:\n  egress:\n    - domain: [a.com]\n";
        let message = error(text);
        assert!(
            message.starts_with(
                "4:7: security_policy: unknown field `domain`, expected one of `domains`"
            ),
            "{message}"
        );
        assert!(error("version: 1\nnetwrk: {}\n").starts_with("2:1: "));
        assert!(error("version: 1\nresources: {cpus: 1}\n").starts_with("2:13: "));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named_without_the_names_of_our_types() {
        assert_eq!(
            error("version: 1\nnetwork: []\n"),
            "2:10: security_policy: expected a mapping, found a list"
        );
        assert_eq!(
            error("version: 1\nnetwork:\n"),
            "2:8: security_policy: expected a mapping, found nothing"
        );
        assert!(
            error("version: 1\nresources: {memory: [1]}\n").contains("expected a number, or text")
        );
        assert!(error("version: 1\nresources: {memory: lots}\n").contains("`lots` is not a size"));
        assert!(error("version: 1\nresources: {processes: -1}\n").contains("whole number from 0"));
        assert!(error("version: 1\nenv: [5]\n").contains("expected text, found the number 5"));
        assert!(
            error("version: 1\nfilesystem: {params: {a: execute}}\n")
                .contains("expected `read` or `write`")
        );
        assert!(error("version: one\n").contains("found the text `one`"));
    }

    #[test]
    fn the_version_is_required_and_one() {
        assert!(error("network: {egress: []}\n").contains("missing field `version`"));
        assert!(error("version: 2\n").starts_with("1:10: security_policy: version 2"));
        assert!(error("").contains("expected a mapping"));
    }

    #[test]
    fn a_rule_without_destination_or_port_is_an_error() {
        let rule = |rule: &str| error(&format!("version: 1\nnetwork:\n  egress:\n    - {rule}\n"));
        assert!(rule("{}").starts_with("4:7: security_policy: an egress rule needs"));
        assert!(rule("{ports: [443]}").contains("`domains` or `cidrs`"));
        assert!(rule("{cidrs: [10.0.0.0/8]}").contains("needs `ports`"));
        assert!(rule("{domains: [a.com], cidrs: [10.0.0.0/8]}").contains("needs `ports`"));
        assert!(rule("{domains: [a.com], ports: [443, 0]}").starts_with("4:39: "));
        assert!(rule("{domains: [a.com], ports: [70000]}").contains("from 0 to 65535"));
        assert!(rule("{domains: [1.2.3.4]}").contains("use `cidrs`"));
        assert!(rule("{cidrs: [10.0.0.0/99], ports: [1]}").starts_with("4:16: "));
    }

    #[test]
    fn http_rules_are_exact() {
        let rule = |http: &str| {
            error(&format!(
                "version: 1\nnetwork: {{egress: [{{domains: [a.com], http: [{http}]}}]}}\n"
            ))
        };
        assert!(rule("{methods: [get], paths: [/]}").contains("upper case"));
        assert!(rule("{methods: [GET], paths: [repos]}").contains("begin it with `/`"));
        assert!(rule("{methods: [GET], paths: ['/a b']}").contains("never match"));
        assert!(rule("{methods: [], paths: [/]}").contains("at least one"));
        assert!(rule("{methods: [GET]}").contains("missing field `paths`"));
    }

    #[test]
    fn reserved_variables_and_impossible_process_counts_are_refused() {
        assert!(error("version: 1\nenv: [OK, LD_PRELOAD]\n").starts_with("2:11: "));
        assert!(error("version: 1\nresources: {processes: 0}\n").starts_with("2:24: "));
        assert!(error("version: 1\nresources: {processes: 65537}\n").contains("65536"));
    }
}
