//! Finds interpreters on the host, without running anything where a look is enough.

use crate::CallError;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A Python interpreter and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// Canonical.
    pub executable: PathBuf,
    pub prefix: PathBuf,
    pub version: (u8, u8),
}

impl Python {
    /// `--python`, the virtualenv's own, or the first real interpreter on PATH.
    pub fn find(explicit: Option<&Path>, virtualenv: Option<&Path>) -> Result<Python, CallError> {
        if let Some(path) = explicit {
            return Python::at(path).ok_or_else(|| CallError::InterpreterMissing {
                program: path.display().to_string(),
                hint: "--python takes the path of a Python 3 interpreter".into(),
            });
        }
        if let Some(python) = virtualenv
            .map(|v| v.join("bin/python3"))
            .and_then(|p| Python::at(&p))
        {
            return Ok(python);
        }
        let on_path = path_folders()
            .into_iter()
            .map(|folder| folder.join("python3"));
        // Shims (pyenv, asdf) are scripts: the interpreters behind them are tried after real ones.
        on_path
            .filter_map(|path| Python::at(&path))
            .next()
            .or_else(|| behind_shims().into_iter().next())
            .ok_or_else(|| CallError::InterpreterMissing {
                program: "python3".into(),
                hint: "install Python 3.8 or newer, or name one with --python PATH".into(),
            })
    }

    /// The interpreter at a path, if it is one: an ELF file named `python3.N` with its library beside it.
    fn at(path: &Path) -> Option<Python> {
        let executable = std::fs::canonicalize(path).ok()?;
        if !is_elf(&executable) {
            return None;
        }
        let prefix = executable.parent()?.parent()?.to_owned();
        let name = executable.file_name()?.to_str()?;
        let named = name
            .strip_prefix("python3.")
            .and_then(|minor| minor.parse::<u8>().ok());
        let minor = named.or_else(|| library_minor(&prefix))?;
        let has_library = prefix.join(format!("lib/python3.{minor}/os.py")).exists()
            || prefix.join(format!("lib64/python3.{minor}/os.py")).exists();
        has_library.then_some(Python {
            executable,
            prefix,
            version: (3, minor),
        })
    }

    /// Where this interpreter's packages are, for finding an installed `skillware`.
    pub fn site_packages(&self) -> Vec<PathBuf> {
        skillcell_bundle::site_packages_of_prefix(&self.prefix)
    }
}

fn library_minor(prefix: &Path) -> Option<u8> {
    let entries = std::fs::read_dir(prefix.join("lib")).ok()?;
    entries
        .flatten()
        .filter_map(|e| {
            e.file_name()
                .to_str()?
                .strip_prefix("python3.")?
                .parse()
                .ok()
        })
        .max()
}

fn behind_shims() -> Vec<Python> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let pyenv = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let mut found = Vec::new();
    for versions in [
        pyenv.join("versions"),
        home.join(".local/share/uv/python"),
        home.join(".asdf/installs/python"),
    ] {
        for entry in std::fs::read_dir(versions).into_iter().flatten().flatten() {
            found.extend(Python::at(&entry.path().join("bin/python3")));
        }
    }
    found.sort_by_key(|python| std::cmp::Reverse(python.version));
    found
}

/// A program on PATH, canonical, if it is a real executable and not a shim.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return std::fs::canonicalize(name).ok();
    }
    path_folders().into_iter().find_map(|folder| {
        let path = std::fs::canonicalize(folder.join(name)).ok()?;
        use std::os::unix::fs::PermissionsExt;
        let runs = path
            .metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        runs.then_some(path)
    })
}

fn path_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| {
            std::env::split_paths(&path)
                .filter(|p| p.is_absolute())
                .collect()
        })
        .unwrap_or_default();
    for usual in ["/usr/local/bin", "/usr/bin", "/bin"] {
        if !folders.iter().any(|f| f == Path::new(usual)) {
            folders.push(usual.into());
        }
    }
    folders
}

pub(crate) fn is_elf(path: &Path) -> bool {
    let mut magic = [0u8; 4];
    std::fs::File::open(path)
        .and_then(|mut f| f.read_exact(&mut magic))
        .is_ok()
        && magic == *b"\x7fELF"
}
