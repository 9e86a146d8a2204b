//! Opens the record of a call, before anything of the skill runs.

use crate::door::Door;
use crate::{CallError, Interaction, Known, Request};
use skillcell_audit::{
    AuditError, CallEnded, CallRefused, CallStarted, Event, Folder, Log, OnFailure, RecordFailed,
    Recorder, Redactor, Retention, Summary, Text,
};
use skillcell_core::{
    AuditRef, Control, Denial, Denials, Enforcement, EnforcementStatus, RunId, Usage,
};
use skillcell_plan::Plan;
use skillcell_policy::LogTerms;
use std::collections::BTreeMap;
use std::time::Duration;

const DAY: u64 = 24 * 3600;

/// What the record of a call is opened with.
pub(crate) struct Opening<'a> {
    pub(crate) request: &'a Request,
    pub(crate) plan: &'a mut Plan,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) door: &'a Door,
    pub(crate) terms: &'a LogTerms,
    pub(crate) run_id: &'a RunId,
    /// The run that loaded the skill, where it was not this one.
    pub(crate) template: Option<&'a str>,
}

/// Opens the log and writes that the call starts. Where that can't be done the call is refused, or
/// goes on unrecorded because the caller said so by name; then the receipt says so.
pub(crate) fn open(opening: Opening<'_>, ui: &dyn Interaction) -> Result<Recorder, CallError> {
    let Opening { request, plan, .. } = opening;
    let granted = plan
        .env
        .iter()
        .filter_map(|grant| Some((opening.env.get(grant.name.as_str())?, grant.name.as_str())));
    let hidden = opening
        .door
        .hidden
        .iter()
        .map(|(name, value)| (value, name.as_str()));
    let redactor = Redactor::new(
        granted
            .chain(hidden)
            .map(|(value, name)| (value.as_str(), name)),
    );
    let on_failure = if request.allow_degraded.contains(&Control::Audit) {
        OnFailure::GoOn
    } else {
        OnFailure::End
    };
    let log = match (open_log(opening.terms), on_failure) {
        (Ok(log), _) => Some(log),
        (Err(error), OnFailure::End) => return Err(error.into()),
        (Err(error), OnFailure::GoOn) => {
            degrade(&mut plan.receipt, &error.to_string());
            None
        }
    };
    let recorder = Recorder::new(log, opening.run_id.clone(), redactor, on_failure)?;
    let template = words(&recorder, opening.template);
    recorder.decide(None, &started(request, plan, &recorder, template))?;
    if let Some(gap) = recorder.gap() {
        degrade(&mut plan.receipt, &gap);
        ui.warn(&format!("this call is not recorded: {gap}"));
    }
    Ok(recorder)
}

fn started(request: &Request, plan: &Plan, recorder: &Recorder, template: Option<Text>) -> Event {
    Event::CallStarted(Box::new(CallStarted {
        skill: plan.skill.clone(),
        isolation: plan.isolation,
        trusted: plan.trusted,
        plan: plan.digest(),
        level: plan.audit,
        actor: words(recorder, request.actor.as_deref()),
        request_id: words(recorder, request.request_id.as_deref()),
        enforcement: plan.receipt.clone(),
        template,
    }))
}

fn open_log(terms: &LogTerms) -> Result<Log, AuditError> {
    Log::open(Folder::of_user()?, retention(terms))
}

fn words(recorder: &Recorder, text: Option<&str>) -> Option<Text> {
    text.map(|t| recorder.text(t.as_bytes()))
}

/// Writes the last event, and says in the receipt if the record has a gap.
pub(crate) fn close(
    recorder: &Recorder,
    event: &Event,
    receipt: &mut [Enforcement],
) -> Result<AuditRef, RecordFailed> {
    let audit = recorder.finish(event)?;
    if let Some(gap) = recorder.gap() {
        degrade(receipt, &gap);
    }
    Ok(audit)
}

/// Writes the end of a call that was started and came to nothing. A record that has failed already
/// says nothing more.
pub(crate) fn abandon(recorder: &Recorder, error: &CallError) -> AuditRef {
    let ended = Event::CallEnded(Box::new(CallEnded {
        status: error.status(),
        reason: Some(error.body().code),
        denials: error.denials(),
        usage: Usage::default(),
        summary: Summary::default(),
    }));
    recorder.finish(&ended).unwrap_or_default()
}

/// Writes that a call came to nothing before its record was opened. It is refused for its own reason
/// either way, so a log that can't be written changes nothing.
pub(crate) fn refuse(
    request: &Request,
    known: &Known,
    run_id: &RunId,
    error: &CallError,
) -> AuditRef {
    // A name that no skill has is no call, and a log that has just failed is not tried again.
    let log_failed = matches!(error, CallError::Audit(_) | CallError::Record(_));
    if known.skill.id.is_none() || log_failed {
        return AuditRef::default();
    }
    write_refusal(request, known, run_id, error).unwrap_or_default()
}

fn write_refusal(
    request: &Request,
    known: &Known,
    run_id: &RunId,
    error: &CallError,
) -> Result<AuditRef, CallError> {
    let log = open_log(&known.log)?;
    let hidden = hidden_values(request, known);
    let redactor = Redactor::new(hidden.iter().map(|(v, n)| (v.as_str(), n.as_str())));
    let recorder = Recorder::new(Some(log), run_id.clone(), redactor, OnFailure::End)?;
    let refused = Event::CallRefused(Box::new(CallRefused {
        skill: known.skill.clone(),
        status: error.status(),
        reason: error.reason(),
        denials: cleaned(error.denials(), recorder.redactor()),
        actor: words(&recorder, request.actor.as_deref()),
        request_id: words(&recorder, request.request_id.as_deref()),
    }));
    Ok(recorder.finish(&refused)?)
}

/// All that the skill might have been given, with the names: nothing was granted yet.
fn hidden_values(request: &Request, known: &Known) -> Vec<(String, String)> {
    let given = request.env.iter().map(|arg| (&arg.name, arg.value.clone()));
    let asked = known.env.iter().map(|name| (name, None));
    given
        .chain(asked)
        .filter_map(|(name, value)| {
            let value = value.or_else(|| request.caller.variable(name.as_str()))?;
            Some((value, name.to_string()))
        })
        .collect()
}

/// What was asked for may hold what the skill was given.
pub(crate) fn clean(denial: &mut Denial, redactor: &Redactor) {
    denial.target = redactor.clean(&denial.target);
    denial.hint = redactor.clean(&denial.hint);
}

/// Without secrets, and no more than a line of the log has room for: params may name any number of
/// files.
fn cleaned(denials: Vec<Denial>, redactor: &Redactor) -> Vec<Denial> {
    let mut bounded = Denials::default();
    for mut denial in denials {
        clean(&mut denial, redactor);
        bounded.add(denial);
    }
    bounded.into_vec()
}

fn degrade(receipt: &mut [Enforcement], why: &str) {
    for entry in receipt.iter_mut().filter(|e| e.control == Control::Audit) {
        entry.mechanism = format!("none: {why}");
        entry.status = EnforcementStatus::Degraded;
    }
}

fn retention(terms: &LogTerms) -> Retention {
    let default = Retention::default();
    let days = |days: u32| Duration::from_secs(u64::from(days) * DAY);
    Retention {
        segment_bytes: terms
            .segment
            .map_or(default.segment_bytes, |size| size.bytes()),
        segment_age: terms.segment_days.map_or(default.segment_age, days),
        keep_bytes: terms.keep.map(|size| size.bytes()),
        keep_age: terms.keep_days.map(days),
    }
}
