use crate::model::{CallerGrants, Plan};
use crate::refusal::Refusal;
use crate::{audit, env, files, isolation, limits, network, receipt};
use skillcell_core::{Denials, HostFacts, SkillRef};
use skillcell_manifest::Manifest;
use skillcell_policy::Ceiling;

/// Everything that a plan depends on. Equal inputs make equal plans.
#[derive(Debug, Clone)]
pub struct PlanInput<'a> {
    pub skill: SkillRef,
    pub manifest: &'a Manifest,
    pub ceiling: &'a Ceiling,
    pub caller: &'a CallerGrants,
    pub host: &'a HostFacts,
}

/// Decides what one call may do, or why it can't be made.
///
/// What the caller got wrong or may not do comes first, then what this host or build can't hold:
/// an answer about the host is of no use to somebody who may not run the call anyway.
pub fn plan(input: &PlanInput<'_>) -> Result<Plan, Refusal> {
    let mut grants = Vec::new();
    let mut denials = Denials::default();

    let level = isolation::decide(input, &mut grants)?;
    let files = files::decide(input, &mut grants)?;
    let env = env::decide(input, &mut grants, &mut denials);
    let limits = limits::decide(input, &mut grants);
    let network = network::decide(input, level.effective, &env, &mut grants)?;
    isolation::must_be_available(&level, input.host)?;
    let audit = audit::decide(input, &mut grants);
    let receipt = receipt::decide(level.effective, &limits, &network, audit, input)?;

    Ok(Plan {
        skill: input.skill.clone(),
        isolation: level.effective,
        trusted: level.trusted,
        network,
        env,
        files,
        limits,
        audit: audit::possible(audit, input),
        receipt,
        grants,
        denials: denials.into_vec(),
    })
}
