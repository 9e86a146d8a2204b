//! The child's half of a cell without namespaces: a monitor that adopts every orphan of the skill
//! and kills them all at the end. What it confines is Landlock, seccomp and rlimits.

use super::inside::{self, Inherited};
use super::payload;
use super::spec::{CellSpec, Ids};
use crate::error::{During, LinuxError, Result, Step};
use crate::fdpass;
use crate::{caps, sys};

pub(super) fn set_up(spec: &CellSpec, ids: Option<Ids>, inherited: Inherited) -> Result<()> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .during(Step::Dumpable)?;
    inside::await_go(&inherited.handshake)?;
    crate::cgroup::join_through(&inherited.doors)?;
    sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1).during(Step::Subreaper)?;
    let binary = match &inherited.binary_tree {
        Some(tree) => tree
            .try_clone()
            .map_err(|e| LinuxError::io(Step::Init, &e))?,
        None => crate::mount::open_exact(&inherited.binary.source)?,
    };
    payload::limit(spec)?;
    caps::drop_bounding()?;
    if let Some(ids) = ids {
        sys::clear_groups().during(Step::Ids)?;
        sys::set_ids(ids.uid, ids.gid).during(Step::Ids)?;
    }
    caps::drop_all()?;
    fdpass::send_ready(&inherited.handshake, &[])?;
    inside::await_start(&inherited.handshake)?;
    let pid = payload::fork(spec, &inherited.handshake, &inherited.wiring)?;
    let failed = spec.filter.install_quiet().and_then(|()| {
        super::init::execute(
            &binary,
            super::init::Mode::Bare,
            pid,
            &inherited.status,
            &inherited.lifeline,
            &inherited.null,
        )
    });
    // Nobody else would: the payload has started.
    super::init::kill_descendants();
    failed
}
