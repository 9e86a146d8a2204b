use super::problem::Problem;
use serde_json::Value;
use skillcell_bundle::{Bundle, BundleError};
use skillcell_manifest::Entry;
use skillcell_supervisor::{CallError, Request, find_program, open_bundle};
use std::path::{Path, PathBuf};

/// All problems of one skill.
pub(super) fn problems(subject: &str) -> Vec<Problem> {
    let request = Request {
        skill: subject.to_owned(),
        ..Request::default()
    };
    let names = Names::of(subject);
    let bundle = match open_bundle(&request) {
        Ok(bundle) => bundle,
        Err(error) => return vec![names.call_error(&error)],
    };
    let file = names.shown(&bundle.manifest_path());
    let mut found: Vec<Problem> = bundle
        .warnings
        .iter()
        .map(|w| Problem::warning(file.clone(), w.location, w.message.clone()))
        .collect();
    if let Err(error) = bundle.fingerprint() {
        found.push(names.bundle_error(&error));
    }
    found.extend(parameters(&bundle, &file));
    found.extend(entry(&bundle, &file));
    found.extend(python_files(bundle, &names));
    found
}

/// Whether `parameters` are a schema, and have the params that hold paths.
fn parameters(bundle: &Bundle, file: &str) -> Vec<Problem> {
    let Some(schema) = &bundle.manifest.parameters else {
        return Vec::new();
    };
    if let Err(error) = skillcell_supervisor::check_schema(schema) {
        let error = Problem::error(Some(file.to_owned()), None, error.to_string(), error.hint());
        return vec![error];
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let paths = &bundle.manifest.security_policy.filesystem.params;
    let unknown = paths.keys().filter(|name| !properties.contains_key(*name));
    unknown
        .map(|name| {
            let message = format!(
                "filesystem.params names `{name}`, which is not among the properties of `parameters`"
            );
            Problem::warning(file.to_owned(), None, message)
        })
        .collect()
}

/// Whether there is something to start.
fn entry(bundle: &Bundle, file: &str) -> Option<Problem> {
    let fail = |message: String, hint: &str| {
        Problem::error(Some(file.to_owned()), None, message, Some(hint.to_owned()))
    };
    match &bundle.manifest.entry {
        Entry::PythonClass { file: class } | Entry::Script { file: class, .. } => {
            (!bundle.root.join(class).is_file()).then(|| {
                fail(
                    format!("the entry `{class}` is not in the bundle"),
                    "add the file, or name another",
                )
            })
        }
        Entry::Command { argv } => {
            let program = argv.first()?;
            let of_bundle = program.contains('/') && !Path::new(program).is_absolute();
            if of_bundle {
                (!bundle.root.join(program).is_file()).then(|| {
                    fail(
                        format!(
                            "the program `{program}` of execution.command is not in the bundle"
                        ),
                        "add the file, or name a program of the host without a slash",
                    )
                })
            } else if find_program(program).is_none() {
                let message =
                    format!("the program `{program}` of execution.command is not on this host");
                Some(Problem::warning(file.to_owned(), None, message))
            } else {
                None
            }
        }
        Entry::None => match bundle.scripts() {
            Ok(scripts) if scripts.is_empty() => {
                let message = "there is nothing to run: no files in scripts/".to_owned();
                Some(Problem::warning(file.to_owned(), None, message))
            }
            _ => None,
        },
    }
}

/// Inline requirements of the Python files that can be started.
fn python_files(mut bundle: Bundle, names: &Names) -> Vec<Problem> {
    let mut found = Vec::new();
    if !matches!(bundle.manifest.entry, Entry::None) {
        found.extend(bundle.requirements().err().map(|e| names.bundle_error(&e)));
        return found;
    }
    let scripts = match bundle.scripts() {
        Ok(scripts) => scripts,
        // The digest walks the same files and has said so already.
        Err(_) => return found,
    };
    for script in scripts.iter().filter(|name| name.ends_with(".py")) {
        let checked = bundle
            .select_entry(script)
            .and_then(|()| bundle.requirements());
        found.extend(checked.err().map(|e| names.bundle_error(&e)));
    }
    found
}

/// Files by the name that the user typed, not by where links lead.
struct Names {
    typed: PathBuf,
    real: Option<PathBuf>,
}

impl Names {
    fn of(subject: &str) -> Self {
        let path = Path::new(subject);
        let folder = if path.is_dir() {
            path
        } else {
            path.parent().unwrap_or(path)
        };
        let exists = path.exists();
        let here = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        Names {
            typed: folder.to_owned(),
            real: exists.then(|| std::fs::canonicalize(here).ok()).flatten(),
        }
    }

    fn shown(&self, path: &Path) -> String {
        let inside = self
            .real
            .as_ref()
            .and_then(|real| path.strip_prefix(real).ok());
        match inside {
            Some(inside) => self.typed.join(inside).to_string_lossy().into_owned(),
            None => path.to_string_lossy().into_owned(),
        }
    }

    fn call_error(&self, error: &CallError) -> Problem {
        match error {
            CallError::Bundle(error) => self.bundle_error(error),
            other => Problem::error(None, None, other.to_string(), other.hint()),
        }
    }

    fn bundle_error(&self, error: &BundleError) -> Problem {
        match error {
            BundleError::Manifest { path, error } => Problem::manifest(self.shown(path), error),
            BundleError::NotUtf8 { path, location } => {
                let message = "not valid UTF-8".to_owned();
                Problem::error(Some(self.shown(path)), Some(*location), message, None)
            }
            other => Problem::error(None, other.location(), other.to_string(), other.hint()),
        }
    }
}
