//! The payload's Landlock domain: on top of the mounts at `sandbox`, the whole file policy at
//! `process`. Entered by the payload alone, so that init and the supervisor are outside of it and
//! can't be signalled or inspected.

use crate::error::{LinuxError, Result, Step};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// What the domain allows. Everything else is denied.
#[derive(Debug, Clone)]
pub struct DomainRules {
    /// The host's ABI, as probed. Every right that it knows is handled, as a hard requirement.
    pub abi: u32,
    /// Read and execute, with everything below.
    pub read: Vec<PathBuf>,
    /// Read and write, with everything below.
    pub write: Vec<PathBuf>,
    /// Device nodes: read and write, nothing else.
    pub devices: Vec<PathBuf>,
    pub network: Network,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// A network namespace holds the network.
    Unrestricted,
    /// No TCP at all, from ABI 4 on.
    DenyTcp,
}

/// Enters the domain for good. `abi` 0 does nothing: the plan has found another mechanism by then.
pub(crate) fn enter(rules: &DomainRules) -> Result<()> {
    let Some(abi) = abi_of(rules.abi) else {
        return Ok(());
    };
    restrict(rules, abi).map_err(|error| match error {
        Failure::Path(path, errno) => LinuxError {
            step: Step::Landlock,
            path: Some(path),
            errno,
        },
        Failure::Rules => LinuxError::new(Step::Landlock, Errno::INVAL),
    })
}

fn abi_of(abi: u32) -> Option<ABI> {
    Some(match abi {
        0 => return None,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    })
}

enum Failure {
    Path(PathBuf, i32),
    Rules,
}

impl From<landlock::RulesetError> for Failure {
    fn from(_: landlock::RulesetError) -> Self {
        Failure::Rules
    }
}

fn restrict(rules: &DomainRules, abi: ABI) -> std::result::Result<(), Failure> {
    let all = AccessFs::from_all(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)?;
    if rules.network == Network::DenyTcp && abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut created = ruleset.create()?;
    let read_dir = AccessFs::from_read(abi);
    // IoctlDev stays out everywhere: no device that is granted needs one.
    let write_dir = all & !landlock::BitFlags::from(AccessFs::IoctlDev);
    for path in &rules.read {
        created = created.add_rule(PathBeneath::new(open(path)?, for_kind(path, read_dir)))?;
    }
    for path in &rules.write {
        created = created.add_rule(PathBeneath::new(open(path)?, for_kind(path, write_dir)))?;
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    for path in &rules.devices {
        created = created.add_rule(PathBeneath::new(open(path)?, device))?;
    }
    let status = created
        .set_compatibility(CompatLevel::HardRequirement)
        .restrict_self()?;
    match status.ruleset {
        landlock::RulesetStatus::FullyEnforced => Ok(()),
        _ => Err(Failure::Rules),
    }
}

fn open(path: &Path) -> std::result::Result<PathFd, Failure> {
    PathFd::new(path).map_err(|error| {
        let landlock::PathFdError::OpenCall { source, .. } = error else {
            return Failure::Rules;
        };
        Failure::Path(path.to_owned(), source.raw_os_error().unwrap_or(libc::EIO))
    })
}

/// Rights for folders can't be granted on a file: the kernel rejects the rule.
fn for_kind(path: &Path, rights: landlock::BitFlags<AccessFs>) -> landlock::BitFlags<AccessFs> {
    if path.is_dir() {
        rights
    } else {
        rights & AccessFs::from_file(ABI::V6)
    }
}
