use skillcell_core::{AuditRef, Envelope, ErrorBody, Reason, RunId, SkillRef, Status, Usage};
use skillcell_supervisor::Outcome;
use std::time::{SystemTime, UNIX_EPOCH};

/// An envelope for a call that no supervisor can give one for.
pub fn failed(status: Status, code: Reason, message: impl Into<String>) -> Outcome {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis() as u64);
    // Time alone still tells runs apart well enough for a call that has no record.
    let random = getrandom::u64().unwrap_or(millis);
    Envelope {
        run_id: RunId::new(millis, random),
        skill: SkillRef::default(),
        status,
        result: None,
        error: Some(ErrorBody {
            code,
            message: message.into(),
            hint: None,
        }),
        denials: Vec::new(),
        enforcement: Vec::new(),
        usage: Usage::default(),
        audit: AuditRef::default(),
        output: None,
    }
}
