//! Lists, mappings and variants of a tree, as serde walks them.

use super::{DecodeError, Entry, Node};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

pub(super) struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> Items<'de> {
    pub(super) fn new(items: &'de [Node]) -> Self {
        Items(items.iter())
    }
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        self.0
            .next()
            .map(|node| seed.deserialize(node).map_err(|e| e.at(node.location)))
            .transpose()
    }
}

pub(super) struct Entries<'de> {
    rest: std::slice::Iter<'de, Entry>,
    value: Option<&'de Node>,
}

impl<'de> Entries<'de> {
    pub(super) fn new(entries: &'de [Entry]) -> Self {
        Entries {
            rest: entries.iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        let Some(entry) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(&entry.value);
        let key: StrDeserializer<'_, DecodeError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|e| e.at(entry.key_location))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        match self.value.take() {
            Some(node) => seed.deserialize(node).map_err(|e| e.at(node.location)),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

pub(super) struct Variant<'de> {
    name: &'de str,
    value: Option<&'de Node>,
}

impl<'de> Variant<'de> {
    pub(super) fn new(name: &'de str, value: Option<&'de Node>) -> Self {
        Variant { name, value }
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), DecodeError> {
        let name: StrDeserializer<'_, DecodeError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        match self.value {
            None => Ok(()),
            Some(node) => Err(node.expected("no value here")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        match self.value {
            Some(node) => seed.deserialize(node).map_err(|e| e.at(node.location)),
            None => Err(de::Error::custom("expected a mapping with a value")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Some(node) => node.deserialize_seq(visitor),
            None => Err(de::Error::custom("expected a list")),
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.value {
            Some(node) => node.deserialize_map(visitor),
            None => Err(de::Error::custom("expected a mapping")),
        }
    }
}
