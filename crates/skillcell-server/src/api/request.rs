use super::HostText;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skillcell_core::{AuditLevel, ByteSize, Control, EnvName, Isolation, Timeout};
use skillcell_supervisor::{EnvArg, ParamsSource, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// A call as an engine gets it: what the command line would ask, and from where.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub request: Request,
    /// The caller's own variables; `None` where the daemon's stand for them.
    pub environment: Option<BTreeMap<OsString, OsString>>,
    /// The folder that relative paths start from; `None`: the daemon's.
    pub folder: Option<PathBuf>,
    /// Whether what the skill printed is part of an envelope that is `ok`.
    pub show_output: bool,
}

/// A call: what `skillcell run` takes. A missing field is a missing flag.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// A skill's folder, or its id (`category/name`).
    #[schemars(length(min = 1))]
    pub skill: String,
    /// Params of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_or_null")]
    pub params: Option<Box<RawValue>>,
    /// Params as somebody typed them, instead of `params`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_text: Option<ParamsText>,
    /// Params from a file of the daemon's host, instead of `params`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_file: Option<HostText>,
    /// The script of an Agent Skill to run, by its path in the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Arguments for the script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that the skill declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvPair>,
    /// Files and folders that the skill may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<HostText>,
    /// Files and folders that the skill may write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<HostText>,
    /// Wall-clock limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<Timeout>,
    /// Memory limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "size")]
    pub memory: Option<ByteSize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Run with less isolation than policy asks for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
    /// Controls that need not be enforced here.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow_degraded: BTreeSet<Control>,
    /// Operator policies, before the user's and the system's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<HostText>,
    /// The Python interpreter for the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<HostText>,
    /// A ready virtualenv or folder of packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deps: Option<HostText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditLevel>,
    /// On whose behalf, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The caller's own id of this request, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Count a call that succeeded in spite of denials as denied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict_denials: bool,
    /// Have what the skill printed in the envelope too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub show_output: bool,
    /// All variables of the caller's own environment; the daemon's where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "environment")]
    pub environment: Option<BTreeMap<String, HostText>>,
    /// The folder that relative paths start from; the daemon's where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "absolute")]
    pub folder: Option<HostText>,
}

/// What to explain: a call, without what only a run needs.
pub type ExplainRequest = RunRequest;

/// A variable with its value; without one, the caller's own value is meant.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvPair {
    pub name: EnvName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text_without_nul")]
    pub value: Option<String>,
}

/// Text that is JSON, if all is well. `from` is named where it isn't.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamsText {
    pub from: ParamsFrom,
    pub text: Typed,
}

