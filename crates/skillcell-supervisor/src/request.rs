use skillcell_core::{AuditLevel, ByteSize, Control, EnvName, Isolation, Timeout};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What a caller asks for, as it was typed.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// A path or a `category/name`.
    pub skill: String,
    /// A script of an Agent Skill, by its path in the bundle.
    pub entry: Option<String>,
    /// Arguments for the script.
    pub args: Vec<String>,
    pub params: ParamsSource,
    pub env: Vec<EnvArg>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub timeout: Option<Timeout>,
    pub memory: Option<ByteSize>,
    pub isolation: Option<Isolation>,
    pub trust: bool,
    pub allow_degraded: BTreeSet<Control>,
    /// `--policy`, before the user's and the system's.
    pub policy: Vec<PathBuf>,
    pub python: Option<PathBuf>,
    /// A ready virtualenv or folder of packages; nothing is installed then.
    pub deps: Option<PathBuf>,
    /// What to record at least.
    pub audit: Option<AuditLevel>,
    /// On whose behalf, for the record.
    pub actor: Option<String>,
    pub request_id: Option<String>,
    /// A call that succeeded in spite of denials counts as denied.
    pub strict_denials: bool,
}

#[derive(Debug, Clone, Default)]
pub enum ParamsSource {
    #[default]
    None,
    Text(String),
    File(PathBuf),
    Stdin,
    /// What somebody else has read from the caller's standard input.
    StdinWas(Vec<u8>),
}

/// `--env NAME` takes the caller's value, `--env NAME=VALUE` gives one.
#[derive(Debug, Clone)]
pub struct EnvArg {
    pub name: EnvName,
    pub value: Option<String>,
}

/// How a person is told about work that takes long, and about things that they should know.
pub trait Interaction {
    fn stage(&self, text: &str);
    fn line(&self, text: &str);
    fn warn(&self, text: &str);
    /// What the skill has just printed. The cell waits meanwhile, so this must not.
    fn output(&self, _: Printed, _: &[u8]) {}
}

/// Where a skill printed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    Stdout,
    Stderr,
}

/// Tells nobody anything.
pub struct Quiet;

impl Interaction for Quiet {
    fn stage(&self, _: &str) {}
    fn line(&self, _: &str) {}
    fn warn(&self, _: &str) {}
}
