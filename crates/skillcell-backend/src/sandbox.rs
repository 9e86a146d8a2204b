//! The default cell: namespaces, a fresh root, Landlock, seccomp, cgroups.

use crate::launch::{Begin, Facts, Launch, Layout, Network, OutputFolder, Params, Prepared};
use crate::{Backend, BackendError, limits};
use rustix::fd::OwnedFd;
use skillcell_core::Isolation;
use skillcell_linux::DomainNetwork;
use skillcell_linux::DomainRules;
use skillcell_linux::cell::{
    Bind, BindAccess, CellSpec, Exec, Ids, NamespaceSpec, NetworkSpace, Node, Scratch, Start, World,
};
use skillcell_linux::host::Caller;
use skillcell_linux::seccomp::{Filter, Profile, Sockets, UnixSockets};
use skillcell_linux::system;
use skillcell_plan::{FileAccess, PathKind, Plan};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub const SKILL: &str = "/skill";
pub const SCRATCH: &str = "/scratch";
/// Python packages: `/deps/0`, `/deps/1`, …
pub const DEPS: &str = "/deps";

/// Root certificates, where the call has some of its own.
pub const TRUST_BUNDLE: &str = "/etc/skillcell/ca.pem";
/// Most ports that rules may name: each is a listener whose descriptor the supervisor holds.
pub const MAX_PORTS: usize = 128;

const HOSTNAME: &str = "cell";
/// Entries of a readable folder that are shown one by one when a file in it is written.
const MAX_ENTRIES: usize = 512;

pub(crate) struct Sandbox;

impl Backend for Sandbox {
    fn isolation(&self) -> Isolation {
        Isolation::Sandbox
    }

    fn layout(&self, facts: &Facts<'_>) -> Result<Layout, BackendError> {
        Ok(Layout {
            skill: SKILL.into(),
            deps: (0..facts.deps.len())
                .map(|n| Path::new(DEPS).join(n.to_string()))
                .collect(),
            scratch: SCRATCH.into(),
            tmp: "/tmp".into(),
            host_scratch: None,
        })
    }

    fn prepare(
        &self,
        plan: &Plan,
        facts: &Facts<'_>,
        layout: Layout,
        launch: Launch,
    ) -> Result<Prepared, BackendError> {
        let caller = Caller::current()?;
        let (uid, gid) = caller.outside_ids().ok_or(BackendError::RootWithoutIds)?;
        let outputs = output_folders(plan);
        let own = caller.changes_ids && caller.clones_mounts;

        let mut nodes = system::nodes();
        nodes.extend(system::synthetic(HOSTNAME, resolver(facts.network)));
        for tree in facts.runtime {
            if !system::is_system(tree) {
                nodes.push(system::read_only(tree));
            }
        }
        nodes.push(Node::Bind(pinned(facts.bundle, &layout.skill, own)?));
        for (source, target) in facts.deps.iter().zip(&layout.deps) {
            nodes.push(Node::Bind(pinned(source, target, own)?));
        }
        nodes.extend(trust_nodes(facts.network));
        let mut shown = Vec::new();
        for grant in plan.files.iter().filter(|g| g.access == FileAccess::Read) {
            for path in shown_paths(&grant.path, grant.kind, &outputs)? {
                // What was granted can be read, although the cell's id isn't the caller's.
                let bind = pinned(&path, &path, own)?;
                nodes.push(Node::Bind(Bind {
                    as_own: own,
                    ..bind
                }));
                shown.push(path);
            }
        }

        let mut writable: Vec<PathBuf> = [SCRATCH, "/tmp", "/dev/shm"]
            .iter()
            .map(PathBuf::from)
            .collect();
        writable.extend(outputs.iter().map(|o| o.host.clone()));
        let cgroup = limits::cgroup(plan, facts)?;
        let pinned_cpus = limits::pinned_cpus(plan, facts);
        let nproc = facts
            .host
            .cgroup
            .pids
            .is_none()
            .then(|| u64::from(plan.limits.processes + limits::own_processes()));
        let folders = plan
            .files
            .iter()
            .any(|g| g.access == FileAccess::Read && g.kind == PathKind::Directory);
        let unix = if folders {
            UnixSockets::PairsOnly
        } else {
            UnixSockets::Named
        };
        let spec = CellSpec {
            start: start(&launch)?,
            world: World::Namespaces(NamespaceSpec {
                ids: Ids { uid, gid },
                nodes,
                scratch: Scratch {
                    bytes: plan.limits.scratch.bytes(),
                    inodes: plan.limits.scratch_inodes,
                },
                staging: outputs.iter().map(|o| o.host.clone()).collect(),
                hostname: HOSTNAME.into(),
                network: network_space(facts.network)?,
                privileged_mounts: caller.clones_mounts,
            }),
            filter: Filter::compile(
                Profile {
                    sockets: Sockets::PrivateNamespace,
                    pin_affinity: pinned_cpus.is_some(),
                    watch: true,
                    record: limits::recorded(plan),
                    unix,
                    ownerless_memory: limits::ownerless_memory(facts),
                    count_forks: nproc.is_some(),
                },
                facts.host.seccomp_notify,
            )?,
            domain: DomainRules {
                abi: facts.host.landlock_abi,
                // The new root holds nothing that may not be read; what Landlock adds here is that
                // nothing but the listed places is ever written, whatever a mount says.
                read: vec!["/".into()],
                write: writable,
                devices: system::device_paths(),
                network: DomainNetwork::Unrestricted,
            },
            rlimits: limits::rlimits(plan, nproc),
            uncommon_number: launch.is_template(),
            cpus: pinned_cpus,
            stdin: stdin(&launch)?,
            params: params(&launch)?,
            cgroup: cgroup
                .as_ref()
                .map(|c| c.birthplace())
                .transpose()?
                .flatten(),
        };
        Ok(Prepared {
            spec,
            cgroup,
            outputs,
            shown,
            host_scratch: None,
            host_staging: Vec::new(),
        })
    }
}

