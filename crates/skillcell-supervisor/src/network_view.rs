//! What a skill's network would be, for asking about single destinations. Nothing runs and nothing
//! is resolved.

use crate::{CallError, Request, prepare};
use skillcell_core::EnvName;
use skillcell_manifest::{DenyRule, EgressRule, SecretBinding};
use skillcell_plan::effective_egress;
use skillcell_policy::{Bounded, Ceiling};

/// Both sides of a skill's network, and what they come to.
#[derive(Debug)]
pub struct NetworkView {
    pub skill: String,
    /// The manifest's rules.
    pub asked: Vec<EgressRule>,
    pub asked_deny: Vec<DenyRule>,
    pub asked_secrets: Vec<SecretBinding>,
    /// Variables that the manifest asks for, secrets aside.
    pub asked_env: Vec<EnvName>,
    /// What the operator allows.
    pub ceiling: Ceiling,
    /// What both allow; `deny` entries are not taken off yet.
    pub effective: Vec<EgressRule>,
}

impl NetworkView {
    /// Every `deny` entry that holds, the operator's with their origin.
    pub fn deny(&self) -> Vec<DenyRule> {
        let operator = self.ceiling.deny.iter().map(|denied| denied.value.clone());
        self.asked_deny.iter().cloned().chain(operator).collect()
    }

    /// The operator's entries.
    pub fn operator_deny(&self) -> &[Bounded<DenyRule>] {
        &self.ceiling.deny
    }
}

/// Reads the skill and the policies of a request.
pub fn network_view(request: &Request) -> Result<NetworkView, CallError> {
    let bundle = prepare::open_bundle(request)?;
    let digest = bundle.fingerprint()?.digest;
    let ceiling = prepare::ceiling(request, &bundle, Some(&digest))?;
    let manifest = &bundle.manifest;
    let policy = &manifest.security_policy;
    let required = manifest.env_vars.iter().map(|variable| &variable.name);
    Ok(NetworkView {
        skill: manifest.id.to_string(),
        asked: policy.network.egress.clone(),
        asked_deny: policy.network.deny.clone(),
        asked_secrets: policy.secrets.clone(),
        asked_env: policy.env.iter().chain(required).cloned().collect(),
        effective: effective_egress(manifest, &ceiling)?,
        ceiling,
    })
}
