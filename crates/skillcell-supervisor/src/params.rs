//! Params: read, parsed, and checked against the skill's schema before anything starts.

use crate::marshal::MAX_DEPTH;
use crate::{CallError, Caller, ParamsSource, simple_schema};
use serde_json::Value;
use std::io::Read;

/// Params of a call are data for one skill, not a file transfer.
const MAX_PARAMS: u64 = 64 << 20;

/// The params as an object; `None` where none were given.
pub(crate) fn read(source: &ParamsSource, caller: &Caller) -> Result<Option<Value>, CallError> {
    let (text, from) = match source {
        ParamsSource::None => return Ok(None),
        ParamsSource::Text(text) => (text.clone(), "--params".to_owned()),
        ParamsSource::File(path) => {
            let error = |source| CallError::ParamsFile {
                path: path.clone(),
                source,
            };
            let file = std::fs::File::open(caller.path(path)).map_err(error)?;
            (bounded(file).map_err(error)?, path.display().to_string())
        }
        ParamsSource::Stdin | ParamsSource::StdinWas(_) => {
            let text = match source {
                ParamsSource::StdinWas(bytes) => bounded(bytes.as_slice()),
                _ => bounded(std::io::stdin().lock()),
            };
            let error = |source| CallError::ParamsFile {
                path: "standard input".into(),
                source,
            };
            (text.map_err(error)?, "standard input".to_owned())
        }
    };
    let value: Value = serde_json::from_str(&text).map_err(|e| {
        let message = e.to_string();
        let message = message
            .split(" at line")
            .next()
            .unwrap_or(&message)
            .to_owned();
        CallError::ParamsNotJson {
            from,
            line: e.line(),
            column: e.column(),
            message,
        }
    })?;
    if !value.is_object() {
        return Err(CallError::ParamsShape(format!(
            "must be a JSON object, not {}",
            kind(&value)
        )));
    }
    if depth(&value) > MAX_DEPTH {
        return Err(CallError::ParamsShape(format!(
            "nested more than {MAX_DEPTH} levels deep"
        )));
    }
    if let Some(digits) = wide_integer(&text) {
        return Err(CallError::ParamsShape(format!(
            "the integer {digits}… has more than 64 bits and would lose digits; pass it as a string"
        )));
    }
    Ok(Some(value))
}

fn bounded(mut reader: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    reader
        .by_ref()
        .take(MAX_PARAMS + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_PARAMS {
        return Err(std::io::Error::other("more than 64 MiB of params"));
    }
    Ok(text)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The start of an integer in JSON text that neither i64 nor u64 holds.
fn wide_integer(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let start = at;
                while at < bytes.len()
                    && matches!(bytes[at], b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
                {
                    at += 1;
                }
                let number = &json[start..at];
                let integer = !number.contains(['.', 'e', 'E']);
                if integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number.chars().take(12).collect());
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// Whether a skill's `parameters` are a JSON Schema that params can be checked against.
pub fn check_schema(schema: &Value) -> Result<(), CallError> {
    validator(schema).map(drop)
}

fn validator(schema: &Value) -> Result<jsonschema::Validator, CallError> {
    let options = jsonschema::options();
    // Every call pays for the meta-schema, and that of the newest draft costs milliseconds. A schema
    // of plain keywords means the same in draft 7.
    let options = if is_plain(schema) {
        options.with_draft(jsonschema::Draft::Draft7)
    } else {
        options
    };
    options
        .build(schema)
        .map_err(|e| CallError::SchemaInvalid(clip(&e.to_string())))
}

/// Whether a schema has only keywords that all drafts since 6 read alike.
fn is_plain(schema: &Value) -> bool {
    const PLAIN: &[&str] = &[
        "type",
        "title",
        "description",
        "default",
        "examples",
        "enum",
        "const",
        "required",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
    ];
    match schema {
        Value::Bool(_) => true,
        Value::Object(entries) => entries.iter().all(|(key, value)| match key.as_str() {
            "items" | "additionalProperties" => is_plain(value),
            "properties" => value.as_object().is_some_and(|p| p.values().all(is_plain)),
            key => PLAIN.contains(&key),
        }),
        _ => false,
    }
}

/// Checks params against the manifest's schema. References outside of it are not followed.
pub(crate) fn validate(params: &Value, schema: Option<&Value>) -> Result<(), CallError> {
    let Some(schema) = schema else { return Ok(()) };
    if simple_schema::accepts(schema, params) {
        return Ok(());
    }
    let validator = validator(schema)?;
    let mut errors = validator.iter_errors(params);
    let Some(first) = errors.next() else {
        return Ok(());
    };
    let place = first.instance_path().to_string();
    let place = if place.is_empty() {
        String::new()
    } else {
        format!(" at `{place}`")
    };
    let more = errors.take(100).count();
    let rest = if more > 0 {
        format!(" (and {more} more)")
    } else {
        String::new()
    };
    Err(CallError::ParamsSchema(format!(
        "{}{place}{rest}",
        clip(&first.to_string())
    )))
}

/// Values of params can be large; an error message needn't be.
fn clip(text: &str) -> String {
    const MAX: usize = 400;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Value>, CallError> {
        read(&ParamsSource::Text(text.into()), &Caller::default())
    }

    #[test]
    fn params_are_an_object() {
        assert!(parse("{}").is_ok());
        for bad in ["", "[]", "1", "null", "{", "{'a': 1}", "{} {}"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn integers_that_would_lose_digits_are_rejected() {
        assert!(
            parse(r#"{"a": 18446744073709551615, "b": "99999999999999999999999", "c": 1e30}"#)
                .is_ok()
        );
        assert!(parse(r#"{"a": 18446744073709551616}"#).is_err());
    }

    #[test]
    fn a_schema_names_the_place_that_does_not_match() {
        let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        assert!(validate(&serde_json::json!({"n": 1}), Some(&schema)).is_ok());
        let error = validate(&serde_json::json!({"n": "x"}), Some(&schema))
            .expect_err("a string")
            .to_string();
        assert!(error.contains("/n"), "{error}");
        assert!(validate(&serde_json::json!({}), Some(&schema)).is_err());
    }

    #[test]
    fn schemas_with_newer_keywords_are_read_by_the_newest_draft() {
        let plain = serde_json::json!({"type": "object", "properties": {"a": {"enum": ["x"]}}, "additionalProperties": false});
        assert!(is_plain(&plain));
        assert!(validate(&serde_json::json!({"a": "y"}), Some(&plain)).is_err());
        assert!(validate(&serde_json::json!({"b": "x"}), Some(&plain)).is_err());
        let newer = serde_json::json!({"type": "object", "dependentRequired": {"a": ["b"]}});
        assert!(!is_plain(&newer));
        assert!(validate(&serde_json::json!({"a": 1}), Some(&newer)).is_err());
    }

    #[test]
    fn a_schema_can_not_make_the_host_fetch_anything() {
        let schema = serde_json::json!({"$ref": "http://192.0.2.1/schema.json"});
        assert!(matches!(
            validate(&serde_json::json!({}), Some(&schema)),
            Err(CallError::SchemaInvalid(_))
        ));
        let schema = serde_json::json!({"$ref": "file:///etc/passwd"});
        assert!(matches!(
            validate(&serde_json::json!({}), Some(&schema)),
            Err(CallError::SchemaInvalid(_))
        ));
    }
}
