//! The command line of a call: which program, with which arguments and variables.

use crate::interpreter::{Python, find_program, is_elf};
use crate::{CallError, marshal};
use serde_json::{Value, json};
use skillcell_backend::{BackendError, Begin, Launch, Layout, Params, Program};
use skillcell_manifest::{Entry, Manifest, Runtime};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

const RUNNER: &str = include_str!("runner.py");
const RUNNER_COLD: &str = include_str!("runner_cold.py");

/// What interprets the entry, found on the host.
#[derive(Debug, Clone)]
pub(crate) enum Interpreter {
    Python(Python),
    /// Any other program, canonical.
    Program(PathBuf),
    /// The entry is itself executable.
    Direct,
}

/// Finds what the entry needs.
pub(crate) fn interpreter(
    manifest: &Manifest,
    bundle: &Path,
    python: Option<&Path>,
    deps: Option<&Path>,
) -> Result<Interpreter, CallError> {
    let program = |name: &str, package: &str| {
        find_program(name)
            .map(Interpreter::Program)
            .ok_or_else(|| CallError::InterpreterMissing {
                program: name.to_owned(),
                hint: format!("install it, for example with: apt-get install {package}"),
            })
    };
    match &manifest.entry {
        Entry::PythonClass { .. }
        | Entry::Script {
            runtime: Runtime::Python,
            ..
        } => Ok(Interpreter::Python(Python::find(python, deps)?)),
        Entry::Script {
            runtime: Runtime::Sh,
            ..
        } => program("sh", "dash"),
        Entry::Script {
            runtime: Runtime::Bash,
            ..
        } => program("bash", "bash"),
        Entry::Script {
            runtime: Runtime::Node,
            ..
        } => program("node", "nodejs"),
        Entry::Script {
            runtime: Runtime::Shebang { program: name, .. },
            ..
        } => program(name, name),
        Entry::Command { argv } => {
            let name = argv.first().map(String::as_str).unwrap_or_default();
            // A file of the bundle, by a relative path with a slash; anything else is on PATH.
            if name.contains('/') && !Path::new(name).is_absolute() {
                let file = bundle.join(name);
                return if file.is_file() {
                    Ok(Interpreter::Direct)
                } else {
                    program(name, name)
                };
            }
            match name {
                "python3" | "python" => Ok(Interpreter::Python(Python::find(python, deps)?)),
                _ => program(name, name),
            }
        }
        Entry::None => Ok(Interpreter::Direct),
    }
}

impl Interpreter {
    /// Trees that must be in the cell for it to start.
    pub(crate) fn trees(&self) -> Vec<PathBuf> {
        match self {
            Interpreter::Python(python) => vec![python.prefix.clone()],
            Interpreter::Program(path) => {
                // `/opt/node/bin/node` needs `/opt/node`; `/home/me/tool` only itself.
                let prefix = path
                    .parent()
                    .filter(|p| p.ends_with("bin"))
                    .and_then(Path::parent);
                match prefix {
                    Some(prefix) if prefix != Path::new("/") && is_elf(path) => {
                        vec![prefix.to_owned()]
                    }
                    _ => vec![path.clone()],
                }
            }
            Interpreter::Direct => Vec::new(),
        }
    }
}

/// What a program is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Call,
    /// To be loaded, and to wait for params that come later.
    Template,
}

/// What goes in with the program.
pub(crate) struct Input<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) interpreter: &'a Interpreter,
    pub(crate) layout: &'a Layout,
    pub(crate) purpose: Purpose,
    pub(crate) params: Option<&'a Value>,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Whether the bundle holds compiled files.
    pub(crate) bytecode: bool,
}

