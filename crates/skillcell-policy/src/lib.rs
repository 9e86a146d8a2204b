//! What the operator allows: `skillcell.yaml`, parsed, selected for one skill, and combined.
//!
//! The risk here is a policy that quietly allows more than its author meant. So: an unknown field,
//! a doubled key and an empty value are errors with their place in the file; a list that is missing
//! allows nothing; sections and files only ever narrow each other, and where the exact intersection
//! of two rules can't be written down, the narrower answer is taken. Nothing that a skill says about
//! itself can widen its ceiling: tiers are given by the operator, and a category only narrows.
//!
//! No I/O: callers hand in text and the name of the file that it came from.

#![cfg_attr(
    test,
    allow(clippy::expect_used, reason = "a test that fails may panic")
)]

mod assign;
mod ceiling;
mod combine;
mod decide;
mod egress;
mod error;
mod file;
mod index_file;
mod layers;
mod network_file;
mod parse;
mod roots;
mod values;

pub use assign::{Assignment, CategoryPattern, DigestText, Subject, Tier};
pub use ceiling::{
    Bounded, BudgetCeilings, Ceiling, LimitCeilings, LogTerms, Origin, SecretBound, Trust,
};
pub use decide::{Ask, Decision, Egress, Intent};
pub use egress::{
    MAX_EGRESS_ENTRIES, MAX_OPERATOR_ENTRIES, allows, entries, intersect, intersect_hosts,
};
pub use error::PolicyError;
pub use file::{
    AuditFloor, CallerRoots, DependencyCeiling, FilesystemCeiling, IsolationFloor, PolicyFile,
    ResourceCeiling, Section, Tiers,
};
pub use index_file::IndexCeiling;
pub use layers::{Layers, OperatorPolicy};
pub use network_file::{
    BudgetCeiling, DenyCeiling, EgressCeiling, NetworkCeiling, Resolver, SecretCeiling,
};
pub use roots::Root;
pub use skillcell_core::{NormalPath, PathError};
pub use skillcell_manifest::{DenyRule, EgressRule};
pub use values::{Floor, FormatVersion};
