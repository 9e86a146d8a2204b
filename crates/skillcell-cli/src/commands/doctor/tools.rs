//! Programs that skills and installs need.

use serde::Serialize;
use skillcell_supervisor::{Python, find_program};
use std::path::PathBuf;

#[derive(Serialize)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) path: Option<PathBuf>,
    pub(super) version: Option<String>,
    pub(super) used_for: &'static str,
}

pub(super) fn tools() -> Vec<Tool> {
    let python = Python::find(None, None).ok();
    let version = python
        .as_ref()
        .map(|p| format!("{}.{}", p.version.0, p.version.1));
    let pip = python.as_ref().and_then(pip_of);
    let tool = |name, used_for| Tool {
        name,
        path: find_program(name),
        version: None,
        used_for,
    };
    vec![
        Tool {
            name: "python3",
            path: python.map(|p| p.executable),
            version,
            used_for: "Python skills",
        },
        tool("node", "Node skills"),
        tool("bash", "shell skills"),
        tool("uv", "installing packages"),
        Tool {
            name: "pip",
            path: pip,
            version: None,
            used_for: "installing packages where uv is absent",
        },
    ]
}

/// The interpreter's own pip, or the one that comes with it.
fn pip_of(python: &Python) -> Option<PathBuf> {
    let (major, minor) = python.version;
    let bundled = format!("lib/python{major}.{minor}/ensurepip/_bundled");
    python
        .site_packages()
        .into_iter()
        .map(|folder| folder.join("pip"))
        .chain([python.prefix.join(bundled)])
        .find(|folder| folder.is_dir())
}
