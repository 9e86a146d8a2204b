//! The skill's result: hostile bytes that become one JSON value, or a reason why not.

use crate::marshal::{self, MAX_DEPTH};
use crate::watch::FRAME_HEADER;
use serde_json::Value;
use serde_json::value::RawValue;
use skillcell_core::Reason;

/// What came out on the result descriptor.
#[derive(Debug)]
pub(crate) enum Frame {
    Value(Box<RawValue>),
    /// The runner's report of an exception.
    Failed(Report),
    Invalid(Reason, String),
    /// Nothing, or not even a frame.
    Missing,
}

/// An exception of the skill, with only its own files in the traceback.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct Report {
    /// `load`, `execute` or `result`.
    pub(crate) stage: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) frames: Vec<String>,
    /// The module that could not be found.
    pub(crate) module: Option<String>,
    /// Of an `OSError`.
    pub(crate) errno: Option<i64>,
}

pub(crate) fn from_frame(bytes: &[u8]) -> Frame {
    let Some((kind, payload)) = split(bytes) else {
        return Frame::Missing;
    };
    match kind {
        b'M' => match marshal::to_json(payload) {
            Ok(json) => raw(json),
            Err(error) => Frame::Invalid(
                if error == marshal::NotJson::TooDeep {
                    Reason::ResultTooDeep
                } else {
                    Reason::ResultNotJson
                },
                format!("the result is not JSON: {error}"),
            ),
        },
        b'J' => match std::str::from_utf8(payload) {
            Ok(text) => match check_json(text) {
                Ok(value) => Frame::Value(value),
                Err((code, reason)) => Frame::Invalid(code, reason),
            },
            Err(_) => Frame::Invalid(
                Reason::ResultNotJson,
                "the result is not JSON: it is not UTF-8".into(),
            ),
        },
        b'E' => match marshal::to_json(payload)
            .ok()
            .and_then(|json| serde_json::from_str(&json).ok())
        {
            Some(report) => Frame::Failed(report),
            None => Frame::Missing,
        },
        _ => Frame::Missing,
    }
}

fn split(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let length: [u8; 8] = bytes.get(1..FRAME_HEADER)?.try_into().ok()?;
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let payload = bytes.get(FRAME_HEADER..)?;
    (payload.len() == length).then(|| (bytes[0], payload))
}

fn raw(json: String) -> Frame {
    match RawValue::from_string(json) {
        Ok(value) => Frame::Value(value),
        Err(error) => Frame::Invalid(
            Reason::ResultNotJson,
            format!("the result is not JSON: {error}"),
        ),
    }
}

/// One JSON value in a text, kept as it was written. NaN and infinity are no JSON; depth is limited
/// so that whoever reads the envelope doesn't fall over.
pub(crate) fn check_json(text: &str) -> Result<Box<RawValue>, (Reason, String)> {
    let broken = |e: serde_json::Error| {
        (
            Reason::ResultNotJson,
            format!("the result is not JSON: {e}"),
        )
    };
    let trimmed = text.trim();
    if nesting(trimmed) > MAX_DEPTH {
        return Err((
            Reason::ResultTooDeep,
            format!("the result is nested more than {MAX_DEPTH} levels deep"),
        ));
    }
    // RawValue skips over values without looking into numbers; a full parse checks everything.
    serde_json::from_str::<serde::de::IgnoredAny>(trimmed).map_err(broken)?;
    RawValue::from_string(trimmed.to_owned()).map_err(broken)
}

/// The deepest nesting of brackets outside of strings.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(inner) = bytes.next() {
                    match inner {
                        b'\\' => {
                            bytes.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// How skills say that they failed, besides raising: `{"error": …}`, `{"status": "error"}`,
/// `{"success": false}`. Gives the words for it.
pub(crate) fn reported_error(result: &RawValue) -> Option<String> {
    if !result.get().starts_with('{') {
        return None;
    }
    #[derive(serde::Deserialize)]
    struct Claims {
        error: Option<Value>,
        status: Option<Value>,
        success: Option<Value>,
        message: Option<Value>,
    }
    let claims: Claims = serde_json::from_str(result.get()).ok()?;
    let text = |value: &Value| match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    let truthy = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    };
    let error = claims.error.as_ref().filter(|e| truthy(e));
    let failed = error.is_some()
        || claims
            .status
            .as_ref()
            .and_then(Value::as_str)
            .is_some_and(|s| s.eq_ignore_ascii_case("error"))
        || claims.success == Some(Value::Bool(false));
    failed.then(|| {
        error
            .or(claims.message.as_ref())
            .map_or_else(|| "the skill says that it failed".to_owned(), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_digits_and_order() {
        let value =
            check_json(r#" {"b": 123456789012345678901234567890, "a": 1.50} "#).expect("JSON");
        assert_eq!(
            value.get(),
            r#"{"b": 123456789012345678901234567890, "a": 1.50}"#
        );
    }

    #[test]
    fn what_is_not_one_json_value_is_rejected_with_a_reason() {
        for bad in [
            "",
            "NaN",
            "[Infinity]",
            "{} {}",
            "{'a': 1}",
            "[1,]",
            "\u{feff}{}",
            "01",
        ] {
            assert!(check_json(bad).is_err(), "{bad}");
        }
        assert!(
            check_json(&format!("{}{}", "[".repeat(200), "]".repeat(200)))
                .is_err_and(|(code, _)| code == Reason::ResultTooDeep)
        );
        assert!(check_json(&"[".repeat(1 << 20)).is_err());
        assert!(check_json("\"[[[[\\\"[[\"").is_ok());
    }

    #[test]
    fn errors_that_skills_report_as_data_are_recognised() {
        let said = |text: &str| reported_error(&check_json(text).expect("JSON"));
        assert_eq!(said(r#"{"error": "no key"}"#).as_deref(), Some("no key"));
        assert_eq!(
            said(r#"{"status": "error", "message": "bad"}"#).as_deref(),
            Some("bad")
        );
        assert!(said(r#"{"success": false}"#).is_some());
        for fine in [
            r#"{"error": null}"#,
            r#"{"error": ""}"#,
            r#"{"status": "ok"}"#,
            r#"{"errors": []}"#,
            "[1]",
            "\"error\"",
        ] {
            assert_eq!(said(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_frame_must_be_whole() {
        assert!(matches!(from_frame(b""), Frame::Missing));
        assert!(matches!(
            from_frame(b"J\x05\0\0\0\0\0\0\0null"),
            Frame::Missing
        ));
        assert!(matches!(
            from_frame(b"J\x04\0\0\0\0\0\0\0null"),
            Frame::Value(_)
        ));
        assert!(matches!(
            from_frame(b"J\x03\0\0\0\0\0\0\0NaN"),
            Frame::Invalid(..)
        ));
    }
}
