use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How strongly a call is separated from the host, weakest first: the order is the comparison.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The caller's own process. From a manifest this is a request for trust, never a permission.
    InProcess,
    /// Landlock, seccomp and rlimits, no namespaces.
    #[serde(alias = "subprocess")]
    Process,
    /// Namespaces, a fresh root, Landlock, seccomp and cgroups. The default.
    #[serde(alias = "isolated")]
    Sandbox,
    Wasm,
    Container,
    Microvm,
}

impl Isolation {
    pub const DEFAULT: Isolation = Isolation::Sandbox;

    pub fn as_str(self) -> &'static str {
        match self {
            Isolation::InProcess => "in_process",
            Isolation::Process => "process",
            Isolation::Sandbox => "sandbox",
            Isolation::Wasm => "wasm",
            Isolation::Container => "container",
            Isolation::Microvm => "microvm",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Isolation {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(match s {
            "in_process" => Isolation::InProcess,
            "process" | "subprocess" => Isolation::Process,
            "sandbox" | "isolated" => Isolation::Sandbox,
            "wasm" => Isolation::Wasm,
            "container" => Isolation::Container,
            "microvm" => Isolation::Microvm,
            other => {
                return Err(format!(
                    "unknown isolation level `{other}`: use process, sandbox, wasm, container or microvm"
                ));
            }
        })
    }
}
