//! What the installer is started with: its command line and its whole environment.

use crate::installer::Tool;
use crate::settings::{Place, Settings};
use crate::{DepsError, DepsRequest};
use skillcell_linux::cell::Exec;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where things are, as the installer sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths<'a> {
    pub(crate) uv: &'a Path,
    /// The new environment.
    pub(crate) env: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) tmp: &'a Path,
}

pub(crate) fn exec(
    tool: &Tool,
    request: &DepsRequest<'_>,
    settings: &Settings,
    paths: &Paths<'_>,
    network: &[(&'static str, String)],
) -> Result<Exec, DepsError> {
    let Paths { uv, env, home, tmp } = *paths;
    let no_index = settings.uv_no_index() && tool.name() == "uv";
    let (program, args) = tool.command(request, uv, &env.join("site"), no_index);
    let mut variables: BTreeMap<String, String> = settings.env.clone();
    variables.remove("UV_NO_INDEX");
    let cache = env.join("work/cache");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    for (name, value) in network {
        variables.insert((*name).to_owned(), value.clone());
    }
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME", text(home)),
        ("XDG_CONFIG_HOME", text(&home.join(".config"))),
        ("XDG_CACHE_HOME", text(&cache)),
        ("TMPDIR", text(tmp)),
        ("LANG", "C.UTF-8".to_owned()),
        ("NO_COLOR", "1".to_owned()),
        ("UV_CACHE_DIR", text(&cache.join("uv"))),
        // From the cache, which goes away: no second copy on disk.
        ("UV_LINK_MODE", "hardlink".to_owned()),
        ("UV_PYTHON_DOWNLOADS", "never".to_owned()),
        // The user's defaults for other installs don't fit this one.
        ("PIP_USER", "0".to_owned()),
        ("PIP_REQUIRE_VIRTUALENV", "0".to_owned()),
        ("PIP_KEYRING_PROVIDER", "disabled".to_owned()),
        ("UV_KEYRING_PROVIDER", "disabled".to_owned()),
    ] {
        variables.insert(name.to_owned(), value);
    }
    for file in &settings.files {
        if let Place::Named(_, variable) = file.place {
            variables.insert(variable.to_owned(), text(&file.place.path(home)));
        }
    }
    let string = |bytes: &[u8]| CString::new(bytes).map_err(|_| DepsError::Nul);
    Ok(Exec {
        program: string(program.as_os_str().as_bytes())?,
        argv: args
            .iter()
            .map(|a| string(a.as_bytes()))
            .collect::<Result<_, _>>()?,
        env: variables
            .iter()
            .map(|(n, v)| string(format!("{n}={v}").as_bytes()))
            .collect::<Result<_, _>>()?,
        cwd: tmp.to_owned(),
    })
}

impl Place {
    /// Where the installer finds it, given its home folder.
    pub(crate) fn path(self, home: &Path) -> PathBuf {
        match self {
            Place::System(path) => PathBuf::from(path),
            Place::Home(path) | Place::Named(path, _) => home.join(path),
        }
    }
}
