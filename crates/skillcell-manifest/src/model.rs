//! A manifest of any dialect, in one shape.

use crate::security_policy::SecurityPolicy;
use serde::Serialize;
use skillcell_core::{EnvName, Isolation, SkillId};

/// What a bundle says about itself.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest {
    pub id: SkillId,
    pub version: Option<String>,
    pub description: Option<String>,
    /// As the bundle claims it; a policy section for it can only narrow.
    pub category: Option<String>,
    /// What the bundle asks for; `None` where it is silent. `InProcess` is a request for trust.
    pub execution: Option<Isolation>,
    pub entry: Entry,
    /// JSON Schema for params, as written.
    pub parameters: ParamSchema,
    /// Python requirements, as written.
    pub requirements: Vec<String>,
    pub env_vars: Vec<EnvVar>,
    pub security_policy: SecurityPolicy,
}

pub type ParamSchema = Option<serde_json::Value>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvVar {
    pub name: EnvName,
    pub required: bool,
}

/// How the skill is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Entry {
    /// `skill.py` with one class that has `execute` or `aexecute`.
    PythonClass { file: String },
    /// A script of an Agent Skill, by its path within the bundle.
    Script { file: String, runtime: Runtime },
    /// Any other program: params as JSON on stdin, one JSON value on stdout.
    Command { argv: Vec<String> },
    /// An Agent Skill for which no script was named.
    None,
}

/// What interprets a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Runtime {
    Python,
    Sh,
    Bash,
    Node,
    /// An executable named by the script's shebang line, and its one argument.
    Shebang {
        program: String,
        argument: Option<String>,
    },
}
