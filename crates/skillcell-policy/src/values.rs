//! Small values of a policy file, valid by construction.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use skillcell_core::Isolation;
use std::collections::BTreeMap;

/// The version of the file format. Only 1 is read: a later version may have meanings that this
/// build would miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u64", into = "u64")]
#[schemars(extend("const" = 1))]
pub struct FormatVersion(u8);

impl TryFrom<u64> for FormatVersion {
    type Error = String;
    fn try_from(version: u64) -> Result<Self, String> {
        match version {
            1 => Ok(FormatVersion(1)),
            other => Err(format!(
                "policy version {other} is not known: this build reads version 1"
            )),
        }
    }
}

impl From<FormatVersion> for u64 {
    fn from(version: FormatVersion) -> u64 {
        version.0.into()
    }
}

/// The weakest isolation that is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Isolation", into = "Isolation")]
#[schemars(with = "Isolation", extend("not" = {"const": "in_process"}))]
pub struct Floor(Isolation);

impl Floor {
    pub fn level(self) -> Isolation {
        self.0
    }
}

impl TryFrom<Isolation> for Floor {
    type Error = String;
    fn try_from(level: Isolation) -> Result<Self, String> {
        match level {
            Isolation::InProcess => Err(
                "`in_process` is not an isolation level that a policy can permit: \
                 use process, sandbox, wasm, container or microvm"
                    .to_owned(),
            ),
            other => Ok(Floor(other)),
        }
    }
}

impl From<Floor> for Isolation {
    fn from(floor: Floor) -> Isolation {
        floor.0
    }
}

/// A value that is there must be one. `network:` with nothing behind it would otherwise read as
/// missing, which in a section means "as above", where its author may well have meant "nothing".
pub(crate) fn not_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer)?.ok_or_else(null)
}

/// The same for an optional field.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    not_null(deserializer).map(Some)
}

/// The same for a mapping and each of its values.
pub(crate) fn not_null_values<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    let map: BTreeMap<K, NotNull<V>> = not_null(deserializer)?;
    Ok(map
        .into_iter()
        .map(|(key, NotNull(value))| (key, value))
        .collect())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct NotNull<T>(#[serde(deserialize_with = "not_null")] T);

fn null<E: serde::de::Error>() -> E {
    E::custom("a value is missing here: write one (`[]` or `{}` for nothing), or remove the field")
}
