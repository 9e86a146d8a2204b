//! Who asks, and what they may say.
//!
//! The owner of the daemon could start `skillcell run` as well, so may say everything that it
//! takes. Anybody else acts with the daemon's rights, so may say only what leaves all decisions to
//! the operator: a path of theirs would be opened, a policy of theirs obeyed, and a variable's name
//! answered with the daemon's value.

use crate::api::{ApiCode, ApiError, Call};
use skillcell_bundle::SearchPath;
use skillcell_core::SkillId;
use skillcell_supervisor::ParamsSource;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The user that the daemon runs as, or root, on the unix socket.
    Owner,
    /// A user let in by `--allow-uid`, or who has a token. The name is for the record.
    Guest(String),
}

impl Caller {
    /// The call as this caller may make it, or why they may not.
    pub fn admit(&self, mut call: Call) -> Result<Call, ApiError> {
        let Caller::Guest(name) = self else {
            return Ok(call);
        };
        if let Some(field) = beyond_guests(&call) {
            return Err(forbidden(field));
        }
        call.request.actor = Some(name.clone());
        call.request.skill = find(&call.request.skill)?;
        Ok(call)
    }
}

/// The first thing in a call that is the owner's to say.
fn beyond_guests(call: &Call) -> Option<&'static str> {
    let r = &call.request;
    [
        (r.trust, "trust"),
        (!r.allow_degraded.is_empty(), "allow_degraded"),
        (!r.policy.is_empty(), "policy"),
        (r.python.is_some(), "python"),
        (r.deps.is_some(), "deps"),
        (!r.read.is_empty(), "read"),
        (!r.write.is_empty(), "write"),
        (matches!(r.params, ParamsSource::File(_)), "params_file"),
        (
            r.env.iter().any(|e| e.value.is_none()),
            "env without a value",
        ),
        (r.actor.is_some(), "actor"),
        (call.environment.is_some(), "environment"),
        (call.folder.is_some(), "folder"),
    ]
    .into_iter()
    .find_map(|(said, field)| said.then_some(field))
}

fn forbidden(field: &str) -> ApiError {
    ApiError::new(
        ApiCode::Forbidden,
        format!("`{field}` is for the user that the daemon runs as, not for other callers"),
    )
    .hint("leave it out; what a skill may do for other callers is in the operator's policy")
}

/// A guest names skills by id. The folder is looked up here: an engine would prefer a path of that
/// name where the daemon happens to stand.
fn find(reference: &str) -> Result<String, ApiError> {
    let unknown = || {
        ApiError::new(
            ApiCode::NotFound,
            format!(
                "there is no skill `{}` in the daemon's search path",
                cut(reference)
            ),
        )
        .hint(
            "callers other than the daemon's own user name skills by id; GET /v1/skills lists them",
        )
    };
    let id = SkillId::parse(reference).map_err(|_| unknown())?;
    let folder = SearchPath::from_env(&[])
        .folders
        .iter()
        .map(|folder| folder.join(id.as_str()))
        .find(|folder: &PathBuf| folder.is_dir())
        .ok_or_else(unknown)?;
    let folder = std::fs::canonicalize(folder).map_err(|_| unknown())?;
    folder.into_os_string().into_string().map_err(|_| unknown())
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::RunRequest;

    fn call(json: &str) -> Call {
        let request: RunRequest = serde_json::from_str(json).unwrap();
        request.into_call().unwrap()
    }

    #[test]
    fn guests_may_not_say_what_is_the_owners_to_say() {
        let guest = Caller::Guest("x".to_owned());
        for field in [
            r#""trust": true"#,
            r#""allow_degraded": ["network"]"#,
            r#""policy": ["/tmp/p.yaml"]"#,
            r#""python": "/tmp/python""#,
            r#""deps": "/tmp/deps""#,
            r#""read": ["/etc/shadow"]"#,
            r#""write": ["/etc/x"]"#,
            r#""params_file": "/etc/shadow""#,
            r#""env": [{"name": "A", "value": "x"}, {"name": "TOKEN"}]"#,
            r#""actor": "somebody""#,
            r#""environment": {}"#,
            r#""folder": "/""#,
        ] {
            let json = format!("{{\"skill\": \"hello\", {field}}}");
            let refused = guest.admit(call(&json)).expect_err(field);
            assert_eq!(refused.code, ApiCode::Forbidden, "{field}");
            assert!(Caller::Owner.admit(call(&json)).is_ok(), "{field}");
        }
    }

    #[test]
    fn guests_name_no_paths() {
        let guest = Caller::Guest("x".to_owned());
        for skill in [
            "/tmp",
            "./skills/x",
            "../x",
            "tmp/..",
            "no/such/id",
            "no_such_skill",
        ] {
            let json = serde_json::json!({"skill": skill}).to_string();
            let refused = guest.admit(call(&json)).expect_err(skill);
            assert_eq!(refused.code, ApiCode::NotFound, "{skill}");
        }
    }
}
