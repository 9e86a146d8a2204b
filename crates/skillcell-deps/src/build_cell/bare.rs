//! The build cell without namespaces: the host's paths, held by Landlock, and no sockets at all.

use super::{Build, parent};
use crate::DepsError;
use crate::installer::Tool;
use crate::launch::{Paths, exec};
use crate::settings::{Place, SettingFile};
use skillcell_linux::cell::{CellSpec, Ids, World};
use skillcell_linux::cgroup::CellCgroup;
use skillcell_linux::host::private_id;
use skillcell_linux::{procfs, system};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The system's index settings, and the name of the distribution: pip fails where that is there but
/// can't be read.
const HOST_ETC: &[&str] = &[
    "/etc/pip.conf",
    "/etc/xdg/pip",
    "/etc/uv",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/debian_version",
    "/etc/redhat-release",
    "/etc/system-release",
];

impl Build<'_> {
    pub(super) fn without_namespaces(
        &self,
        cgroup: &Option<CellCgroup>,
    ) -> Result<CellSpec, DepsError> {
        if self.request.host.landlock_abi == 0 {
            return Err(DepsError::NotConfinable(
                "without namespaces and without Landlock nothing would hold the installer",
            ));
        }
        let ids = match (self.caller.changes_ids, self.caller.uid) {
            (true, _) => Some(Ids {
                uid: private_id(),
                gid: private_id(),
            }),
            (false, 0) => {
                return Err(DepsError::NotConfinable(
                    "the caller is root without the right to change ids",
                ));
            }
            (false, _) => None,
        };
        let env = self.workspace.env();
        let home = self.workspace.work().join("home");
        for SettingFile { place, content } in &self.settings.files {
            if !matches!(place, Place::System(_)) {
                let path = place.path(&home);
                fs::create_dir_all(parent(&path))
                    .map_err(DepsError::io("making", parent(&path)))?;
                fs::write(&path, content).map_err(DepsError::io("writing", &path))?;
                open_to_all(&path, &self.workspace.work());
            }
        }
        let tmp = self.workspace.work().join(self.prepare_folders(ids)?);
        let mut readable = system::readable_on_host();
        readable.extend(HOST_ETC.iter().map(PathBuf::from).filter(|p| p.exists()));
        readable.extend(self.shown.iter().cloned());
        let uv = match &self.tool {
            Tool::Uv(program) => program.clone(),
            _ => PathBuf::new(),
        };
        if !uv.as_os_str().is_empty() {
            readable.push(uv.clone());
        }
        let paths = Paths {
            uv: &uv,
            env: &env,
            home: &home,
            tmp: &tmp,
        };
        let exec = exec(&self.tool, self.request, &self.settings, &paths, &[])?;
        let running = if ids.is_none() {
            procfs::tasks_of(self.caller.uid)
        } else {
            0
        };
        self.spec(
            exec,
            World::Bare { ids },
            readable,
            vec![env],
            cgroup,
            running,
        )
    }
}

/// Lets the cell's own id read a copied setting; the folder above is closed to everybody else.
fn open_to_all(file: &Path, top: &Path) {
    for (path, mode) in file
        .ancestors()
        .take_while(|p| *p != top)
        .zip(std::iter::once(0o644).chain(std::iter::repeat(0o755)))
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap_or(());
    }
}
