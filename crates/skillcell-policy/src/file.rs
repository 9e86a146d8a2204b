//! The shape of `skillcell.yaml`. Every field here is a ceiling, but for isolation, a floor.

use crate::assign::{Assignment, CategoryPattern};
use crate::ceiling::Trust;
use crate::index_file::IndexCeiling;
use crate::network_file::{NetworkCeiling, SecretCeiling};
use crate::roots::Root;
use crate::values::{Floor, FormatVersion, not_null, not_null_values, present};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{AuditLevel, ByteSize, CpuCount, EnvName, Timeout};
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
    /// What must be recorded of calls.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AuditFloor")]
    pub audit: Option<AuditFloor>,
    /// Whether a skill may be loaded once, and resumed from there for each of its calls. Missing in
    /// `defaults` it means yes: a resumed call is held by the same plan.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub warm: Option<bool>,
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
    /// Variables that a skill gets as a placeholder only, and the hosts that may get their value.
    /// Holds also for a skill that asks for one of them as a plain variable.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<SecretCeiling>")]
    pub secrets: Option<Vec<SecretCeiling>>,
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

/// What must be recorded, and how long the log is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditFloor {
    /// The least that is recorded of each call. Missing: `security`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AuditLevel")]
    pub level: Option<AuditLevel>,
    /// A segment of the log is closed when it is this large. Missing: 64MiB.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub segment: Option<ByteSize>,
    /// A segment of the log is closed when it is this old. Missing: 7.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub segment_days: Option<NonZeroU32>,
    /// The oldest closed segments are removed when all together are larger. Missing: kept.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ByteSize")]
    pub keep: Option<ByteSize>,
    /// Closed segments that are older are removed. Missing: kept.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub keep_days: Option<NonZeroU32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DependencyCeiling {
    /// Whether a requirement without a wheel may be built from source, which runs its code.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub source_builds: Option<bool>,
    /// Whom an install may reach besides the package index that the caller's own settings name:
    /// where that index redirects to, or keeps its files.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "IndexCeiling")]
    pub index_hosts: Option<IndexCeiling>,
}
