use super::{Resolved, Scalar};
use crate::{ManifestError, error::clean};
use skillcell_core::Location;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub value: Value,
    pub location: Location,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    /// In the order of the file; keys are distinct.
    Mapping(Vec<Entry>),
}

/// A key and its value. A key is the text of a scalar, however that was written: `1` and `"1"`
/// are the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub key_location: Location,
    pub value: Node,
}

impl Node {
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    pub fn index(&self, index: usize) -> Option<&Node> {
        match &self.value {
            Value::Sequence(items) => items.get(index),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.resolve() == Resolved::Null)
    }

    /// What this node is, in words for a message.
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
            Value::Scalar(scalar) => match scalar.resolve() {
                Resolved::Null => "nothing".to_owned(),
                Resolved::Bool(value) => format!("the boolean {value}"),
                Resolved::Unsigned(_) | Resolved::Signed(_) | Resolved::Float(_) => {
                    format!("the number {}", clean(&scalar.text))
                }
                Resolved::Text(text) => format!("the text `{}`", clean(text)),
            },
        }
    }

    pub(crate) fn entries(&self, field: &str) -> Result<&[Entry], ManifestError> {
        match &self.value {
            Value::Mapping(entries) => Ok(entries),
            _ => Err(self.wrong_type(field, "a mapping")),
        }
    }

    pub(crate) fn items(&self, field: &str) -> Result<&[Node], ManifestError> {
        match &self.value {
            Value::Sequence(items) => Ok(items),
            _ => Err(self.wrong_type(field, "a list")),
        }
    }

    /// A scalar as it is written, so that a version `1.10` stays `1.10`.
    pub(crate) fn text(&self, field: &str) -> Result<&str, ManifestError> {
        match &self.value {
            Value::Scalar(scalar) if !self.is_null() => Ok(&scalar.text),
            _ => Err(self.wrong_type(field, "text")),
        }
    }

    pub(crate) fn wrong_type(&self, field: &str, expected: &'static str) -> ManifestError {
        ManifestError::WrongType {
            field: clean(field),
            expected,
            found: self.kind(),
            location: self.location,
        }
    }
}
