//! The cell for hosts without user namespaces: Landlock, seccomp and rlimits around a process that
//! sees the host's paths, with a scratch folder of its own that the supervisor watches.

use crate::launch::{Facts, Launch, Layout, Network, OwnFolder, Prepared, StagedFolder};
use crate::sandbox::{output_folders, params, start, stdin};
use crate::{Backend, BackendError, limits};
use rustix::fs::{Mode, OFlags};
use skillcell_core::Isolation;
use skillcell_linux::cell::{CellSpec, Ids, World};
use skillcell_linux::host::{Caller, private_id, reachable};
use skillcell_linux::seccomp::{Filter, Profile, Sockets, UnixSockets};
use skillcell_linux::system;
use skillcell_linux::{DomainNetwork, DomainRules};
use skillcell_plan::{FileAccess, Plan};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct Process;

/// Scratch folders: this, the supervisor's process number, and the run.
const PREFIX: &str = "skillcell-";

impl Backend for Process {
    fn isolation(&self) -> Isolation {
        Isolation::Process
    }

    fn layout(&self, facts: &Facts<'_>) -> Result<Layout, BackendError> {
        let ids = ids()?;
        let folder = make_scratch(facts.run_id, ids)?;
        // A root caller's bundle may lie where the private id can't go: it gets a copy.
        let skill = if ids.is_some() && !reachable(facts.bundle) {
            let copy = folder.path().join("skill");
            copy_tree(facts.bundle, &copy).map_err(|source| BackendError::Scratch {
                path: copy.clone(),
                source,
            })?;
            copy
        } else {
            facts.bundle.to_owned()
        };
        for path in facts.deps.iter().chain(facts.runtime) {
            if ids.is_some() && !reachable(path) {
                return Err(BackendError::Unreachable { path: path.clone() });
            }
        }
        Ok(Layout {
            skill,
            deps: facts.deps.to_vec(),
            scratch: folder.path().join("data"),
            tmp: folder.path().join("tmp"),
            host_scratch: Some(folder),
        })
    }

    fn prepare(
        &self,
        plan: &Plan,
        facts: &Facts<'_>,
        layout: Layout,
        launch: Launch,
    ) -> Result<Prepared, BackendError> {
        if *facts.network != Network::Closed {
            return Err(BackendError::NoNetworkNamespace);
        }
        let ids = ids()?;
        let outputs = output_folders(plan);
        let mut readable = system::readable_on_host();
        readable.push(layout.skill.clone());
        readable.extend(facts.deps.iter().chain(facts.runtime).cloned());
        readable.extend(
            plan.files
                .iter()
                .filter(|g| g.access == FileAccess::Read)
                .map(|g| g.path.clone()),
        );

        let mut writable = vec![layout.scratch.clone(), layout.tmp.clone()];
        let mut host_staging = Vec::new();
        // Without mounts an output can't be staged under its own name: params were rewritten to these.
        for (index, _) in outputs.iter().enumerate() {
            let folder = staged_output(&layout, index);
            make_folder(&folder, ids)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            host_staging.push(
                rustix::fs::open(&folder, flags, Mode::empty()).map_err(|e| {
                    BackendError::Scratch {
                        path: folder.clone(),
                        source: e.into(),
                    }
                })?,
            );
            writable.push(folder);
        }
        let cgroup = limits::cgroup(plan, facts)?;
        let pinned_cpus = limits::pinned_cpus(plan, facts);
        let spec = CellSpec {
            start: start(&launch)?,
            world: World::Bare { ids },
            filter: Filter::compile(
                Profile {
                    sockets: Sockets::PairsOnly,
                    pin_affinity: pinned_cpus.is_some(),
                    watch: true,
                    record: limits::recorded(plan),
                    unix: UnixSockets::PairsOnly,
                    ownerless_memory: limits::ownerless_memory(facts),
                    count_forks: facts.host.cgroup.pids.is_none(),
                },
                facts.host.seccomp_notify,
            )?,
            domain: DomainRules {
                abi: facts.host.landlock_abi,
                read: readable,
                write: writable,
                devices: system::device_paths(),
                network: DomainNetwork::DenyTcp,
            },
            rlimits: limits::rlimits(plan, nproc(plan, facts, ids)),
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
            shown: Vec::new(),
            host_scratch: layout.host_scratch,
            host_staging,
        })
    }
}

