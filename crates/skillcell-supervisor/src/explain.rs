//! What a call would be, without making it. Nothing runs and nothing is installed.

use crate::program::{self, Interpreter};
use crate::{CallError, ParamsSource, Request, params, paths, prepare};
use skillcell_bundle::Bundle;
use skillcell_core::{EnvName, HostFacts, SkillRef};
use skillcell_manifest::Entry;
use skillcell_plan::{Plan, missing_required_env};
use skillcell_policy::Ceiling;
use std::path::PathBuf;

/// A call as it would be decided now.
pub struct Explanation {
    pub bundle: Bundle,
    pub plan: Plan,
    pub ceiling: Ceiling,
    /// Python packages that a first call would install.
    pub requirements: Vec<String>,
    pub interpreter: Interprets,
    /// Required variables without a value: a call would end before the skill starts.
    pub missing_env: Vec<EnvName>,
    /// What could be an entry, where none was named.
    pub scripts: Vec<String>,
}

/// What would interpret the entry.
#[derive(Debug)]
pub enum Interprets {
    Program(PathBuf),
    /// The entry is itself a program, or there is none.
    Nothing,
    Missing(CallError),
}

/// Decides as `prepare` does, but only says what is missing for a call instead of failing: params,
/// variables, an entry, an interpreter.
pub fn explain(request: &Request, host: &HostFacts) -> Result<Explanation, CallError> {
    let bundle = prepare::open_bundle(request)?;
    let manifest = &bundle.manifest;
    let skill = SkillRef {
        id: Some(manifest.id.to_string()),
        version: manifest.version.clone(),
        digest: Some(bundle.fingerprint()?.digest),
    };
    let param_paths = match &request.params {
        ParamsSource::None => Vec::new(),
        source => match params::read(source, &request.caller)? {
            Some(mut given) => {
                params::validate(&given, manifest.parameters.as_ref())?;
                paths::in_params(manifest, &mut given, &request.caller)?
            }
            None => Vec::new(),
        },
    };
    let (plan, ceiling) = prepare::decide(request, &bundle, &skill, param_paths, host)?;
    let requirements = match &request.deps {
        Some(_) => Vec::new(),
        None => prepare::requirements(&bundle)?,
    };
    let interpreter = match program::interpreter(
        manifest,
        &bundle.root,
        request.python().as_deref(),
        request.deps().as_deref(),
    ) {
        Ok(Interpreter::Python(python)) => Interprets::Program(python.executable),
        Ok(Interpreter::Program(path)) => Interprets::Program(path),
        Ok(Interpreter::Direct) => Interprets::Nothing,
        Err(error) => Interprets::Missing(error),
    };
    let missing_env = missing_env(request, &bundle, &plan);
    let scripts = match manifest.entry {
        Entry::None => bundle.scripts()?,
        _ => Vec::new(),
    };
    Ok(Explanation {
        plan,
        ceiling,
        requirements,
        interpreter,
        missing_env,
        scripts,
        bundle,
    })
}

/// Required variables that nobody granted, and granted ones that have no value here.
fn missing_env(request: &Request, bundle: &Bundle, plan: &Plan) -> Vec<EnvName> {
    let mut missing: Vec<EnvName> = missing_required_env(&bundle.manifest, plan)
        .into_iter()
        .cloned()
        .collect();
    let required = bundle.manifest.env_vars.iter().filter(|v| v.required);
    for variable in required.filter(|v| plan.env.iter().any(|g| g.name == v.name)) {
        let given = request
            .env
            .iter()
            .any(|e| e.name == variable.name && e.value.is_some());
        if !given && request.caller.variable(variable.name.as_str()).is_none() {
            missing.push(variable.name.clone());
        }
    }
    missing
}