/// What was typed or piped; its bytes where they are not UTF-8.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected text, or a list of bytes")]
pub enum Typed {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Vec<u8>> for Typed {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Typed::Text(text),
            Err(error) => Typed::Bytes(error.into_bytes()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParamsFrom {
    Argument,
    Stdin,
}

/// A request that is no call.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("`params`, `params_text` and `params_file` stand for each other: give one of them")]
    ParamsTwice,
    #[error("`params` must be a JSON object")]
    ParamsShape,
    #[error("`params_text` of an argument must be text")]
    ParamsBytes,
    #[error("`folder` must be an absolute path")]
    Folder,
    #[error("`environment`: `{0}` is no name of a variable")]
    EnvironmentName(String),
    #[error("`{0}` has a NUL byte, which no argument can hold")]
    Nul(&'static str),
    #[error("standard input must be read before a call is sent")]
    Stdin,
}

impl RunRequest {
    /// The call that this asks for.
    pub fn into_call(self) -> Result<Call, Unfit> {
        let params = params(self.params, self.params_text, self.params_file)?;
        for (what, text) in [
            ("skill", Some(&self.skill)),
            ("entry", self.entry.as_ref()),
            ("actor", self.actor.as_ref()),
            ("request_id", self.request_id.as_ref()),
        ]
        .into_iter()
        .chain(self.args.iter().map(|arg| ("args", Some(arg))))
        .chain(self.env.iter().map(|pair| ("env", pair.value.as_ref())))
        {
            if text.is_some_and(|text| text.contains('\0')) {
                return Err(Unfit::Nul(what));
            }
        }
        let folder = self.folder.map(|folder| PathBuf::from(folder.0));
        if folder.as_ref().is_some_and(|f| !f.is_absolute()) {
            return Err(Unfit::Folder);
        }
        let environment = self.environment.map(variables).transpose()?;
        let paths = |list: Vec<HostText>| list.into_iter().map(|p| p.0.into()).collect();
        let request = Request {
            skill: self.skill,
            entry: self.entry,
            args: self.args,
            params,
            env: self
                .env
                .into_iter()
                .map(|pair| EnvArg {
                    name: pair.name,
                    value: pair.value,
                })
                .collect(),
            read: paths(self.read),
            write: paths(self.write),
            timeout: self.timeout,
            memory: self.memory,
            isolation: self.isolation,
            trust: self.trust,
            allow_degraded: self.allow_degraded,
            policy: paths(self.policy),
            python: self.python.map(|p| p.0.into()),
            deps: self.deps.map(|p| p.0.into()),
            audit: self.audit,
            actor: self.actor,
            request_id: self.request_id,
            strict_denials: self.strict_denials,
            caller: skillcell_supervisor::Caller::default(),
        };
        Ok(Call {
            request,
            environment,
            folder,
            show_output: self.show_output,
        })
    }

    /// The other way around. Standard input has been read by then: see `ParamsSource::StdinWas`.
    pub fn from_call(call: &Call) -> Result<RunRequest, Unfit> {
        let request = &call.request;
        let mut params_text = None;
        let mut params_file = None;
        match &request.params {
            ParamsSource::None => {}
            ParamsSource::Text(text) => {
                params_text = Some((ParamsFrom::Argument, Typed::Text(text.clone())));
            }
            ParamsSource::StdinWas(bytes) => {
                params_text = Some((ParamsFrom::Stdin, bytes.clone().into()));
            }
            ParamsSource::File(path) => params_file = Some(path.into()),
            ParamsSource::Stdin => return Err(Unfit::Stdin),
        }
        let paths = |list: &[PathBuf]| list.iter().map(HostText::from).collect();
        Ok(RunRequest {
            skill: request.skill.clone(),
            params: None,
            params_text: params_text.map(|(from, text)| ParamsText { from, text }),
            params_file,
            entry: request.entry.clone(),
            args: request.args.clone(),
            env: request
                .env
                .iter()
                .map(|e| EnvPair {
                    name: e.name.clone(),
                    value: e.value.clone(),
                })
                .collect(),
            read: paths(&request.read),
            write: paths(&request.write),
            timeout: request.timeout,
            memory: request.memory,
            isolation: request.isolation,
            trust: request.trust,
            allow_degraded: request.allow_degraded.clone(),
            policy: paths(&request.policy),
            python: request.python.as_ref().map(HostText::from),
            deps: request.deps.as_ref().map(HostText::from),
            audit: request.audit,
            actor: request.actor.clone(),
            request_id: request.request_id.clone(),
            strict_denials: request.strict_denials,
            show_output: call.show_output,
            environment: None,
            folder: call.folder.as_ref().map(HostText::from),
        })
    }
}

fn params(
    value: Option<Box<RawValue>>,
    text: Option<ParamsText>,
    file: Option<HostText>,
) -> Result<ParamsSource, Unfit> {
    match (value, text, file) {
        (None, None, None) => Ok(ParamsSource::None),
        (Some(value), None, None) => {
            if !value.get().starts_with('{') {
                return Err(Unfit::ParamsShape);
            }
            Ok(ParamsSource::Text(String::from(Box::<str>::from(value))))
        }
        (None, Some(given), None) => match (given.from, given.text) {
            (ParamsFrom::Stdin, Typed::Text(text)) => Ok(ParamsSource::StdinWas(text.into())),
            (ParamsFrom::Stdin, Typed::Bytes(bytes)) => Ok(ParamsSource::StdinWas(bytes)),
            (ParamsFrom::Argument, Typed::Text(text)) => Ok(ParamsSource::Text(text)),
            (ParamsFrom::Argument, Typed::Bytes(_)) => Err(Unfit::ParamsBytes),
        },
        (None, None, Some(path)) => Ok(ParamsSource::File(path.0.into())),
        _ => Err(Unfit::ParamsTwice),
    }
}

fn variables(given: BTreeMap<String, HostText>) -> Result<BTreeMap<OsString, OsString>, Unfit> {
    given
        .into_iter()
        .map(|(name, value)| {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Unfit::EnvironmentName(name.chars().take(100).collect()));
            }
            Ok((OsString::from(name), value.0))
        })
        .collect()
}

/// The variables of this process, as a call carries them. One whose name isn't text can't be sent,
/// and nothing reads such a one.
pub fn own_environment() -> BTreeMap<String, HostText> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, HostText(value))))
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

/// Where this process is. Relative paths of a call need it.
pub fn own_folder() -> std::io::Result<HostText> {
    std::env::current_dir().map(HostText::from)
}

fn object_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "null"]})
}

fn environment(generator: &mut SchemaGenerator) -> Schema {
    let value = generator.subschema_for::<HostText>();
    json_schema!({
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^[^=\\x00]+$"},
        "additionalProperties": value,
    })
}

fn absolute(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "null"},
            {"type": "string", "pattern": "^/[^\\x00]*$"},
            {
                "type": "array",
                "minItems": 1,
                "prefixItems": [{"const": 47}],
                "items": {"type": "integer", "minimum": 1, "maximum": 255},
            },
        ],
    })
}

fn text_without_nul(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": "^[^\\x00]*$"})
}

fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Seconds, or text such as 500ms, 30s or 2m.",
        "anyOf": [
            {"type": "null"},
            {"type": "number", "minimum": 0.001, "maximum": 604_800},
            {"type": "string", "pattern": "^[1-9][0-9]{0,4}(ms|s)$"},
        ],
    })
}

fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Bytes, or text such as 256MiB.",
        "anyOf": [
            {"type": "null"},
            {"type": "integer", "minimum": 1, "maximum": 1_000_000_000_000_u64},
            {"type": "string", "pattern": "^[1-9][0-9]{0,5}(B|KiB|MiB|GiB)$"},
        ],
    })
}
