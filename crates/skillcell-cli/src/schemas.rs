//! JSON Schemas, from the types that are read and written.

use crate::args::SchemaName;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use skillcell_audit::Record;
use skillcell_core::{EnvName, Envelope};
use skillcell_manifest::SecurityPolicy;
use skillcell_policy::PolicyFile;
use std::collections::BTreeMap;

pub(crate) fn schema(name: SchemaName) -> Value {
    let read = || SchemaSettings::draft2020_12().into_generator();
    let (schema, title) = match name {
        SchemaName::Manifest => (
            read().into_root_schema_for::<ManifestFile>(),
            "manifest.yaml",
        ),
        SchemaName::SecurityPolicy => (
            read().into_root_schema_for::<SecurityPolicy>(),
            "security_policy",
        ),
        SchemaName::Policy => (
            read().into_root_schema_for::<PolicyFile>(),
            "skillcell.yaml",
        ),
        SchemaName::Envelope => (
            SchemaSettings::draft2020_12()
                .for_serialize()
                .into_generator()
                .into_root_schema_for::<Envelope<Value>>(),
            "envelope",
        ),
        SchemaName::Audit => (
            SchemaSettings::draft2020_12()
                .for_serialize()
                .into_generator()
                .into_root_schema_for::<Record>(),
            "a line of the audit log",
        ),
    };
    titled(schema, title)
}

fn titled(mut schema: Schema, title: &str) -> Value {
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

// The reader keeps line numbers and so has no type of its own to derive this from; tests hold the
// two together.
/// A Skillware `manifest.yaml`, the parts that Skillcell reads; other keys are left alone.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct ManifestFile {
    /// `name` or `category/name`; the folder's name where it is missing.
    name: Option<String>,
    version: Option<Text>,
    description: Option<String>,
    category: Option<String>,
    execution: Option<Execution>,
    /// The same as `execution`, as a word.
    execution_mode: Option<Level>,
    /// A JSON Schema for the params of a call.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    parameters: Option<Value>,
    /// Python packages of an index, such as `requests>=2.31`; no paths, URLs or options.
    requirements: Option<Vec<String>>,
    env_vars: Option<EnvVars>,
    #[serde(default)]
    #[schemars(with = "SecurityPolicy")]
    security_policy: SecurityPolicy,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Text {
    Text(String),
    Number(f64),
}

/// How strongly the skill asks to be isolated, and what to start.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Execution {
    Level(Level),
    Details(ExecutionDetails),
}

#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct ExecutionDetails {
    #[serde(default)]
    #[schemars(with = "Level")]
    isolation: (),
    /// A program and its arguments: params as JSON on stdin, one JSON value on stdout.
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(min = 1))]
    command: (),
}

/// `subprocess` is read as `process`, `isolated` as `sandbox`; `in_process` asks for trust.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum Level {
    InProcess,
    Subprocess,
    Process,
    Isolated,
    Sandbox,
    Wasm,
    Container,
    Microvm,
}

/// Variables that the skill reads: by name with details, or a list of names.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum EnvVars {
    Map(BTreeMap<EnvName, EnvDetails>),
    List(Vec<EnvItem>),
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum EnvItem {
    Name(EnvName),
    Details {
        name: EnvName,
        required: Option<bool>,
    },
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum EnvDetails {
    Details { required: Option<bool> },
    Text(Option<String>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillcell_core::Isolation;

    #[test]
    fn every_level_of_the_schema_is_read() {
        let schema = schemars::schema_for!(Level);
        let names = schema.get("enum").and_then(Value::as_array).cloned();
        let names = names.unwrap_or_default();
        assert_eq!(names.len(), 8, "{schema:?}");
        for name in names {
            let name = name.as_str().unwrap_or_default().to_owned();
            assert!(name.parse::<Isolation>().is_ok(), "{name}");
        }
    }
}
