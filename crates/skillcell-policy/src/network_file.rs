//! The network part of a policy file: ceilings for egress, denials, budgets, secrets and the
//! resolver. Rules are checked while the reader still knows where they stand in the file.

use crate::egress::{MAX_OPERATOR_ENTRIES, entries};
use crate::values::present;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{ByteSize, DenyPattern, EnvName, HostPattern};
use skillcell_manifest::{
    DenyRule, EgressRule, HttpRule, SecretPlace, method_problem, path_problem,
};
use std::net::{IpAddr, SocketAddr};

/// In `defaults` a missing `egress` means no network; in a tier or category "as in `defaults`".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkCeiling {
    /// Empty means no network.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EgressCeiling")]
    pub egress: Option<EgressCeiling>,
    /// What is denied although a rule allows it. Every section's entries count.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DenyCeiling")]
    pub deny: Option<DenyCeiling>,
    /// The most that one call may ask for.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BudgetCeiling")]
    pub budget: Option<BudgetCeiling>,
    /// The DNS server that allowed names are resolved with, instead of the host's.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Resolver")]
    pub resolver: Option<Resolver>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetCeiling {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub bytes_out: Option<ByteSize>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub bytes_in: Option<ByteSize>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub connections: Option<u64>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub requests: Option<u64>,
    /// Distinct hosts.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub hosts: Option<u64>,
}

/// A variable and the only hosts that may get its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretCeiling {
    pub env: EnvName,
    /// Empty means that nobody gets it.
    pub hosts: Vec<HostPattern>,
    /// Where in a request it may stand; missing means anywhere that a secret can.
    #[serde(
        rename = "in",
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Vec<SecretPlace>")]
    pub places: Option<Vec<SecretPlace>>,
}

/// `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53` or `[2001:db8::53]:5353`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Resolver(SocketAddr);

impl Resolver {
    pub fn address(self) -> SocketAddr {
        self.0
    }
}

impl TryFrom<String> for Resolver {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let address = text
            .parse::<SocketAddr>()
            .or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
        match address {
            Ok(address) if address.port() != 0 => Ok(Resolver(address)),
            _ => Err(format!(
                "`{}` is not a resolver: write an address, such as 192.0.2.53 or 192.0.2.53:5353",
                text.chars().take(100).collect::<String>()
            )),
        }
    }
}

impl From<Resolver> for String {
    fn from(resolver: Resolver) -> String {
        resolver.0.to_string()
    }
}

/// Egress rules that each say something: hosts, ports, and no list that is there but empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<RawRule>")]
#[schemars(with = "Vec<EgressRule>")]
pub struct EgressCeiling(Vec<EgressRule>);

impl EgressCeiling {
    pub fn rules(&self) -> &[EgressRule] {
        &self.0
    }
}

impl TryFrom<Vec<RawRule>> for EgressCeiling {
    type Error = String;
    fn try_from(raw: Vec<RawRule>) -> Result<Self, String> {
        let rules: Vec<EgressRule> = raw.into_iter().map(|rule| rule.0).collect();
        match entries(&rules) {
            n if n > MAX_OPERATOR_ENTRIES => Err(format!(
                "{n} entries are too many for one list of rules: at most {MAX_OPERATOR_ENTRIES}"
            )),
            _ => Ok(EgressCeiling(rules)),
        }
    }
}

/// A rule, checked while the reader still knows where it stands in the file.
#[derive(Deserialize)]
#[serde(try_from = "RuleFields")]
struct RawRule(EgressRule);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFields {
    #[serde(default)]
    domains: Vec<HostPattern>,
    #[serde(default)]
    cidrs: Vec<ipnet::IpNet>,
    #[serde(default)]
    ports: Vec<u16>,
    #[serde(default, deserialize_with = "present")]
    http: Option<Vec<HttpRule>>,
}

impl TryFrom<RuleFields> for RawRule {
    type Error = String;
    fn try_from(rule: RuleFields) -> Result<Self, Self::Error> {
        if rule.domains.is_empty() && rule.cidrs.is_empty() {
            return Err("this rule names no host: give it `domains` or `cidrs`".to_owned());
        }
        if rule.ports.is_empty() || rule.ports.contains(&0) {
            return Err("this rule needs `ports`, such as [443], each above 0".to_owned());
        }
        let http = match rule.http {
            None => Vec::new(),
            // Read as "any request" further on, where its author wrote "none".
            Some(http) if http.is_empty() => {
                return Err(
                    "`http: []` allows no request: remove it to allow any, or the rule".to_owned(),
                );
            }
            Some(http) => http,
        };
        if http
            .iter()
            .any(|h| h.methods.is_empty() || h.paths.is_empty())
        {
            return Err("an entry of `http` needs at least one method and one path".to_owned());
        }
        let methods = http.iter().flat_map(|h| h.methods.iter());
        let paths = http.iter().flat_map(|h| h.paths.iter());
        let problem = methods
            .filter_map(|method| method_problem(method))
            .chain(paths.filter_map(|path| path_problem(path)))
            .next();
        if let Some(problem) = problem {
            return Err(problem);
        }
        // 10.1.2.3/8 means 10.0.0.0/8; in one form only, so that comparing is exact.
        let cidrs = rule.cidrs.iter().map(ipnet::IpNet::trunc).collect();
        Ok(RawRule(EgressRule {
            domains: rule.domains,
            cidrs,
            ports: rule.ports,
            http,
        }))
    }
}

/// Deny entries that each say something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<RawDeny>")]
#[schemars(with = "Vec<DenyRule>")]
pub struct DenyCeiling(Vec<DenyRule>);

impl DenyCeiling {
    pub fn rules(&self) -> &[DenyRule] {
        &self.0
    }
}

impl TryFrom<Vec<RawDeny>> for DenyCeiling {
    type Error = String;
    fn try_from(raw: Vec<RawDeny>) -> Result<Self, String> {
        let rules: Vec<DenyRule> = raw.into_iter().map(|rule| rule.0).collect();
        let size: usize = rules
            .iter()
            .map(|rule| rule.domains.len() + rule.cidrs.len() + rule.ports.len() + 1)
            .sum();
        if size > MAX_OPERATOR_ENTRIES {
            return Err(format!(
                "{size} entries are too many for one list: at most {MAX_OPERATOR_ENTRIES}"
            ));
        }
        Ok(DenyCeiling(rules))
    }
}

#[derive(Deserialize)]
#[serde(try_from = "DenyFields")]
struct RawDeny(DenyRule);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DenyFields {
    #[serde(default)]
    domains: Vec<DenyPattern>,
    #[serde(default)]
    cidrs: Vec<ipnet::IpNet>,
    #[serde(default, deserialize_with = "present")]
    ports: Option<Vec<u16>>,
}

impl TryFrom<DenyFields> for RawDeny {
    type Error = &'static str;
    fn try_from(rule: DenyFields) -> Result<Self, Self::Error> {
        if rule.domains.is_empty() && rule.cidrs.is_empty() {
            return Err("this entry names no host: give it `domains` or `cidrs`");
        }
        let ports = match rule.ports {
            Some(ports) if ports.is_empty() => {
                return Err("`ports: []` denies no port: remove it to deny them all");
            }
            Some(ports) if ports.contains(&0) => return Err("port 0 is not a port"),
            ports => ports.unwrap_or_default(),
        };
        Ok(RawDeny(DenyRule {
            domains: rule.domains,
            cidrs: rule.cidrs.iter().map(ipnet::IpNet::trunc).collect(),
            ports,
        }))
    }
}