/// Where nothing can be reached the stub answers at once, or the packet was lost for good; behind a
/// broker a burst of questions may need a second try.
fn resolver(network: &Network) -> &'static str {
    match network {
        Network::Closed => "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
        Network::Brokered { .. } => "nameserver 127.0.0.1\noptions timeout:2 attempts:4\n",
    }
}

fn network_space(network: &Network) -> Result<NetworkSpace, BackendError> {
    match network {
        Network::Closed => Ok(NetworkSpace::Private),
        Network::Brokered { ports, .. } if ports.len() > MAX_PORTS => {
            Err(BackendError::TooManyPorts {
                count: ports.len(),
                max: MAX_PORTS,
            })
        }
        Network::Brokered { ports, .. } => Ok(NetworkSpace::Brokered {
            ports: ports.clone(),
        }),
    }
}

/// The call's root certificates at their own place, and in every store that clients look into.
fn trust_nodes(network: &Network) -> Vec<Node> {
    let Network::Brokered {
        trust: Some(trust), ..
    } = network
    else {
        return Vec::new();
    };
    let file = Node::File {
        at: TRUST_BUNDLE.into(),
        content: trust.bundle.clone(),
    };
    let covers = trust.stores.iter().map(|store| Node::Cover {
        at: store.clone(),
        with: TRUST_BUNDLE.into(),
    });
    std::iter::once(file).chain(covers).collect()
}

/// The folders that hold granted outputs, each once.
pub(crate) fn output_folders(plan: &Plan) -> Vec<OutputFolder> {
    let mut folders: Vec<OutputFolder> = Vec::new();
    for grant in plan.files.iter().filter(|g| g.access == FileAccess::Write) {
        if grant.kind == PathKind::Directory {
            match folders.iter_mut().find(|f| f.host == grant.path) {
                Some(folder) => folder.files.clear(),
                None => folders.push(OutputFolder {
                    host: grant.path.clone(),
                    files: Vec::new(),
                }),
            }
            continue;
        }
        let (Some(parent), Some(name)) = (grant.path.parent(), grant.path.file_name()) else {
            continue;
        };
        match folders.iter_mut().find(|f| f.host == parent) {
            // An empty list stands for the whole folder, which has the file already.
            Some(folder) if folder.files.is_empty() => {}
            Some(folder) => folder.files.push(name.to_owned()),
            None => folders.push(OutputFolder {
                host: parent.to_owned(),
                files: vec![name.to_owned()],
            }),
        }
    }
    // Outer folders first, so that inner ones are mounted inside them.
    folders.sort_by(|a, b| a.host.cmp(&b.host));
    folders
}

