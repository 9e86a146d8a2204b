//! The plan's fingerprint: templates and audit events refer to it.

use crate::model::Plan;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use skillcell_core::Digest;

impl Plan {
    /// The digest of what holds for every call under the same manifest, policy and flags, whatever
    /// files its params name.
    pub fn base_digest(&self) -> Digest {
        Plan {
            files: Vec::new(),
            grants: Vec::new(),
            denials: Vec::new(),
            ..self.clone()
        }
        .digest()
    }

    /// SHA-256 over the plan as JSON with sorted keys and no spaces. Equal for equal plans, in any
    /// process and build that writes a plan with the same fields.
    pub fn digest(&self) -> Digest {
        let text = match serde_json::to_value(self) {
            Ok(value) => {
                let mut text = String::new();
                write(&value, &mut text);
                text
            }
            // A plan made by `plan` always serialises. One put together by hand may hold a path that
            // is not UTF-8; it still gets a fingerprint of its own.
            Err(_) => format!("{self:?}"),
        };
        Digest::sha256(&Sha256::digest(text.as_bytes()).into())
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            list(out, ['{', '}'], keys, |(key, value), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(value, out);
            });
        }
        Value::Array(items) => list(out, ['[', ']'], items, write),
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    each: impl Fn(T, &mut String),
) {
    out.push(open);
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_has_sorted_keys_and_no_spaces() {
        let value: Value =
            serde_json::from_str(r#"{"b": [1, {"z": null, "a\"": 0.5}], "a": "x"}"#).expect("JSON");
        let mut text = String::new();
        write(&value, &mut text);
        assert_eq!(text, r#"{"a":"x","b":[1,{"a\"":0.5,"z":null}]}"#);
    }
}
