//! Tree to typed values, through serde, with a place in every error.
//!
//! Stricter than serde's habits: a mapping is never read from a list, text never from a number.

use super::access::{Entries, Items, Variant};
use super::{Node, Resolved, Value};
use crate::error::clean;
use serde::de::{self, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use skillcell_core::Location;
use std::fmt;

/// Why a tree is not the value that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    pub message: String,
    /// Known in every error that [`Node::decode`] gives.
    pub location: Option<Location>,
}

impl DecodeError {
    pub(super) fn at(mut self, location: Location) -> Self {
        self.location.get_or_insert(location);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = clean(&message.to_string());
        DecodeError {
            message,
            location: None,
        }
    }
}

impl Node {
    pub fn decode<'de, T: de::Deserialize<'de>>(&'de self) -> Result<T, DecodeError> {
        T::deserialize(self).map_err(|e| e.at(self.location))
    }

    pub(super) fn expected(&self, what: &str) -> DecodeError {
        let message = format!("expected {what}, found {}", self.kind());
        DecodeError {
            message,
            location: Some(self.location),
        }
    }
}

/// Whole numbers, with the range in words that aren't the name of a Rust type.
macro_rules! integers {
    ($($method:ident => $type:ty, $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            let number = match &self.value {
                Value::Scalar(scalar) => match scalar.resolve() {
                    Resolved::Unsigned(n) => <$type>::try_from(n).ok(),
                    Resolved::Signed(n) => <$type>::try_from(n).ok(),
                    _ => None,
                },
                _ => None,
            };
            match number {
                Some(n) => visitor.$visit(n),
                None => Err(self.expected(&format!(
                    "a whole number from {} to {}", <$type>::MIN, <$type>::MAX
                ))),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::Sequence(items) => visitor.visit_seq(Items::new(items)),
            Value::Mapping(entries) => visitor.visit_map(Entries::new(entries)),
            Value::Scalar(scalar) => match scalar.resolve() {
                Resolved::Null => visitor.visit_unit(),
                Resolved::Bool(value) => visitor.visit_bool(value),
                Resolved::Unsigned(value) => visitor.visit_u64(value),
                Resolved::Signed(value) => visitor.visit_i64(value),
                Resolved::Float(value) => visitor.visit_f64(value),
                Resolved::Text(text) => visitor.visit_borrowed_str(text),
            },
        }
        .map_err(|e| e.at(self.location))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::Scalar(scalar) => match scalar.resolve() {
                Resolved::Text(text) => visitor
                    .visit_borrowed_str(text)
                    .map_err(|e: DecodeError| e.at(self.location)),
                _ => Err(self.expected("text")),
            },
            _ => Err(self.expected("text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::Sequence(_) => self.deserialize_any(visitor),
            _ => Err(self.expected("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::Mapping(_) => self.deserialize_any(visitor),
            _ => Err(self.expected("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let (name, value) = match &self.value {
            Value::Scalar(scalar) if scalar.resolve() == Resolved::Text(&scalar.text) => {
                (scalar.text.as_str(), None)
            }
            Value::Mapping(entries) => match entries.as_slice() {
                [only] => (only.key.as_str(), Some(&only.value)),
                _ => return Err(self.expected("a mapping with one key")),
            },
            _ => return Err(self.expected("text")),
        };
        visitor
            .visit_enum(Variant::new(name, value))
            .map_err(|e| e.at(self.location))
    }

    integers! {
        deserialize_u8 => u8, visit_u8;
        deserialize_u16 => u16, visit_u16;
        deserialize_u32 => u32, visit_u32;
        deserialize_u64 => u64, visit_u64;
        deserialize_i32 => i32, visit_i32;
        deserialize_i64 => i64, visit_i64;
    }

    forward_to_deserialize_any! {
        bool i8 i16 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}
