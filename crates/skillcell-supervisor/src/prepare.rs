//! From a request to a plan: finds the skill, reads the policies, resolves paths, decides. Nothing
//! is started and nothing is installed here.

use crate::program::{self, Interpreter};
use crate::shelf::{Read, Shelf};
use crate::{CallError, Interaction, Python, Request, params, paths};
use rustix::fd::BorrowedFd;
use serde_json::Value;
use skillcell_bundle::{Bundle, SearchPath, locate};
use skillcell_core::{Denial, Digest, EnvName, HostFacts, Isolation, SkillRef};
use skillcell_deps::{
    BuildLimits, Cache, DepsRequest, Environment, NetworkTerms, Progress, PythonFacts,
};
use skillcell_manifest::{Entry, MAX_BYTES};
use skillcell_plan::{CallerGrants, ParamPath, Plan, PlanInput, missing_required_env};
use skillcell_policy::{Ceiling, DenyRule, Layers, LogTerms, OperatorPolicy, Subject};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A call that may be made: everything is known and allowed.
pub struct Ready {
    pub bundle: Arc<Bundle>,
    pub plan: Plan,
    pub host: HostFacts,
    pub ceiling: Ceiling,
    pub(crate) params: Option<Value>,
    /// Values of the granted variables.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) interpreter: Interpreter,
    /// Whether the bundle holds compiled files, which must not be run.
    pub(crate) bytecode: bool,
}

/// What is known of a call, however early it fails.
#[derive(Debug, Default)]
pub struct Known {
    pub skill: SkillRef,
    /// How the operator wants the log kept.
    pub(crate) log: LogTerms,
    /// Variables that the skill asks for: their values are not for the log.
    pub(crate) env: Vec<EnvName>,
}

impl Known {
    fn learn(&mut self, bundle: &Bundle) {
        let manifest = &bundle.manifest;
        self.skill = SkillRef {
            id: Some(manifest.id.to_string()),
            version: manifest.version.clone(),
            digest: None,
        };
        let declared = manifest.env_vars.iter().map(|v| v.name.clone());
        let secrets = manifest.security_policy.secrets.iter();
        self.env = declared.chain(secrets.map(|s| s.env.clone())).collect();
    }
}

/// Finds and opens the skill of a request.
pub fn open_bundle(request: &Request) -> Result<Bundle, CallError> {
    open_in(&find_folder(request)?, request)
}

fn open_in(folder: &Path, request: &Request) -> Result<Bundle, CallError> {
    let mut bundle = Bundle::open(folder)?;
    if let Some(entry) = &request.entry {
        bundle.select_entry(entry)?;
    }
    Ok(bundle)
}

fn find_folder(request: &Request) -> Result<PathBuf, CallError> {
    let named = request.caller.path(Path::new(&request.skill));
    let named = named.to_str().filter(|_| named.exists());
    let mut search = if named.is_some() {
        SearchPath::default()
    } else {
        // The interpreter's own packages are where `pip install skillware` puts skills.
        let mut packages: Vec<PathBuf> = Vec::new();
        if let Some(deps) = &request.deps() {
            packages.extend(skillcell_bundle::site_packages_of_prefix(deps));
        }
        if let Ok(python) = Python::find(request.python().as_deref(), request.deps().as_deref()) {
            packages.extend(python.site_packages());
        }
        SearchPath::from_env(&packages)
    };
    for folder in &mut search.folders {
        *folder = request.caller.path(folder);
    }
    Ok(locate(named.unwrap_or(&request.skill), &search)?)
}

/// Decides everything. `known` is filled on the way, for the envelope and the record of a failure.
pub fn prepare(request: &Request, host: HostFacts, known: &mut Known) -> Result<Ready, CallError> {
    prepare_with(request, host, known, When::Now, None)
}

/// When a call's params are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    /// For a template: they are checked with each call.
    Later,
}

