use rustix::fd::BorrowedFd;
use skillcell_core::{Denial, HostFacts, Isolation};
use skillcell_policy::{DenyRule, EgressRule};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A set of packages for one interpreter.
#[derive(Debug, Clone)]
pub struct DepsRequest<'a> {
    /// PEP 508, checked already: names of an index, no options, paths or URLs.
    pub requirements: &'a [String],
    pub python: &'a PythonFacts,
    /// The operator allows packages to run their own build code.
    pub source_builds: bool,
    /// `Process` builds without namespaces; every other level in a sandbox.
    pub isolation: Isolation,
    pub host: &'a HostFacts,
    pub limits: BuildLimits,
    /// Becomes readable when the caller wants the install to stop.
    pub interrupt: Option<BorrowedFd<'a>>,
    pub network: NetworkTerms<'a>,
}

/// What the operator says about whom an install may reach. The package index itself is the user's
/// own to name.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetworkTerms<'a> {
    /// Whom it may reach besides the index: where that redirects to, or keeps its files.
    pub hosts: &'a [EgressRule],
    /// Wins over everything.
    pub deny: &'a [DenyRule],
    /// The operator's; `None` is the host's.
    pub resolver: Option<SocketAddr>,
}

/// The interpreter that the packages are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFacts {
    /// The program itself, without symlinks.
    pub executable: PathBuf,
    /// The tree that it runs from, without symlinks.
    pub prefix: PathBuf,
    /// Such as (3, 11).
    pub version: (u8, u8),
}

/// What one install may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildLimits {
    pub timeout: Duration,
    pub memory: u64,
    pub processes: u32,
    pub scratch: u64,
    /// Of the environment and the downloads for it.
    pub disk: u64,
    pub files: u64,
}

impl Default for BuildLimits {
    fn default() -> Self {
        BuildLimits {
            timeout: Duration::from_secs(600),
            memory: 2 << 30,
            processes: 256,
            scratch: 2 << 30,
            disk: 16 << 30,
            files: 1_000_000,
        }
    }
}

/// Told what goes on. Text holds no control characters and no credentials.
pub trait Progress {
    /// A new step, such as `installing 3 packages with uv`.
    fn stage(&self, text: &str);
    /// A line of the installer's output.
    fn line(&self, text: &str);
    /// Something that the build cell was denied, although the install succeeded.
    fn denied(&self, denial: &Denial);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &str) {}
    fn line(&self, _: &str) {}
    fn denied(&self, _: &Denial) {}
}
