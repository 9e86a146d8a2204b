//! `security_policy`, version 1: the vocabulary that manifests and operator policies share.
//!
//! Unknown fields are errors. A missing field means nothing is granted, or the default limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{ByteSize, CpuCount, DenyPattern, EnvName, HostPattern, Timeout};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecurityPolicy {
    /// Always 1.
    pub version: u32,
    #[serde(default)]
    pub network: Network,
    #[serde(default)]
    pub filesystem: Filesystem,
    #[serde(default)]
    pub env: Vec<EnvName>,
    /// Variables whose value the skill never sees: it gets a placeholder, and the value is put in
    /// on the way out, to these hosts only.
    #[serde(default)]
    pub secrets: Vec<SecretBinding>,
    #[serde(default)]
    pub resources: Resources,
}

impl Default for SecurityPolicy {
    /// What a skill without a `security_policy` asks for: nothing.
    fn default() -> Self {
        SecurityPolicy {
            version: 1,
            network: Network::default(),
            filesystem: Filesystem::default(),
            env: Vec::new(),
            secrets: Vec::new(),
            resources: Resources::default(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Empty means no network at all.
    #[serde(default)]
    pub egress: Vec<EgressRule>,
    /// What is denied although a rule allows it.
    #[serde(default)]
    pub deny: Vec<DenyRule>,
    #[serde(default)]
    pub budget: NetworkBudget,
}

/// Hosts that are denied, whatever else allows them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DenyRule {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DenyPattern>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub cidrs: Vec<ipnet::IpNet>,
    /// Missing means every port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// How much network one call may use. What is missing is the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkBudget {
    #[serde(default)]
    pub bytes_out: Option<ByteSize>,
    #[serde(default)]
    pub bytes_in: Option<ByteSize>,
    #[serde(default)]
    pub connections: Option<u64>,
    #[serde(default)]
    pub requests: Option<u64>,
    /// Distinct hosts.
    #[serde(default)]
    pub hosts: Option<u64>,
}

/// A variable, the hosts that may get its value, and where in a request it may stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretBinding {
    pub env: EnvName,
    pub hosts: Vec<HostPattern>,
    #[serde(rename = "in", default = "header_only")]
    pub places: Vec<SecretPlace>,
}

/// Where in a request a secret may be put in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SecretPlace {
    Header,
    Query,
}

impl SecretPlace {
    pub const ALL: [SecretPlace; 2] = [SecretPlace::Header, SecretPlace::Query];

    pub fn as_str(self) -> &'static str {
        match self {
            SecretPlace::Header => "header",
            SecretPlace::Query => "query",
        }
    }
}

fn header_only() -> Vec<SecretPlace> {
    vec![SecretPlace::Header]
}

/// Hosts by name or by address, the ports on them, and for HTTP the methods and paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<HostPattern>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub cidrs: Vec<ipnet::IpNet>,
    /// Empty only where domains stand alone; see [`EgressRule::effective_ports`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
}

impl EgressRule {
    /// The ports that the rule is about. Only a rule of names alone may leave them out, and then
    /// it is about the web; nothing is ever implied for addresses.
    pub fn effective_ports(&self) -> &[u16] {
        if self.ports.is_empty() && self.cidrs.is_empty() {
            &[443, 80]
        } else {
            &self.ports
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRule {
    pub methods: Vec<String>,
    pub paths: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    /// Params that hold host paths, and what the skill does with them.
    #[serde(default)]
    pub params: BTreeMap<String, ParamAccess>,
    #[serde(default)]
    pub scratch: Option<ByteSize>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ParamAccess {
    Read,
    Write,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    #[serde(default)]
    pub timeout: Option<Timeout>,
    #[serde(default)]
    pub cpu: Option<CpuCount>,
    #[serde(default)]
    pub memory: Option<ByteSize>,
    #[serde(default)]
    pub processes: Option<u32>,
    #[serde(default)]
    pub output: Option<ByteSize>,
}
