//! The child's half of a namespace cell: from the clone to the payload's fork. Single-threaded, as
//! PID 1. Every failure is reported by step over the handshake and ends the process.

use super::payload::{self, Wiring};
use super::spec::{CellSpec, NamespaceSpec, NetworkSpace, Node, World};
use super::{init, proc_view};
use crate::error::{During, LinuxError, Result, Step};
use crate::fdpass::{self, Message};
use crate::host::CELL_ID;
use crate::mount::{self, Bind, NewRoot};
use crate::{caps, netns, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::path::Path;

/// What the child needs besides the spec.
pub(super) struct Inherited {
    pub(super) handshake: OwnedFd,
    pub(super) wiring: Wiring,
    pub(super) status: OwnedFd,
    pub(super) lifeline: OwnedFd,
    /// Mount trees that a privileged caller cloned before it gave up its rights, in node order.
    pub(super) trees: Vec<Option<OwnedFd>>,
    /// This binary, for init; cloned already where the caller is privileged.
    pub(super) binary: Bind,
    pub(super) binary_tree: Option<OwnedFd>,
    /// The null device, opened before anything could stop it.
    pub(super) null: OwnedFd,
    /// Of the call's cgroups.
    pub(super) doors: Vec<OwnedFd>,
}

/// Runs in the child; never returns to the supervisor's code.
pub(super) fn run(spec: &CellSpec, inherited: Inherited) -> ! {
    let handshake = match inherited.handshake.try_clone() {
        Ok(fd) => fd,
        Err(_) => sys::exit_now(1),
    };
    let error = match &spec.world {
        World::Namespaces(world) => set_up(spec, world, inherited),
        World::Bare { ids } => super::bare::set_up(spec, *ids, inherited),
    };
    // If even this fails the supervisor sees the handshake close, which is a refusal too.
    if let Err(error) = error {
        fdpass::send_failed(&handshake, &error).unwrap_or(());
    }
    sys::exit_now(1)
}

pub(super) fn await_go(handshake: &OwnedFd) -> Result<()> {
    match fdpass::receive(handshake)? {
        Some(Message::Go) => Ok(()),
        _ => sys::exit_now(1), // the supervisor is gone
    }
}

/// Nothing of the payload comes before this.
pub(super) fn await_start(handshake: &OwnedFd) -> Result<()> {
    match fdpass::receive(handshake)? {
        Some(Message::Start) => Ok(()),
        _ => sys::exit_now(1),
    }
}

fn set_up(spec: &CellSpec, world: &NamespaceSpec, inherited: Inherited) -> Result<()> {
    await_go(&inherited.handshake)?;
    crate::cgroup::join_through(&inherited.doors)?;
    take_ids(world)?;
    // Memory of this copy of the supervisor can't be read from the cell, whatever runs in it. Not
    // earlier: an ordinary supervisor could no longer write the maps, because root would own them.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .during(Step::Dumpable)?;

    // From a read-only mount, so that `/proc/1/exe` leads to nothing that can be written.
    let binary = match &inherited.binary_tree {
        Some(tree) => tree
            .try_clone()
            .map_err(|e| LinuxError::io(Step::Init, &e))?,
        None => mount::clone_tree(&inherited.binary, None)?,
    };
    let staging = build_root(world, &inherited)?;
    rustix::system::sethostname(world.hostname.as_bytes()).during(Step::Hostname)?;
    let network = open_network(&world.network)?;
    payload::limit(spec)?;
    caps::drop_all()?;
    let mut handed: Vec<BorrowedFd<'_>> = staging.iter().map(AsFd::as_fd).collect();
    handed.extend(network.iter().map(AsFd::as_fd));
    fdpass::send_ready(&inherited.handshake, &handed)?;
    drop((staging, network));
    await_start(&inherited.handshake)?;

    let pid = payload::fork(spec, &inherited.handshake, &inherited.wiring)?;
    spec.filter.install_quiet()?;
    init::execute(
        &binary,
        init::Mode::Namespace,
        pid,
        &inherited.status,
        &inherited.lifeline,
        &inherited.null,
    )
}

/// Loopback, and what the supervisor serves on it: DNS by UDP and TCP, then the doors.
fn open_network(space: &NetworkSpace) -> Result<Vec<OwnedFd>> {
    netns::loopback_up()?;
    let (udp, tcp) = netns::dns_sockets()?;
    let mut served = vec![udp, tcp];
    if let NetworkSpace::Brokered { ports } = space {
        netns::all_addresses_local()?;
        served.extend(netns::doors(ports)?);
    }
    Ok(served)
}

fn take_ids(world: &NamespaceSpec) -> Result<()> {
    if world.privileged_mounts || rustix::process::geteuid().as_raw() != CELL_ID {
        sys::clear_groups().during(Step::Ids)?;
    }
    sys::set_ids(CELL_ID, CELL_ID).during(Step::Ids)?;
    // Changing ids clears the flag that the supervisor's death is told by.
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong).during(Step::Ids)
}

/// Builds and enters the root. Gives the descriptors of scratch (first) and of each staging folder.
fn build_root(world: &NamespaceSpec, inherited: &Inherited) -> Result<Vec<OwnedFd>> {
    let root = NewRoot::mount()?;
    // First, so that granted files can be shown inside it.
    let staging = mount_scratch(&root, world)?;
    for (node, tree) in world.nodes.iter().zip(&inherited.trees) {
        match node {
            Node::Dir(path) => root.dir(path)?,
            Node::Symlink { at, to } => root.symlink(at, to)?,
            Node::File { at, content } => root.file(at, content)?,
            Node::Cover { at, with } => root.cover(with, at)?,
            Node::Bind(bind) => match tree {
                Some(tree) => root.attach(tree, &bind.target)?,
                None => root.attach(&mount::clone_tree(bind, None)?, &bind.target)?,
            },
        }
    }
    proc_view::mount(&root)?;
    root.enter()?;
    Ok(staging)
}

/// One tmpfs, so that one size holds for all of it: `/scratch` is its top, and the other writable
/// places are folders of it, shown a second time.
fn mount_scratch(root: &NewRoot, world: &NamespaceSpec) -> Result<Vec<OwnedFd>> {
    let top = Path::new("/scratch");
    let (bytes, inodes) = (
        world.scratch.bytes.to_string(),
        world.scratch.inodes.to_string(),
    );
    let options = [
        ("size", bytes.as_str()),
        ("nr_inodes", inodes.as_str()),
        ("mode", "0700"),
    ];
    let fs = root.mount_fs("tmpfs", &options, top, false, Step::Scratch)?;
    let mut handed = vec![fs];
    for (name, target) in [(".tmp", "/tmp"), (".shm", "/dev/shm")] {
        root.dir(&top.join(name))?;
        root.rebind(&top.join(name), Path::new(target))?;
    }
    for (index, target) in world.staging.iter().enumerate() {
        let folder = top.join(format!(".out-{index}"));
        root.dir(&folder)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        handed.push(
            rustix::fs::openat(root.fd(), mount::relative(&folder), flags, Mode::empty())
                .during_at(Step::Scratch, target)?,
        );
        root.rebind(&folder, target)?;
    }
    Ok(handed)
}
