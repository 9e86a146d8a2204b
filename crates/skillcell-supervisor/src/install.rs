//! Dependencies ahead of the first call.

use crate::prepare::{self, InstallTerms};
use crate::program::{self, Interpreter};
use crate::{CallError, Interaction, Request};
use rustix::fd::AsFd;
use skillcell_core::{Digest, HostFacts, SkillRef};
use std::path::PathBuf;

/// What became of one skill's requirements.
#[derive(Debug)]
pub struct Installed {
    pub skill: String,
    pub requirements: Vec<String>,
    /// `None` where nothing had to be installed.
    pub environment: Option<(Digest, PathBuf)>,
    /// Installed just now, not found in the cache.
    pub fresh: bool,
}

/// Installs what a call of this skill would need, on the same terms. The process must be
/// single-threaded.
pub fn prepare_dependencies(
    request: &Request,
    host: &HostFacts,
    ui: &dyn Interaction,
) -> Result<Installed, CallError> {
    let bundle = prepare::open_bundle(request)?;
    let skill = SkillRef {
        id: Some(bundle.manifest.id.to_string()),
        version: bundle.manifest.version.clone(),
        digest: Some(bundle.fingerprint()?.digest),
    };
    let (plan, ceiling) = prepare::decide(request, &bundle, &skill, Vec::new(), host)?;
    let mut installed = Installed {
        skill: bundle.manifest.id.to_string(),
        requirements: prepare::requirements(&bundle)?,
        environment: None,
        fresh: false,
    };
    if installed.requirements.is_empty() {
        return Ok(installed);
    }
    let found = program::interpreter(
        &bundle.manifest,
        &bundle.root,
        request.python.as_deref(),
        None,
    )?;
    let Interpreter::Python(python) = found else {
        return Ok(installed);
    };
    let signals =
        skillcell_linux::termination_signals().map_err(skillcell_backend::BackendError::Linux)?;
    let terms = InstallTerms {
        ceiling: &ceiling,
        isolation: plan.isolation,
        host,
    };
    let environment = prepare::install(
        &installed.requirements,
        &python,
        &terms,
        ui,
        Some(signals.as_fd()),
    )?;
    if let Some(environment) = environment {
        installed.fresh = environment.fresh;
        installed.environment = Some((environment.key.clone(), environment.site.clone()));
    }
    Ok(installed)
}