/// A readable folder that is also written into is shown entry by entry, inside the staging folder.
fn shown_paths(
    path: &Path,
    kind: PathKind,
    outputs: &[OutputFolder],
) -> Result<Vec<PathBuf>, BackendError> {
    if kind != PathKind::Directory || !outputs.iter().any(|o| o.host.starts_with(path)) {
        return Ok(vec![path.to_owned()]);
    }
    let error = |source| BackendError::Stat {
        path: path.to_owned(),
        source,
    };
    let mut shown = Vec::new();
    for entry in std::fs::read_dir(path).map_err(error)? {
        let entry = entry.map_err(error)?;
        let kind = entry.file_type().map_err(error)?;
        if kind.is_symlink() {
            continue; // it may lead anywhere; what it leads to wasn't granted
        }
        let child = entry.path();
        let granted_for_writing = outputs.iter().any(|o| {
            o.host == child
                || (o.host == path
                    && o.files
                        .iter()
                        .any(|f| Some(f.as_os_str()) == child.file_name()))
        });
        if granted_for_writing {
            continue;
        }
        if kind.is_dir() {
            shown.extend(shown_paths(&child, PathKind::Directory, outputs)?);
        } else {
            shown.push(child);
        }
    }
    if shown.len() > MAX_ENTRIES {
        return Err(BackendError::CrowdedFolder {
            path: path.to_owned(),
            count: shown.len(),
            max: MAX_ENTRIES,
        });
    }
    Ok(shown)
}

/// A bind of exactly the object that is there now.
fn pinned(source: &Path, target: &Path, as_own: bool) -> Result<Bind, BackendError> {
    let meta = std::fs::symlink_metadata(source).map_err(|e| BackendError::Stat {
        path: source.to_owned(),
        source: e,
    })?;
    Ok(Bind {
        source: source.to_owned(),
        target: target.to_owned(),
        access: BindAccess::ReadOnly,
        pin: Some((meta.dev(), meta.ino())),
        // Public files need no second look at who owns them.
        as_own: as_own && needs_owner(&meta),
    })
}

/// Whether others may not read this, so that a root caller's cell could not either.
fn needs_owner(meta: &std::fs::Metadata) -> bool {
    let needed = if meta.is_dir() { 0o005 } else { 0o004 };
    meta.uid() == 0 && meta.mode() & needed != needed
}

pub(crate) fn start(launch: &Launch) -> Result<Start, BackendError> {
    let program = match &launch.begin {
        Begin::Program(program) => program,
        Begin::Resume { stage, cwd } => {
            return Ok(Start::Resume {
                stage: Rc::clone(stage),
                cwd: cwd.clone(),
            });
        }
    };
    Ok(Start::Execute(Exec {
        program: CString::new(program.program.as_os_str().as_bytes())
            .map_err(|_| BackendError::Nul)?,
        argv: program.argv.clone(),
        env: program.env.clone(),
        cwd: program.cwd.clone(),
    }))
}

pub(crate) fn params(launch: &Launch) -> Result<OwnedFd, BackendError> {
    match &launch.params {
        Params::Known(bytes) => Ok(skillcell_linux::sealed_memfd("params", bytes)?),
        Params::Later(pipe) => pipe.try_clone().map_err(|_| BackendError::Pipe),
    }
}

pub(crate) fn stdin(launch: &Launch) -> Result<Option<OwnedFd>, BackendError> {
    Ok(match &launch.stdin {
        Some(bytes) => Some(skillcell_linux::sealed_memfd("stdin", bytes)?),
        None => None,
    })
}
