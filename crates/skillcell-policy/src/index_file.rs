//! The hosts of package indexes in a policy file, checked while the reader still knows where they
//! stand in it.

use crate::egress::{MAX_OPERATOR_ENTRIES, entries};
use crate::values::not_null;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::HostPattern;
use skillcell_manifest::EgressRule;

/// Rules that each name hosts, and ports or none: an index is on 443.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<RawHosts>")]
#[schemars(with = "Vec<IndexHosts>")]
pub struct IndexCeiling(Vec<EgressRule>);

impl IndexCeiling {
    pub fn rules(&self) -> &[EgressRule] {
        &self.0
    }
}

impl TryFrom<Vec<RawHosts>> for IndexCeiling {
    type Error = String;
    fn try_from(raw: Vec<RawHosts>) -> Result<Self, String> {
        let rules: Vec<EgressRule> = raw.into_iter().map(|hosts| hosts.0).collect();
        match entries(&rules) {
            n if n > MAX_OPERATOR_ENTRIES => Err(format!(
                "{n} entries are too many for one list of hosts: at most {MAX_OPERATOR_ENTRIES}"
            )),
            _ => Ok(IndexCeiling(rules)),
        }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "IndexHosts")]
struct RawHosts(EgressRule);

/// Hosts of a package index.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IndexHosts {
    #[serde(default)]
    domains: Vec<HostPattern>,
    /// An address that isn't public is reached only where it is named here.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    cidrs: Vec<ipnet::IpNet>,
    /// Missing: 443.
    #[serde(default = "web", deserialize_with = "not_null")]
    ports: Vec<u16>,
}

fn web() -> Vec<u16> {
    vec![443]
}

impl TryFrom<IndexHosts> for RawHosts {
    type Error = &'static str;
    fn try_from(hosts: IndexHosts) -> Result<Self, Self::Error> {
        if hosts.domains.is_empty() && hosts.cidrs.is_empty() {
            return Err("this entry names no host: give it `domains` or `cidrs`");
        }
        if hosts.ports.is_empty() {
            return Err("`ports: []` allows no port: remove it for 443, or remove the entry");
        }
        if hosts.ports.contains(&0) {
            return Err("port 0 is not a port");
        }
        Ok(RawHosts(EgressRule {
            domains: hosts.domains,
            // 10.1.2.3/8 means 10.0.0.0/8; in one form only, so that comparing is exact.
            cidrs: hosts.cidrs.iter().map(ipnet::IpNet::trunc).collect(),
            ports: hosts.ports,
            http: Vec::new(),
        }))
    }
}
