use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why there is no envelope. Closed, so that clients can match on it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ApiCode {
    /// The request can't be read, or isn't one.
    BadRequest,
    /// No token, or none that is known.
    Unauthorized,
    /// This caller may not use the daemon, or may not say this.
    Forbidden,
    NotFound,
    MethodNotAllowed,
    /// The request took too long to arrive.
    RequestTimeout,
    LengthRequired,
    BodyTooLarge,
    UnsupportedMediaType,
    HeadersTooLarge,
    VersionNotSupported,
    /// As many calls as the daemon takes. Nothing was run; ask again.
    Busy,
    /// The daemon is about to end. Nothing was run.
    Draining,
    Internal,
}

impl ApiCode {
    pub fn http(self) -> u16 {
        match self {
            ApiCode::BadRequest => 400,
            ApiCode::Unauthorized => 401,
            ApiCode::Forbidden => 403,
            ApiCode::NotFound => 404,
            ApiCode::MethodNotAllowed => 405,
            ApiCode::RequestTimeout => 408,
            ApiCode::LengthRequired => 411,
            ApiCode::BodyTooLarge => 413,
            ApiCode::UnsupportedMediaType => 415,
            ApiCode::HeadersTooLarge => 431,
            ApiCode::Internal => 500,
            ApiCode::Busy | ApiCode::Draining => 503,
            ApiCode::VersionNotSupported => 505,
        }
    }
}

/// The body of every answer that is no success.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    pub code: ApiCode,
    pub message: String,
    pub hint: Option<String>,
}

impl ApiError {
    pub fn new(code: ApiCode, message: impl Into<String>) -> Self {
        ApiError {
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// A line of a streamed answer. `end` is the last one, always.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<E> {
    /// What is being done, for people.
    Stage { text: String },
    /// A line of what is being done, such as an installer's.
    Line { text: String },
    /// Something that a person should know.
    Warn { text: String },
    /// What the skill printed, as it came.
    Output { stream: OutputStream, text: String },
    /// The envelope. `dropped` events were not sent, because nobody read fast enough.
    End { envelope: E, dropped: u64 },
    /// There is no envelope.
    Error { error: ApiError },
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `draining`.
    pub status: String,
    pub version: String,
    pub calls_running: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Skills {
    pub skills: Vec<SkillEntry>,
}

/// A skill of the search path.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SkillEntry {
    /// What to call it by.
    pub id: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub folder: String,
    /// Why it can't be used.
    pub error: Option<String>,
}