pub(crate) fn prepare_with(
    request: &Request,
    host: HostFacts,
    known: &mut Known,
    when: When,
    shelf: Option<&Shelf>,
) -> Result<Ready, CallError> {
    let folder = find_folder(request)?;
    let mut opened = None;
    let mut read = || -> Result<Read, CallError> {
        let bundle = open_in(&folder, request)?;
        known.learn(&bundle);
        let fingerprint = bundle.fingerprint()?;
        opened = Some(());
        Ok(Read {
            bundle: Arc::new(bundle),
            fingerprint,
        })
    };
    let read = match shelf {
        Some(shelf) => shelf.bundle(&folder, request.entry.as_deref(), &mut read)?,
        None => read()?,
    };
    let Read {
        bundle,
        fingerprint,
    } = read;
    if opened.is_none() {
        known.learn(&bundle);
    }
    known.skill.digest = Some(fingerprint.digest);
    let ceiling = ceiling(request, &bundle, known.skill.digest.as_ref());
    known.log = ceiling.as_ref().map(|c| c.log).unwrap_or_default();
    if matches!(bundle.manifest.entry, Entry::None) {
        return Err(CallError::NoEntry(
            bundle.manifest.id.to_string(),
            bundle.scripts()?,
        ));
    }
    if matches!(bundle.manifest.entry, Entry::PythonClass { .. }) && !request.args.is_empty() {
        return Err(CallError::ArgsForClass(bundle.manifest.id.to_string()));
    }
    let mut params = params::read(&request.params, &request.caller)?;
    if let (Some(schema), When::Now) = (&bundle.manifest.parameters, when) {
        params::validate(
            params.as_ref().unwrap_or(&serde_json::json!({})),
            Some(schema),
        )?;
    }
    let param_paths = match &mut params {
        Some(params) => paths::in_params(&bundle.manifest, params, &request.caller)?,
        None => Vec::new(),
    };
    let ceiling = ceiling?;
    let plan = plan_within(&ceiling, request, &bundle, &known.skill, param_paths, &host)?;
    let env = env_values(request, &bundle, &plan)?;
    let (python, deps) = (request.python(), request.deps());
    let find = || {
        program::interpreter(
            &bundle.manifest,
            &bundle.root,
            python.as_deref(),
            deps.as_deref(),
        )
    };
    let interpreter = match shelf {
        Some(shelf) => {
            let key = (bundle.root.clone(), [python.clone(), deps.clone()]);
            shelf.interpreter(key, find)?
        }
        None => find()?,
    };
    Ok(Ready {
        bundle,
        plan,
        host,
        ceiling,
        params,
        env,
        interpreter,
        bytecode: fingerprint.bytecode,
    })
}

/// Makes the plan: what is asked, what policy and flags allow, what the host can hold.
pub(crate) fn decide(
    request: &Request,
    bundle: &Bundle,
    skill: &SkillRef,
    param_paths: Vec<ParamPath>,
    host: &HostFacts,
) -> Result<(Plan, Ceiling), CallError> {
    let ceiling = ceiling(request, bundle, skill.digest.as_ref())?;
    let plan = plan_within(&ceiling, request, bundle, skill, param_paths, host)?;
    Ok((plan, ceiling))
}

fn plan_within(
    ceiling: &Ceiling,
    request: &Request,
    bundle: &Bundle,
    skill: &SkillRef,
    param_paths: Vec<ParamPath>,
    host: &HostFacts,
) -> Result<Plan, CallError> {
    let caller = CallerGrants {
        env: request.env.iter().map(|e| e.name.clone()).collect(),
        read: paths::flags(&request.read, "--read", &request.caller)?,
        write: paths::flags(&request.write, "--write", &request.caller)?,
        timeout: request.timeout,
        memory: request.memory,
        isolation: request.isolation,
        trust: request.trust,
        allow_degraded: request.allow_degraded.clone(),
        audit: request.audit,
        params: param_paths,
    };
    Ok(skillcell_plan::plan(&PlanInput {
        skill: skill.clone(),
        manifest: &bundle.manifest,
        ceiling,
        caller: &caller,
        host,
    })?)
}

/// What the operator's files allow this skill.
pub(crate) fn ceiling(
    request: &Request,
    bundle: &Bundle,
    digest: Option<&Digest>,
) -> Result<Ceiling, CallError> {
    Ok(policy_layers(request)?.ceiling_for(&Subject {
        id: &bundle.manifest.id,
        category: bundle.manifest.category.as_deref(),
        digest,
        path: Some(&bundle.root),
    }))
}

fn policy_layers(request: &Request) -> Result<Layers, CallError> {
    let mut layers = Vec::new();
    for path in paths::policy_files(request) {
        let error = |source| CallError::PolicyFile {
            path: path.clone(),
            source,
        };
        let file = std::fs::File::open(&path).map_err(error)?;
        let mut text = String::new();
        file.take(MAX_BYTES as u64 + 1)
            .read_to_string(&mut text)
            .map_err(error)?;
        layers.push(OperatorPolicy::parse(&text, &path.to_string_lossy())?);
    }
    Ok(Layers::new(layers))
}

/// Values for the granted variables; a required one without a value ends the call here.
fn env_values(
    request: &Request,
    bundle: &Bundle,
    plan: &Plan,
) -> Result<BTreeMap<String, String>, CallError> {
    let mut missing: Vec<String> = missing_required_env(&bundle.manifest, plan)
        .into_iter()
        .map(|n| n.to_string())
        .collect();
    let mut values = BTreeMap::new();
    for grant in &plan.env {
        let name = grant.name.as_str();
        let given = request.env.iter().rev().find(|e| e.name == grant.name);
        let from_host = || request.caller.variable(name);
        match given {
            Some(arg) => match arg.value.clone().or_else(from_host) {
                Some(value) => {
                    values.insert(name.to_owned(), value);
                }
                None => {
                    return Err(CallError::EnvUnset {
                        name: name.to_owned(),
                    });
                }
            },
            None => match from_host() {
                Some(value) => {
                    values.insert(name.to_owned(), value);
                }
                None if bundle
                    .manifest
                    .env_vars
                    .iter()
                    .any(|v| v.name == grant.name && v.required) =>
                {
                    missing.push(name.to_owned());
                }
                None => {}
            },
        }
    }
    if missing.is_empty() {
        Ok(values)
    } else {
        Err(CallError::MissingEnv { names: missing })
    }
}