pub(crate) fn launch(input: &Input<'_>) -> Result<Launch, CallError> {
    let layout = input.layout;
    let empty = json!({});
    let stdin = |params: Option<&Value>| params.map(|p| p.to_string().into_bytes());
    let (program, argv, cwd, params, stdin) = match (&input.manifest.entry, input.interpreter) {
        (Entry::PythonClass { file }, Interpreter::Python(python)) => {
            let argv = ["-I", "-S", "-B", "-X", "utf8", "-c", RUNNER]
                .map(str::to_owned)
                .to_vec();
            let params = match input.purpose {
                Purpose::Call => Some(input.params.unwrap_or(&empty)),
                Purpose::Template => None,
            };
            let call = runner_call(input, file, params);
            (
                python.executable.clone(),
                argv,
                layout.scratch.clone(),
                call,
                None,
            )
        }
        (Entry::Script { file, runtime }, interpreter) => {
            let script = layout.skill.join(file).to_string_lossy().into_owned();
            let (program, mut argv) = match (interpreter, runtime) {
                (Interpreter::Python(python), _) => {
                    (python.executable.clone(), vec!["-B".to_owned(), script])
                }
                (Interpreter::Program(path), Runtime::Shebang { argument, .. }) => (
                    path.clone(),
                    argument.iter().cloned().chain([script]).collect(),
                ),
                (Interpreter::Program(path), _) => (path.clone(), vec![script]),
                (Interpreter::Direct, _) => (layout.skill.join(file), vec![]),
            };
            argv.extend_from_slice(input.args);
            (
                program,
                argv,
                layout.skill.clone(),
                Vec::new(),
                stdin(input.params),
            )
        }
        (Entry::Command { argv }, interpreter) => {
            let program = match interpreter {
                Interpreter::Python(python) => python.executable.clone(),
                Interpreter::Program(path) => path.clone(),
                Interpreter::Direct => layout
                    .skill
                    .join(argv.first().map(String::as_str).unwrap_or_default()),
            };
            let rest = argv.iter().skip(1).chain(input.args).cloned().collect();
            (
                program,
                rest,
                layout.skill.clone(),
                Vec::new(),
                stdin(Some(input.params.unwrap_or(&empty))),
            )
        }
        (Entry::PythonClass { .. } | Entry::None, _) => {
            return Err(CallError::NoEntry(
                input.manifest.id.to_string(),
                Vec::new(),
            ));
        }
    };
    let name = program.to_string_lossy().into_owned();
    let argv = std::iter::once(name)
        .chain(argv)
        .map(c_string)
        .collect::<Result<Vec<_>, _>>()?;
    let env = environment(input)?;
    Ok(Launch {
        begin: Begin::Program(Program {
            program,
            argv,
            env,
            cwd,
        }),
        params: Params::Known(params),
        stdin,
    })
}

/// A message to the runner, with its length in front.
pub(crate) fn message(value: &Value) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    marshal::encode(value, &mut bytes);
    let length = (bytes.len() - 8) as u64;
    bytes[..8].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// What to load, and without params only that.
fn runner_call(input: &Input<'_>, file: &str, params: Option<&Value>) -> Vec<u8> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let id = input.manifest.id.as_str();
    let package: Vec<&str> = match id.split_once('/') {
        Some((category, name)) => vec!["skills", category, name],
        None => vec![],
    };
    let mut call = json!({
        "skill": text(&input.layout.skill),
        "file": file,
        "deps": input.layout.deps.iter().map(|d| text(d)).collect::<Vec<_>>(),
        "package": package,
        "cold": RUNNER_COLD,
    });
    if let (Some(params), Some(call)) = (params, call.as_object_mut()) {
        call.insert("params".into(), params.clone());
    }
    message(&call)
}

/// Fixed variables that programs expect, and the granted ones. Nothing is inherited.
fn environment(input: &Input<'_>) -> Result<Vec<CString>, CallError> {
    let layout = input.layout;
    let path_text = |path: &Path| path.to_string_lossy().into_owned();
    let mut path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    for tree in input.interpreter.trees() {
        let bin = tree.join("bin");
        if !tree.starts_with("/usr") && bin.is_dir() {
            path = format!("{}:{path}", bin.display());
        }
    }
    let mut env: BTreeMap<String, String> = [
        ("PATH", path),
        ("HOME", path_text(&layout.scratch)),
        ("TMPDIR", path_text(&layout.tmp)),
        ("LANG", "C.UTF-8".to_owned()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ("PYTHONNOUSERSITE", "1".to_owned()),
        ("PYTHONUTF8", "1".to_owned()),
        // libuv would try io_uring first, which no cell has.
        ("UV_USE_IO_URING", "0".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    if input.bytecode {
        // It is not part of the digest, so Python looks for compiled files elsewhere. Only then: it
        // has to compile its own library as well, in every call.
        let elsewhere = path_text(&layout.scratch.join(".pycache"));
        env.insert("PYTHONPYCACHEPREFIX".into(), elsewhere);
    }
    if !layout.deps.is_empty() {
        let deps: Vec<_> = layout.deps.iter().map(|d| path_text(d)).collect();
        env.insert("PYTHONPATH".into(), deps.join(":"));
    }
    env.extend(input.env.iter().map(|(k, v)| (k.clone(), v.clone())));
    env.into_iter()
        .map(|(name, value)| c_string(format!("{name}={value}")))
        .collect()
}

fn c_string(text: String) -> Result<CString, CallError> {
    CString::new(text).map_err(|_| CallError::Backend(BackendError::Nul))
}
