//! The build cell with namespaces: a fresh root that holds what an install needs, and nothing else.

use super::Build;
use crate::DepsError;
use crate::door::{Door, RESOLVER};
use crate::installer::Tool;
use crate::launch::{Paths, exec};
use crate::settings::SettingFile;
use skillcell_linux::cell::{Bind, BindAccess, CellSpec, Ids, NamespaceSpec, Node, Scratch, World};
use skillcell_linux::cgroup::CellCgroup;
use skillcell_linux::system;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const HOSTNAME: &str = "build";
const ENV: &str = "/env";
const HOME: &str = "/home/build";
const UV: &str = "/opt/uv/uv";
const INODES: u64 = 1 << 20;

impl Build<'_> {
    pub(super) fn sandbox(
        &self,
        cgroup: &Option<CellCgroup>,
        door: &Door,
    ) -> Result<CellSpec, DepsError> {
        let (uid, gid) = self.caller.outside_ids().ok_or(DepsError::NotConfinable(
            "the caller is root without the right to change ids, so the cell would be root outside",
        ))?;
        let ids = Ids { uid, gid };
        let mut readable = system::readable();
        let mut nodes = system::nodes();
        nodes.extend(system::synthetic(HOSTNAME, RESOLVER));
        for path in &self.shown {
            nodes.push(Node::Bind(self.bind(path, path, BindAccess::ReadOnly)?));
            readable.push(path.clone());
        }
        let mut uv = PathBuf::from(UV);
        if let Tool::Uv(program) = &self.tool {
            if system::is_system(program) {
                uv.clone_from(program);
            } else {
                nodes.push(Node::Bind(self.bind(program, &uv, BindAccess::ReadOnly)?));
                readable.push(uv.clone());
            }
        }
        nodes.push(Node::Dir(HOME.into()));
        readable.push(HOME.into());
        for SettingFile { place, content } in &self.settings.files {
            nodes.push(Node::File {
                at: place.path(Path::new(HOME)),
                content: content.clone(),
            });
        }
        let tmp = self.prepare_folders(self.caller.changes_ids.then_some(ids))?;
        nodes.push(Node::Bind(self.bind(
            &self.workspace.env(),
            Path::new(ENV),
            BindAccess::ReadWrite,
        )?));
        let tmp = Path::new(ENV).join("work").join(tmp);
        let world = World::Namespaces(NamespaceSpec {
            ids,
            nodes,
            scratch: Scratch {
                bytes: self.request.limits.scratch,
                inodes: INODES,
            },
            staging: Vec::new(),
            hostname: HOSTNAME.into(),
            network: door.space(),
            privileged_mounts: self.caller.clones_mounts,
        });
        let writable = [ENV, "/scratch", "/tmp", "/dev/shm"]
            .iter()
            .map(PathBuf::from)
            .collect();
        let paths = Paths {
            uv: &uv,
            env: Path::new(ENV),
            home: Path::new(HOME),
            tmp: &tmp,
        };
        let exec = exec(
            &self.tool,
            self.request,
            &self.settings,
            &paths,
            &door.variables,
        )?;
        self.spec(exec, world, readable, writable, cgroup, 0)
    }

    /// A mount of exactly what is there now.
    fn bind(&self, named: &Path, target: &Path, access: BindAccess) -> Result<Bind, DepsError> {
        let error = || DepsError::io("opening", named);
        let source = fs::canonicalize(named).map_err(error())?;
        let meta = fs::metadata(&source).map_err(error())?;
        let public = if meta.is_dir() { 0o005 } else { 0o004 };
        let private =
            access == BindAccess::ReadOnly && meta.uid() == 0 && meta.mode() & public != public;
        Ok(Bind {
            source,
            target: target.to_owned(),
            access,
            pin: Some((meta.dev(), meta.ino())),
            as_own: private && self.caller.changes_ids && self.caller.clones_mounts,
        })
    }
}
