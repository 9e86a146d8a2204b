//! The shape of `skillcell.yaml`. Every field here is a ceiling, but for isolation, a floor.

use crate::assign::{Assignment, CategoryPattern};
use crate::ceiling::Trust;
use crate::egress::{MAX_EGRESS_ENTRIES, entries};
use crate::roots::Root;
use crate::values::{Floor, FormatVersion, not_null, not_null_values, present};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{ByteSize, CpuCount, EnvName, HostPattern, Timeout};
use skillcell_manifest::{EgressRule, HttpRule};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// An operator policy. Several files intersect: each is a ceiling for the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// Always 1.
    pub version: FormatVersion,
    /// For every skill. What is missing here is not allowed; a missing resource is the built-in
    /// maximum, a missing isolation `sandbox`.
    #[serde(default, deserialize_with = "not_null")]
    pub defaults: Section,
    /// Narrows `defaults` by how far the operator trusts the skill's origin.
    #[serde(default, deserialize_with = "not_null")]
    pub tiers: Tiers,
    /// Narrows further, by pattern over `category/name`. Every section that matches applies.
    #[serde(default, deserialize_with = "not_null_values")]
    pub categories: BTreeMap<CategoryPattern, Section>,
    /// Which skills belong to which tier; the first entry that matches decides. Without one:
    /// `external`.
    #[serde(default, deserialize_with = "not_null")]
    pub assign: Vec<Assignment>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    #[serde(default, deserialize_with = "not_null")]
    pub core: Section,
    #[serde(default, deserialize_with = "not_null")]
    pub verified: Section,
    #[serde(default, deserialize_with = "not_null")]
    pub external: Section,
}

/// What is allowed. In `defaults` a missing field means the strictest value; in a tier or category
/// it means "as in `defaults`", and a field that is there narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IsolationFloor")]
    pub isolation: Option<IsolationFloor>,
    /// Whether the caller may lower the isolation below the floor by `--trust`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Trust")]
    pub trust: Option<Trust>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NetworkCeiling")]
    pub network: Option<NetworkCeiling>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FilesystemCeiling")]
    pub filesystem: Option<FilesystemCeiling>,
    /// Variables that a skill which declares them gets from the caller's environment without
    /// `--env`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<EnvName>")]
    pub env: Option<Vec<EnvName>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ResourceCeiling")]
    pub resources: Option<ResourceCeiling>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DependencyCeiling")]
    pub dependencies: Option<DependencyCeiling>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationFloor {
    /// The weakest level that is permitted without `--trust`.
    pub minimum: Floor,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkCeiling {
    /// Empty means no network.
    pub egress: EgressCeiling,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FilesystemCeiling {
    /// Host paths in params may be read under these without `--read`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Root>")]
    pub read: Option<Vec<Root>>,
    /// Host paths in params may be written, and read, under these without `--write`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Root>")]
    pub write: Option<Vec<Root>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub scratch: Option<ByteSize>,
    /// Where `--read` and `--write` themselves may point. Without this field they may point
    /// anywhere that the caller can read or write: a flag is the caller's own word.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CallerRoots")]
    pub caller: Option<CallerRoots>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerRoots {
    /// Missing or empty: `--read` only where `write` permits it.
    #[serde(default, deserialize_with = "not_null")]
    pub read: Vec<Root>,
    /// Missing or empty: no `--write`.
    #[serde(default, deserialize_with = "not_null")]
    pub write: Vec<Root>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceCeiling {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timeout")]
    pub timeout: Option<Timeout>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CpuCount")]
    pub cpu: Option<CpuCount>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub memory: Option<ByteSize>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub processes: Option<NonZeroU32>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub output: Option<ByteSize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DependencyCeiling {
    /// Whether a requirement without a wheel may be built from source, which runs its code.
    pub source_builds: bool,
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
            n if n > MAX_EGRESS_ENTRIES => Err(format!(
                "{n} entries are too many for one list of rules: at most {MAX_EGRESS_ENTRIES}"
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
    type Error = &'static str;
    fn try_from(rule: RuleFields) -> Result<Self, Self::Error> {
        if rule.domains.is_empty() && rule.cidrs.is_empty() {
            return Err("this rule names no host: give it `domains` or `cidrs`");
        }
        if rule.ports.is_empty() || rule.ports.contains(&0) {
            return Err("this rule needs `ports`, such as [443], each above 0");
        }
        let http = match rule.http {
            None => Vec::new(),
            // Read as "any request" further on, where its author wrote "none".
            Some(http) if http.is_empty() => {
                return Err("`http: []` allows no request: remove it to allow any, or the rule");
            }
            Some(http) => http,
        };
        if http
            .iter()
            .any(|h| h.methods.is_empty() || h.paths.is_empty())
        {
            return Err("an entry of `http` needs at least one method and one path");
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
