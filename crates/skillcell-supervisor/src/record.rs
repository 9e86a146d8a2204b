//! Opens the record of a call, before anything of the skill runs.

use crate::door::Door;
use crate::{CallError, Interaction, Request};
use skillcell_audit::{
    CallEnded, CallStarted, Event, Folder, Log, OnFailure, RecordFailed, Recorder, Redactor,
    Retention, Summary,
};
use skillcell_core::{AuditRef, Control, Enforcement, EnforcementStatus, RunId, Usage};
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
    let opened = Folder::of_user().and_then(|folder| Log::open(folder, retention(opening.terms)));
    let log = match (opened, on_failure) {
        (Ok(log), _) => Some(log),
        (Err(error), OnFailure::End) => return Err(error.into()),
        (Err(error), OnFailure::GoOn) => {
            degrade(&mut plan.receipt, &error.to_string());
            None
        }
    };
    let recorder = Recorder::new(log, opening.run_id.clone(), redactor, on_failure)?;
    recorder.decide(None, &started(request, plan, &recorder))?;
    if let Some(gap) = recorder.gap() {
        degrade(&mut plan.receipt, &gap);
        ui.warn(&format!("this call is not recorded: {gap}"));
    }
    Ok(recorder)
}

fn started(request: &Request, plan: &Plan, recorder: &Recorder) -> Event {
    let words = |text: &Option<String>| text.as_ref().map(|t| recorder.text(t.as_bytes()));
    Event::CallStarted(Box::new(CallStarted {
        skill: plan.skill.clone(),
        isolation: plan.isolation,
        trusted: plan.trusted,
        plan: plan.digest(),
        level: plan.audit,
        actor: words(&request.actor),
        request_id: words(&request.request_id),
        enforcement: plan.receipt.clone(),
    }))
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