/// Where the process level stages the nth output folder.
pub(crate) fn staged_output(layout: &Layout, index: usize) -> PathBuf {
    let top = layout
        .host_scratch
        .as_ref()
        .map(|f| f.path().to_owned())
        .unwrap_or_default();
    top.join(format!("out-{index}"))
}

/// RLIMIT_NPROC counts all processes of an id: alone for a private id, on top of what runs already
/// for the caller's own.
fn nproc(plan: &Plan, facts: &Facts<'_>, ids: Option<Ids>) -> Option<u64> {
    if facts.host.cgroup.pids.is_some() {
        return None;
    }
    let own = u64::from(plan.limits.processes + limits::own_processes());
    match ids {
        Some(_) => Some(own),
        // The supervisor's own, with the thread that it is about to start.
        None => {
            Some(own + 1 + skillcell_linux::procfs::tasks_of(rustix::process::geteuid().as_raw()))
        }
    }
}

fn ids() -> Result<Option<Ids>, BackendError> {
    let caller = Caller::current()?;
    if caller.changes_ids {
        let id = private_id();
        return Ok(Some(Ids { uid: id, gid: id }));
    }
    if caller.uid == 0 {
        Err(BackendError::RootWithoutIds)
    } else {
        Ok(None)
    }
}

fn make_scratch(run_id: &str, ids: Option<Ids>) -> Result<StagedFolder, BackendError> {
    let base = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if ids.is_none() && Path::new(&dir).is_absolute() && Path::new(&dir).is_dir() => {
            PathBuf::from(dir)
        }
        // Others can write there too: the folder's name has 64 random bits, and making it fails
        // where the name exists.
        _ => std::env::var_os("TMPDIR")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
            .unwrap_or_else(|| PathBuf::from("/tmp")),
    };
    let path = base.join(format!("{PREFIX}{}-{run_id}", std::process::id()));
    sweep(&base);
    // Fails if the name exists, whoever made it.
    fs::DirBuilder::new()
        .mode(if ids.is_some() { 0o711 } else { 0o700 })
        .create(&path)
        .map_err(|source| BackendError::Scratch {
            path: path.clone(),
            source,
        })?;
    let folder = StagedFolder(Arc::new(OwnFolder(path)));
    for name in ["data", "tmp"] {
        make_folder(&folder.path().join(name), ids)?;
    }
    Ok(folder)
}

/// Removes what supervisors left that were killed: folders of ours whose process is gone.
fn sweep(base: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| {
            n.strip_prefix(PREFIX)?
                .split('-')
                .next()?
                .parse::<u32>()
                .ok()
        });
        let Some(owner) = owner else { continue };
        let ours = entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == me);
        if ours && !Path::new("/proc").join(owner.to_string()).exists() {
            drop(OwnFolder(entry.path()));
        }
    }
}

fn make_folder(path: &Path, ids: Option<Ids>) -> Result<(), BackendError> {
    let error = |source| BackendError::Scratch {
        path: path.to_owned(),
        source,
    };
    fs::DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(error)?;
    if let Some(ids) = ids {
        std::os::unix::fs::lchown(path, Some(ids.uid), Some(ids.gid)).map_err(error)?;
    }
    Ok(())
}

/// Copies folders and regular files, readable by all; links are kept as links.
fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            let mode = if entry.metadata()?.mode() & 0o111 != 0 {
                0o755
            } else {
                0o644
            };
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Removes a tree whose folders may have lost their permissions.
pub(crate) fn force_remove(path: &Path) {
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap_or(());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(path).unwrap_or(());
}

/// Where each output of the host is staged, at the process level: single files by themselves, so
/// that what is read beside them stays where it is.
pub fn staged_outputs(plan: &Plan, layout: &Layout) -> Vec<(PathBuf, PathBuf)> {
    let mut moves = Vec::new();
    for (index, output) in output_folders(plan).into_iter().enumerate() {
        let staged = staged_output(layout, index);
        if output.files.is_empty() {
            moves.push((output.host, staged));
        } else {
            moves.extend(
                output
                    .files
                    .iter()
                    .map(|f| (output.host.join(f), staged.join(f))),
            );
        }
    }
    moves
}
