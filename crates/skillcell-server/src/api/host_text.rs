use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A path or a value as the host has it: text, or its bytes where they are not UTF-8. Dropping such
/// a value instead would change which policy a call finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostText(pub OsString);

impl HostText {
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }
}

impl<T: Into<OsString>> From<T> for HostText {
    fn from(text: T) -> Self {
        HostText(text.into())
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, or a list of bytes")]
enum Raw {
    Text(String),
    Bytes(Vec<u8>),
}

impl<'de> Deserialize<'de> for HostText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = match Raw::deserialize(deserializer)? {
            Raw::Text(text) => text.into_bytes(),
            Raw::Bytes(bytes) => bytes,
        };
        if bytes.contains(&0) {
            return Err(D::Error::custom("a NUL byte can't be part of it"));
        }
        Ok(HostText(OsString::from_vec(bytes)))
    }
}

impl Serialize for HostText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_bytes().serialize(serializer),
        }
    }
}

impl JsonSchema for HostText {
    fn schema_name() -> Cow<'static, str> {
        "HostText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Text of the host; its bytes where they are not UTF-8.",
            "anyOf": [
                {"type": "string", "pattern": "^[^\\x00]*$"},
                {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 255}},
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_survive_the_way() {
        for bytes in [&b"plain"[..], "é".as_bytes(), b"\xff\xfe/x", b""] {
            let text = HostText(OsString::from_vec(bytes.to_vec()));
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<HostText>(&json).unwrap(), text);
        }
    }

    #[test]
    fn nul_bytes_are_rejected_in_both_forms() {
        for json in [r#""a\u0000b""#, "[97,0]"] {
            assert!(serde_json::from_str::<HostText>(json).is_err(), "{json}");
        }
    }
}
