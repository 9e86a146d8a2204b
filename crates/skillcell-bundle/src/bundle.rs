//! An opened bundle.

use crate::digest::Fingerprint;
use crate::error::{BundleError, Class};
use crate::root::Root;
use crate::{digest, python, site_packages, walk};
use skillcell_manifest::{
    Entry, MAX_BYTES, Manifest, Parsed, Runtime, Warning, parse_agent_skill, parse_security_policy,
    parse_skillware, runtime_for_script,
};
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};

const SKILLWARE: &str = "manifest.yaml";
const AGENT_SKILL: &str = "SKILL.md";
const CLASS: &str = "skill.py";
const MAX_SCRIPTS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleKind {
    /// `manifest.yaml`
    Skillware,
    /// `SKILL.md`
    AgentSkill,
}

/// A skill's folder, its manifest read and its policy resolved.
#[derive(Debug)]
pub struct Bundle {
    /// Canonical.
    pub root: PathBuf,
    pub kind: BundleKind,
    pub manifest: Manifest,
    /// About the file that [`Bundle::manifest_path`] names.
    pub warnings: Vec<Warning>,
    opened: Root,
}

impl Bundle {
    pub fn open(dir: &Path) -> Result<Self, BundleError> {
        let opened = Root::open(dir)?;
        let root = opened.path().to_owned();
        let dir_name = root
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let (kind, mut parsed) = read_manifest(&opened, &dir_name)?;
        if let Some(file) = &parsed.policy_file {
            let relative = Path::new(file);
            let text = opened.read_text(relative, opened.open_file(relative)?, MAX_BYTES as u64)?;
            parsed.manifest.security_policy =
                parse_security_policy(&text).map_err(|error| BundleError::Manifest {
                    path: root.join(relative),
                    error,
                })?;
        }
        let Parsed {
            manifest, warnings, ..
        } = parsed;
        Ok(Bundle {
            root,
            kind,
            manifest,
            warnings,
            opened,
        })
    }

    /// The folder itself: mount and read from this, not from the name.
    pub fn root_fd(&self) -> BorrowedFd<'_> {
        self.opened.fd()
    }

    pub fn manifest_path(&self) -> PathBuf {
        self.root.join(match self.kind {
            BundleKind::Skillware => SKILLWARE,
            BundleKind::AgentSkill => AGENT_SKILL,
        })
    }

    /// The text of a file of the bundle.
    pub(crate) fn text(&self, relative: &Path) -> Result<String, BundleError> {
        let file = self.opened.open_file(relative)?;
        self.opened.read_text(relative, file, MAX_BYTES as u64)
    }

    /// The text of a file at the top of the bundle, where there is one.
    pub(crate) fn text_if_present(&self, name: &str) -> Result<Option<String>, BundleError> {
        let file = self.opened.open_if_present(name)?;
        let read = |file| {
            self.opened
                .read_text(Path::new(name), file, MAX_BYTES as u64)
        };
        file.map(read).transpose()
    }

    /// Makes a script of the bundle the entry. It must be a regular file inside.
    pub fn select_entry(&mut self, entry: &str) -> Result<(), BundleError> {
        let fail = |problem| BundleError::Entry {
            entry: entry.to_owned(),
            problem,
        };
        let mut relative = PathBuf::new();
        for component in Path::new(entry).components() {
            match component {
                Component::Normal(word) => relative.push(word),
                Component::CurDir => {}
                _ => return Err(fail("it is not a path inside the skill")),
            }
        }
        if relative.as_os_str().is_empty() || entry.contains('\0') {
            return Err(fail("it names no file"));
        }
        let (file, _) = self.opened.open_file(&relative)?;
        let head = self.head(&relative, file)?;
        let name = relative
            .to_str()
            .ok_or_else(|| fail("its name is not UTF-8"))?
            .to_owned();
        let runtime = runtime_for_script(&name, &head).map_err(|error| BundleError::Manifest {
            path: self.root.join(&relative),
            error,
        })?;
        self.manifest.entry = Entry::Script {
            file: name,
            runtime,
        };
        Ok(())
    }

    /// The first bytes of a script: enough for its shebang line.
    fn head(&self, relative: &Path, file: File) -> Result<Vec<u8>, BundleError> {
        let mut head = Vec::new();
        file.take(512)
            .read_to_end(&mut head)
            .map_err(|error| BundleError::File {
                path: self.root.join(relative),
                step: "read it",
                error,
            })?;
        Ok(head)
    }

    /// Files below `scripts/`, for telling the user what could be an entry.
    pub fn scripts(&self) -> Result<Vec<String>, BundleError> {
        let files = walk::walk(&self.opened)?
            .entries
            .into_iter()
            .filter(|entry| {
                matches!(entry.kind, walk::Kind::File { .. }) && entry.path.starts_with("scripts")
            });
        Ok(files
            .filter_map(|e| e.path.into_os_string().into_string().ok())
            .take(MAX_SCRIPTS)
            .collect())
    }

    /// The manifest's requirements, and those written in the Python file that is started.
    pub fn requirements(&self) -> Result<Vec<String>, BundleError> {
        let mut requirements = self.manifest.requirements.clone();
        if let Some(file) = self.python_file() {
            for requirement in python::inline_requirements(&self.opened, file)? {
                if !requirements.contains(&requirement) {
                    requirements.push(requirement);
                }
            }
        }
        Ok(requirements)
    }

    fn python_file(&self) -> Option<&str> {
        match &self.manifest.entry {
            Entry::PythonClass { file }
            | Entry::Script {
                file,
                runtime: Runtime::Python,
            } => Some(file),
            _ => None,
        }
    }

    /// Whether a Python skill imports the `skillware` framework, which it then needs in its cell.
    pub fn needs_skillware(&self) -> Result<bool, BundleError> {
        match self.python_file() {
            Some(_) => python::any_imports(&self.opened, "skillware"),
            None => Ok(false),
        }
    }

    /// The version of the installed `skillware` that the bundle came with, if it did.
    pub fn skillware_version(&self) -> Option<String> {
        site_packages::skillware_version(&self.root)
    }

    /// SHA-256 over every name, type, executable bit, link and byte of the bundle, except Python's
    /// bytecode caches. Nothing that runs may read those: they aren't part of the fingerprint.
    pub fn fingerprint(&self) -> Result<Fingerprint, BundleError> {
        digest::fingerprint(&self.opened)
    }
}