struct Tell<'a>(&'a dyn Interaction);

impl Progress for Tell<'_> {
    fn stage(&self, text: &str) {
        self.0.stage(text);
    }
    fn line(&self, text: &str) {
        self.0.line(text);
    }
    fn denied(&self, denial: &Denial) {
        let Denial {
            target,
            reason,
            hint,
            ..
        } = denial;
        let text = format!("the install was denied {target} ({reason}): {hint}");
        self.0.warn(&text.replace('\n', "\\n"));
    }
}

/// The skill's Python packages. Held for as long as they are in use, so that nobody prunes them.
#[derive(Debug, Default)]
pub struct Dependencies {
    pub folders: Vec<PathBuf>,
    pub environment: Option<Environment>,
}

/// The packages from a ready folder, or from one that is installed once.
pub fn dependencies(
    request: &Request,
    ready: &Ready,
    ui: &dyn Interaction,
    interrupt: Option<BorrowedFd<'_>>,
) -> Result<Dependencies, CallError> {
    if let Some(folder) = &request.deps() {
        return Ok(Dependencies {
            folders: vec![ready_folder(folder)?],
            environment: None,
        });
    }
    let Interpreter::Python(python) = &ready.interpreter else {
        return Ok(Dependencies::default());
    };
    let requirements = requirements(&ready.bundle)?;
    let terms = InstallTerms {
        ceiling: &ready.ceiling,
        isolation: ready.plan.isolation,
        host: &ready.host,
    };
    let environment = install(&requirements, python, &terms, ui, interrupt)?;
    Ok(Dependencies {
        folders: environment.iter().map(|e| e.site.clone()).collect(),
        environment,
    })
}

/// Everything that the skill's Python needs: what it says, and its framework where it imports it.
pub(crate) fn requirements(bundle: &Bundle) -> Result<Vec<String>, CallError> {
    let mut requirements = bundle.requirements()?;
    if matches!(bundle.manifest.entry, Entry::PythonClass { .. }) && bundle.needs_skillware()? {
        requirements.push(match bundle.skillware_version() {
            Some(version) => format!("skillware=={version}"),
            None => "skillware".to_owned(),
        });
    }
    Ok(requirements)
}

/// Under what an install may happen.
pub(crate) struct InstallTerms<'a> {
    pub(crate) ceiling: &'a Ceiling,
    pub(crate) isolation: Isolation,
    pub(crate) host: &'a HostFacts,
}

/// Installs a set of requirements once; none need no environment.
pub(crate) fn install(
    requirements: &[String],
    python: &Python,
    terms: &InstallTerms<'_>,
    ui: &dyn Interaction,
    interrupt: Option<BorrowedFd<'_>>,
) -> Result<Option<Environment>, CallError> {
    if requirements.is_empty() {
        return Ok(None);
    }
    let python = PythonFacts {
        executable: python.executable.clone(),
        prefix: python.prefix.clone(),
        version: python.version,
    };
    let ceiling = terms.ceiling;
    let deny: Vec<DenyRule> = ceiling.deny.iter().map(|d| d.value.clone()).collect();
    let deps = DepsRequest {
        requirements,
        python: &python,
        source_builds: ceiling.source_builds.value,
        isolation: terms.isolation,
        host: terms.host,
        limits: BuildLimits::default(),
        interrupt,
        network: NetworkTerms {
            hosts: &ceiling.index_hosts.value,
            deny: &deny,
            resolver: ceiling.resolver.as_ref().map(|r| r.value),
        },
    };
    let cache = Cache::default_location()?;
    Ok(Some(skillcell_deps::ensure(&cache, &deps, &Tell(ui))?))
}

/// The packages of a virtualenv, or of a plain folder.
fn ready_folder(folder: &Path) -> Result<PathBuf, CallError> {
    let error = |what: &str| CallError::DepsFolder {
        path: folder.to_owned(),
        what: what.to_owned(),
    };
    let real = std::fs::canonicalize(folder).map_err(|e| error(&e.to_string()))?;
    if !real.is_dir() {
        return Err(error("--deps takes a virtualenv or a folder of packages"));
    }
    let inner = skillcell_bundle::site_packages_of_prefix(&real)
        .into_iter()
        .find(|p| p.is_dir());
    match inner {
        Some(packages) => std::fs::canonicalize(packages).map_err(|e| error(&e.to_string())),
        None => Ok(real),
    }
}
