//! Variables: declared by the manifest and granted by the caller or the operator, or not inside.
//! Only names are handled here; values never reach a plan.

use crate::make::PlanInput;
use crate::model::{EnvGrant, Grant, Plan, Source};
use skillcell_core::{DenialKind, Denials, EnvName, Reason};
use skillcell_manifest::Manifest;
use std::collections::BTreeMap;

pub(crate) fn decide(
    input: &PlanInput<'_>,
    grants: &mut Vec<Grant>,
    denials: &mut Denials,
) -> Vec<EnvGrant> {
    let declared = declared(input.manifest);
    let allowed = &input.ceiling.env;
    let mut inside = Vec::new();
    for (name, required) in &declared {
        let source = if input.caller.env.contains(*name) {
            Some(Source::flag("--env"))
        } else if allowed.value.contains(*name) {
            Some(Source::from(&allowed.origin))
        } else {
            None
        };
        grants.push(Grant {
            what: format!("env.{name}"),
            asked: if *required { "required" } else { "optional" }.to_owned(),
            effective: if source.is_some() {
                "granted"
            } else {
                "not granted"
            }
            .to_owned(),
            source: source.clone().unwrap_or(Source::Manifest),
            narrowed_by: source.is_none().then(|| Source::from(&allowed.origin)),
        });
        if let Some(source) = source {
            inside.push(EnvGrant {
                name: (*name).clone(),
                source,
            });
        }
    }
    for name in input
        .caller
        .env
        .iter()
        .filter(|name| !declared.contains_key(name))
    {
        denials.record(
            DenialKind::Env,
            name.as_str(),
            Reason::EnvNotDeclared,
            format!("the manifest must declare it: `env: [{name}]` in security_policy"),
        );
    }
    inside
}

/// Names in order, and whether the skill says that it can't do without.
fn declared(manifest: &Manifest) -> BTreeMap<&EnvName, bool> {
    let mut names: BTreeMap<&EnvName, bool> = manifest
        .security_policy
        .env
        .iter()
        .map(|name| (name, false))
        .collect();
    for secret in &manifest.security_policy.secrets {
        names.entry(&secret.env).or_default();
    }
    for variable in &manifest.env_vars {
        *names.entry(&variable.name).or_default() |= variable.required;
    }
    names
}

/// Variables that the skill can't do without and that nobody granted. The plan holds all the same;
/// whoever runs it says so before the skill starts.
pub fn missing_required_env<'a>(manifest: &'a Manifest, plan: &Plan) -> Vec<&'a EnvName> {
    let inside = |name: &EnvName| plan.env.iter().any(|grant| grant.name == *name);
    declared(manifest)
        .into_iter()
        .filter(|(name, required)| *required && !inside(name))
        .map(|(name, _)| name)
        .collect()
}
