use serde::{Deserialize, Serialize};
use skillcell_core::{AuditLevel, ByteSize, Control, EnvName, Isolation, Timeout};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a caller asks for, as it was typed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    pub caller: Caller,
}

/// Where a request comes from, if not from this process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Caller {
    /// Its variables, in place of this process's own.
    pub variables: Option<BTreeMap<String, String>>,
    /// What its relative paths begin at.
    pub folder: Option<PathBuf>,
}

impl Request {
    /// `--python`, as this process finds it. A bare name is looked up, not a path.
    pub(crate) fn python(&self) -> Option<PathBuf> {
        let python = self.python.as_ref()?;
        Some(match python.components().count() {
            1 => python.clone(),
            _ => self.caller.path(python),
        })
    }

    pub(crate) fn deps(&self) -> Option<PathBuf> {
        self.deps.as_ref().map(|folder| self.caller.path(folder))
    }
}

impl Caller {
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match &self.variables {
            Some(variables) => variables.get(name).cloned(),
            None => std::env::var(name).ok(),
        }
    }

    /// A path as this process finds it.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        match &self.folder {
            Some(folder) => folder.join(path),
            None => path.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
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
