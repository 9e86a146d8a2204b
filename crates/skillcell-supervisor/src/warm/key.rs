//! Which calls may share a template, and which can't be made warm at all.

use crate::program::Interpreter;
use crate::{Ready, Request};
use sha2::{Digest as _, Sha256};
use skillcell_core::{AuditLevel, Digest, Isolation};
use skillcell_manifest::Entry;
use std::os::unix::fs::MetadataExt;

/// Why a call is made cold, in words for `explain` and metrics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cold {
    /// Warm cells are not for calls of this kind.
    #[error("{0}")]
    Kind(&'static str),
    /// The skill can't be resumed.
    #[error("{0}")]
    Unfit(String),
    /// It will be warm soon.
    #[error("the skill is being loaded")]
    Loading,
    /// The cold call says what is wrong.
    #[error("the call can't be prepared")]
    Unprepared,
    #[error("no waiting cell could be had: {0}")]
    NoCell(String),
}

/// Everything that what is loaded depends on: the plan (with the bundle's digest in it), the values
/// of variables, the interpreter, and whose paths these are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key([u8; 32]);

pub(super) fn key(request: &Request, ready: &Ready, base: &Digest) -> Result<Key, Cold> {
    let plan = &ready.plan;
    let (Entry::PythonClass { .. }, Interpreter::Python(python)) =
        (&ready.bundle.manifest.entry, &ready.interpreter)
    else {
        return Err(Cold::Kind("only Python classes are loaded ahead"));
    };
    let kinds = [
        (
            plan.isolation != Isolation::Sandbox || plan.trusted,
            "only cells of level sandbox wait",
        ),
        (
            !ready.ceiling.warm.value,
            "the operator's policy says `warm: false`",
        ),
        (
            plan.audit == AuditLevel::Full,
            "a record of every system call begins with the start",
        ),
        (
            plan.network.inspects(),
            "inspected connections and secrets are made for one call",
        ),
        (
            request.deps.is_some(),
            "packages given with --deps can change at any time",
        ),
        (
            !request.allow_degraded.is_empty(),
            "something is allowed to be degraded",
        ),
    ];
    if let Some((_, why)) = kinds.iter().find(|(is, _)| *is) {
        return Err(Cold::Kind(why));
    }
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(base.as_str().as_bytes());
    add(ready.bundle.root.as_os_str().as_encoded_bytes());
    for (name, value) in &ready.env {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    let meta = std::fs::metadata(&python.executable).map_err(|_| Cold::Unprepared)?;
    add(python.executable.as_os_str().as_encoded_bytes());
    for n in [
        meta.dev(),
        meta.ino(),
        meta.ctime() as u64,
        meta.ctime_nsec() as u64,
    ] {
        add(&n.to_le_bytes());
    }
    Ok(Key(hash.finalize().into()))
}
