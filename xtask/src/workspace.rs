//! What cargo says about this workspace.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Where things are. Known without cargo, so that a built xtask serves users who have none.
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Places {
    pub(crate) fn here() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let exe = std::env::current_exe().context("could not find this executable")?;
        // TARGET/PROFILE/xtask
        let target = exe.parent().and_then(Path::parent);
        Ok(Self {
            root: root.context("xtask is not in a workspace")?.to_path_buf(),
            target: target
                .context("xtask is not in a target folder")?
                .to_path_buf(),
        })
    }
}

/// The parts of `cargo metadata` that the chores need.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    /// Whether it is a part of the product (under `crates/`), rather than a tool or a test suite.
    pub(crate) product: bool,
    /// Everything that the package is built with, dev-dependencies left out: tests may reach
    /// across layers, the product may not.
    pub(crate) uses: Vec<String>,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .no_deps()
            .exec()
            .context("could not read `cargo metadata`")?;
        let crates = metadata.workspace_root.join("crates");
        let packages = metadata
            .packages
            .iter()
            .map(|package| {
                let manifest = &package.manifest_path;
                let dir = manifest.parent().unwrap_or(manifest);
                Package {
                    name: package.name.to_string(),
                    dir: dir.to_path_buf().into_std_path_buf(),
                    product: dir.starts_with(&crates),
                    uses: package
                        .dependencies
                        .iter()
                        .filter(|dependency| dependency.kind != DependencyKind::Development)
                        .map(|dependency| dependency.name.clone())
                        .collect(),
                }
            })
            .collect();
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            packages,
        })
    }
}
