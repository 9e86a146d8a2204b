//! The cell that an installer runs in. It sees the system, the interpreter and the user's index
//! settings, may write only the new environment, and reaches only the package index.

mod bare;
mod sandbox;

use crate::default_index::DefaultIndex;
use crate::door::Door;
use crate::ensure::Installer;
use crate::installer::Tool;
use crate::named_files::named_files;
use crate::reach::Reach;
use crate::run::{Finished, run};
use crate::settings::Settings;
use crate::sources::Sources;
use crate::workspace::Workspace;
use crate::{DepsError, DepsRequest, Progress, diagnose};
use skillcell_core::Isolation;
use skillcell_linux::cell::{CellSpec, Exec, Exit, Ids, Resource, Start, World};
use skillcell_linux::cgroup::{CellCgroup, CgroupLimits};
use skillcell_linux::host::{Caller, reachable};
use skillcell_linux::seccomp::{Filter, OwnerlessMemory, Profile, Recorded, Sockets, UnixSockets};
use skillcell_linux::{DomainNetwork, DomainRules, system};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct CellInstaller;

/// What both kinds of build cell are made from.
struct Build<'a> {
    request: &'a DepsRequest<'a>,
    workspace: &'a Workspace,
    caller: Caller,
    settings: Settings,
    tool: Tool,
    /// Host paths that the installer needs besides the system, each shown at its own path.
    shown: Vec<PathBuf>,
}

impl Installer for CellInstaller {
    fn install(
        &self,
        request: &DepsRequest<'_>,
        to: &Workspace,
        progress: &dyn Progress,
    ) -> Result<&'static str, DepsError> {
        let caller = Caller::current()?;
        let lookup = |name: &str| std::env::var(name).ok();
        let bare = request.isolation == Isolation::Process;
        // Without mounts of its own, the cell of a root caller sees only what everybody may.
        let others = bare && caller.changes_ids;
        let tool = Tool::find(request.python, &lookup, &|path| !others || reachable(path)).ok_or(
            DepsError::NoInstaller {
                version: request.python.version,
            },
        )?;
        let mut settings = Settings::gather(&lookup).of_interpreter(&request.python.prefix);
        if tool.name() == "uv" {
            settings.translate_for_uv();
        }
        let reach = Reach::of(
            &Sources::of(&settings, &tool)?,
            &|| DefaultIndex::find(request.python, &tool),
            request.network.hosts,
        )?;
        if bare && !reach.is_empty() {
            return Err(DepsError::NetworkNotHeld {
                hosts: reach.hosts(),
            });
        }
        let mut shown = interpreter(request)?;
        shown.extend(named_files(&settings));
        if let Some(path) = shown
            .iter()
            .chain([&to.env()])
            .find(|path| others && !reachable(parent(path)))
        {
            return Err(DepsError::Unreachable { path: path.clone() });
        }
        let count = request.requirements.len();
        let packages = if count == 1 {
            "1 requirement".to_owned()
        } else {
            format!("{count} requirements")
        };
        progress.stage(&format!("installing {packages} with {}", tool.name()));
        let build = Build {
            request,
            workspace: to,
            caller,
            settings,
            tool,
            shown,
        };
        let cgroup = build.cgroup()?;
        let (spec, door) = if bare {
            (build.without_namespaces(&cgroup)?, None)
        } else {
            let door = Door::make(&reach, &request.network, request.limits.disk)?;
            (build.sandbox(&cgroup, &door)?, Some(door))
        };
        let finished = run(&spec, cgroup.as_ref(), request, &to.env(), door, progress)?;
        let Finished {
            exit,
            output,
            denials,
        } = finished;
        if exit != Exit::Code(0) {
            return Err(diagnose::failure(request, exit, output, denials));
        }
        for denial in &denials {
            progress.denied(denial);
        }
        Ok(build.tool.name())
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The interpreter's tree, and the program where it lies elsewhere.
fn interpreter(request: &DepsRequest<'_>) -> Result<Vec<PathBuf>, DepsError> {
    let canonical = |path: &Path| fs::canonicalize(path).map_err(DepsError::io("opening", path));
    let (prefix, program) = (
        canonical(&request.python.prefix)?,
        canonical(&request.python.executable)?,
    );
    let mut trees = Vec::new();
    if !system::is_system(&prefix) && prefix.parent().is_some() {
        trees.push(prefix.clone());
    }
    if !system::is_system(&program) && !program.starts_with(&prefix) {
        trees.push(program);
    }
    Ok(trees)
}

impl Build<'_> {
    fn spec(
        &self,
        exec: Exec,
        world: World,
        read: Vec<PathBuf>,
        write: Vec<PathBuf>,
        cgroup: &Option<CellCgroup>,
        running: u64,
    ) -> Result<CellSpec, DepsError> {
        let (sockets, network) = match &world {
            World::Namespaces(_) => (Sockets::PrivateNamespace, DomainNetwork::Unrestricted),
            World::Bare { .. } => (Sockets::InstallerPairsOnly, DomainNetwork::DenyTcp),
        };
        let limits = self.request.limits;
        let mut rlimits = vec![
            (Resource::Core, 0),
            (Resource::OpenFiles, 4096),
            (Resource::FileSize, limits.disk),
        ];
        if self.request.host.cgroup.pids.is_none() {
            rlimits.push((
                Resource::Processes,
                running + u64::from(limits.processes) + 1,
            ));
        }
        Ok(CellSpec {
            start: Start::Execute(exec),
            world,
            // Nobody reads what is denied here, so it just fails.
            filter: Filter::compile(
                Profile {
                    sockets,
                    // Folders of the host are shown, and may hold sockets.
                    unix: UnixSockets::PairsOnly,
                    ownerless_memory: OwnerlessMemory::Counted,
                    count_forks: false,
                    pin_affinity: false,
                    watch: false,
                    record: Recorded::Denials,
                },
                false,
            )?,
            domain: DomainRules {
                abi: self.request.host.landlock_abi,
                read,
                write,
                devices: system::device_paths(),
                network,
            },
            rlimits,
            uncommon_number: false,
            cpus: None,
            stdin: None,
            params: skillcell_linux::sealed_memfd("params", b"")?,
            cgroup: cgroup
                .as_ref()
                .map(CellCgroup::birthplace)
                .transpose()?
                .flatten(),
        })
    }

    fn cgroup(&self) -> Result<Option<CellCgroup>, DepsError> {
        let (facts, limits) = (&self.request.host.cgroup, self.request.limits);
        if facts.parents.is_empty() {
            return Ok(None);
        }
        let held = CgroupLimits {
            memory_bytes: facts.memory.map(|_| limits.memory),
            processes: facts.pids.map(|_| u64::from(limits.processes) + 1),
            cpu_millis: None,
        };
        Ok(Some(CellCgroup::create(facts, "build", held)?))
    }

    /// Makes what the installer expects to be there, and gives all of it to the cell's id. Gives the
    /// name of the folder for temporary files, on disk: downloads can be larger than memory.
    fn prepare_folders(&self, ids: Option<Ids>) -> Result<&'static str, DepsError> {
        let work = self.workspace.work();
        for name in ["tmp", "cache"] {
            let folder = work.join(name);
            crate::cache::make(&folder, 0o700)?;
            if let Some(ids) = ids {
                std::os::unix::fs::lchown(&folder, Some(ids.uid), Some(ids.gid))
                    .map_err(DepsError::io("preparing", &folder))?;
            }
        }
        match ids {
            Some(ids) => self.workspace.give_to(ids).map(|()| "tmp"),
            None => Ok("tmp"),
        }
    }
}
