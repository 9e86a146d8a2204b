//! Which program installs, and how it is told to.

use crate::settings::Lookup;
use crate::{DepsRequest, PythonFacts};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The program itself, without symlinks.
    Uv(PathBuf),
    /// `-m pip` of the interpreter.
    PipModule,
    /// The wheel of pip that comes with the interpreter.
    PipWheel(PathBuf),
}

impl Tool {
    /// uv if it is there, else pip. `usable`: whether the cell could execute it.
    pub(crate) fn find(
        python: &PythonFacts,
        lookup: Lookup<'_>,
        usable: &dyn Fn(&Path) -> bool,
    ) -> Option<Tool> {
        if let Some(uv) = find_uv(python, lookup).filter(|uv| usable(uv)) {
            return Some(Tool::Uv(uv));
        }
        if pip_folders(python)
            .iter()
            .any(|folder| folder.join("pip/__main__.py").is_file())
        {
            return Some(Tool::PipModule);
        }
        pip_wheels(python).into_iter().next().map(Tool::PipWheel)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Tool::Uv(_) => "uv",
            Tool::PipModule | Tool::PipWheel(_) => "pip",
        }
    }

    /// The command line. `uv` is where the cell has it, `site` the folder to fill.
    pub(crate) fn command(
        &self,
        request: &DepsRequest<'_>,
        uv: &Path,
        site: &Path,
        no_index: bool,
    ) -> (PathBuf, Vec<String>) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let python = &request.python.executable;
        let mut args: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|w| (*w).to_owned()));
        let program = match self {
            Tool::Uv(_) => {
                add(&[
                    "uv",
                    "pip",
                    "install",
                    "--python",
                    &text(python),
                    "--compile-bytecode",
                    "--no-progress",
                    "--color",
                    "never",
                ]);
                uv.to_owned()
            }
            Tool::PipModule | Tool::PipWheel(_) => {
                add(&[&text(python), "-I"]);
                match self {
                    Tool::PipWheel(wheel) => add(&[&text(&wheel.join("pip"))]),
                    _ => add(&["-m", "pip"]),
                }
                add(&[
                    "install",
                    "--no-input",
                    "--disable-pip-version-check",
                    "--no-cache-dir",
                    "--progress-bar",
                    "off",
                ]);
                python.clone()
            }
        };
        add(&["--target", &text(site)]);
        if !request.source_builds {
            add(&["--only-binary", ":all:"]);
        }
        if no_index {
            add(&["--no-index"]);
        }
        add(&["--"]);
        args.extend(request.requirements.iter().cloned());
        (program, args)
    }
}

/// Where the interpreter's own pip would be.
pub(crate) fn pip_folders(python: &PythonFacts) -> Vec<PathBuf> {
    let library = library(python);
    let mut folders: Vec<PathBuf> = ["lib", "lib64"]
        .iter()
        .map(|lib| python.prefix.join(lib).join(&library).join("site-packages"))
        .collect();
    if python.prefix == Path::new("/usr") {
        folders.push("/usr/lib/python3/dist-packages".into());
        folders.push(
            Path::new("/usr/local/lib")
                .join(&library)
                .join("dist-packages"),
        );
    }
    folders
}

/// Wheels of pip that come with the interpreter, the best first.
pub(crate) fn pip_wheels(python: &PythonFacts) -> Vec<PathBuf> {
    let bundled = python
        .prefix
        .join("lib")
        .join(library(python))
        .join("ensurepip/_bundled");
    [bundled, "/usr/share/python-wheels".into()]
        .iter()
        .filter_map(|folder| pip_wheel(folder))
        .collect()
}

fn library(python: &PythonFacts) -> String {
    let (major, minor) = python.version;
    format!("python{major}.{minor}")
}

fn find_uv(python: &PythonFacts, lookup: Lookup<'_>) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = lookup("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .filter(|p| p.is_absolute())
        .collect();
    if let Some(home) = lookup("HOME")
        .map(PathBuf::from)
        .filter(|h| h.is_absolute())
    {
        folders.extend([home.join(".local/bin"), home.join(".cargo/bin")]);
    }
    folders.extend(python.executable.parent().map(Path::to_owned));
    // A script with this name (a version manager's) would need files that the cell doesn't have.
    folders
        .iter()
        .filter_map(|f| std::fs::canonicalize(f.join("uv")).ok())
        .find(|path| is_elf(path))
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path)
        .and_then(|mut f| f.read_exact(&mut magic))
        .is_ok()
        && magic == *b"\x7fELF"
}

fn pip_wheel(folder: &Path) -> Option<PathBuf> {
    let mut wheels: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|e| e.path())
        .filter(|p| {
            p.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.starts_with("pip-") && n.ends_with(".whl"))
        })
        .collect();
    wheels.sort();
    wheels.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uv_is_found_on_the_path_but_not_a_script_of_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let python = PythonFacts {
            executable: "/nonexistent/bin/python3".into(),
            prefix: "/nonexistent".into(),
            version: (3, 11),
        };
        let path = folder.path().canonicalize().unwrap();
        let lookup = |name: &str| (name == "PATH").then(|| path.to_str().unwrap().to_owned());
        let find =
            |usable: bool| Tool::find(&python, &lookup, &|_| usable).filter(|t| t.name() == "uv");
        std::fs::write(path.join("uv"), "#!/bin/sh\n").unwrap();
        assert_eq!(find(true), None);
        std::fs::write(path.join("uv"), b"\x7fELF....").unwrap();
        assert_eq!(find(true), Some(Tool::Uv(path.join("uv"))));
        assert_eq!(find(false), None);
    }

    #[test]
    fn pip_is_found_as_a_module_or_as_the_bundled_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let python = PythonFacts {
            executable: folder.path().join("bin/python3"),
            prefix: folder.path().into(),
            version: (3, 11),
        };
        let bundled = folder.path().join("lib/python3.11/ensurepip/_bundled");
        std::fs::create_dir_all(&bundled).unwrap();
        std::fs::write(bundled.join("pip-24.0-py3-none-any.whl"), "").unwrap();
        let find = || Tool::find(&python, &|_| None, &|_| true);
        assert!(matches!(find(), Some(Tool::PipWheel(_))));
        let module = folder.path().join("lib/python3.11/site-packages/pip");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::write(module.join("__main__.py"), "").unwrap();
        assert_eq!(find(), Some(Tool::PipModule));
    }
}