fn read_manifest(root: &Root, dir_name: &str) -> Result<(BundleKind, Parsed), BundleError> {
    let class = match root.open_if_present(CLASS)? {
        Some(_) => Class::Present,
        None => Class::Absent,
    };
    let skillware = root.open_if_present(SKILLWARE)?;
    let skillware = skillware.map(|file| read_skillware(root, file, dir_name));
    if class == Class::Present
        && let Some(parsed) = skillware
    {
        return Ok((BundleKind::Skillware, parsed?));
    }
    let agent_skill = root.open_if_present(AGENT_SKILL)?;
    match (skillware, agent_skill) {
        (Some(Ok(parsed)), _) if matches!(parsed.manifest.entry, Entry::Command { .. }) => {
            Ok((BundleKind::Skillware, parsed))
        }
        // With neither skill.py nor a command, manifest.yaml may belong to something else altogether.
        (_, Some(file)) => Ok((
            BundleKind::AgentSkill,
            read_agent_skill(root, file, dir_name)?,
        )),
        (Some(Err(error)), None) => Err(error),
        (Some(Ok(_)), None) => Err(BundleError::NoEntry {
            path: root.path().join(SKILLWARE),
        }),
        (None, None) => Err(BundleError::NoManifest {
            path: root.path().to_owned(),
            class,
        }),
    }
}

fn read_skillware(root: &Root, file: (File, u64), dir_name: &str) -> Result<Parsed, BundleError> {
    let text = root.read_text(Path::new(SKILLWARE), file, MAX_BYTES as u64)?;
    parse_skillware(&text, dir_name).map_err(|error| BundleError::Manifest {
        path: root.path().join(SKILLWARE),
        error,
    })
}

fn read_agent_skill(root: &Root, file: (File, u64), dir_name: &str) -> Result<Parsed, BundleError> {
    let text = root.read_text(Path::new(AGENT_SKILL), file, MAX_BYTES as u64)?;
    parse_agent_skill(&text, dir_name).map_err(|error| BundleError::Manifest {
        path: root.path().join(AGENT_SKILL),
        error,
    })
}
