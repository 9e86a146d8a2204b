//! The JSON mapping: ids in hexadecimal, 64-bit numbers as strings, enums as numbers.

use crate::line::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillcell_core::RunId;

/// A value of an attribute.
pub(super) struct Any(Value);

impl From<&str> for Any {
    fn from(text: &str) -> Any {
        Any(json!({"stringValue": text}))
    }
}

impl From<String> for Any {
    fn from(text: String) -> Any {
        Any(json!({"stringValue": text}))
    }
}

impl From<u64> for Any {
    fn from(number: u64) -> Any {
        // int64 has no room for the upper half.
        let number = number.min(i64::MAX as u64);
        Any(json!({"intValue": number.to_string()}))
    }
}

impl From<i32> for Any {
    fn from(number: i32) -> Any {
        Any(json!({"intValue": number.to_string()}))
    }
}

impl From<bool> for Any {
    fn from(value: bool) -> Any {
        Any(json!({"boolValue": value}))
    }
}

impl From<Vec<String>> for Any {
    fn from(items: Vec<String>) -> Any {
        let values: Vec<Value> = items.into_iter().map(|item| Any::from(item).0).collect();
        Any(json!({"arrayValue": {"values": values}}))
    }
}

pub(super) fn attribute(key: &str, value: impl Into<Any>) -> Value {
    json!({"key": key, "value": value.into().0})
}

/// Attributes, of which those without a value are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes(pub(super) Vec<Value>);

impl Attributes {
    pub(super) fn add(&mut self, key: &str, value: Option<impl Into<Any>>) -> &mut Attributes {
        if let Some(value) = value {
            self.0.push(attribute(key, value));
        }
        self
    }
}

/// Sixteen bytes: two zeros and the fourteen of the run's id, the random ones last.
pub(super) fn trace_id(run: &RunId) -> String {
    format!("{run:0>32}", run = run.as_str())
}

/// The same span has the same id in each export.
pub(super) fn span_id(run: &RunId, n: u64) -> String {
    let digest = Sha256::digest(format!("{run}/{n}"));
    let id = hex(&digest[..8]);
    match id.bytes().all(|b| b == b'0') {
        true => "0000000000000001".to_owned(),
        false => id,
    }
}

pub(super) fn nanos(unix_us: u64) -> String {
    unix_us.saturating_mul(1000).to_string()
}
