//! What a skill asks for. Everything parsed here is hostile input: bounded in size, depth and
//! expansion, and nothing in it grants anything. No I/O: callers hand in text.

mod agent_skill;
mod check_network;
mod check_policy;
mod document;
mod env_vars;
mod error;
mod execution;
mod marker;
mod model;
mod near_miss;
mod pep723;
mod python_classes;
mod python_imports;
mod requirement;
mod script_runtime;
mod security_policy;
mod skillware;
pub mod yaml;

pub use agent_skill::parse_agent_skill;
pub use check_network::{check_network, method_problem, path_problem};
pub use check_policy::{check_resources, parse_security_policy};
pub use document::{agent_skill_document, skillware_document};
pub use error::{ManifestError, Parsed, Warning, clean as printable};
pub use model::{Entry, EnvVar, Manifest, ParamSchema, Runtime};
pub use near_miss::distance as edit_distance;
pub use pep723::pep723_requirements;
pub use python_classes::skill_classes;
pub use python_imports::imports_module;
pub use requirement::check_requirement;
pub use script_runtime::runtime_for_script;
pub use security_policy::{
    DenyRule, EgressRule, Filesystem, HttpRule, Network, NetworkBudget, ParamAccess, Resources,
    SecretBinding, SecretPlace, SecurityPolicy,
};
pub use skillware::parse_skillware;

/// No manifest, frontmatter or policy file is larger than this.
pub const MAX_BYTES: usize = 1 << 20;
