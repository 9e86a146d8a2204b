//! What clients and the daemon say to each other. `openapi` describes these very types.

mod answer;
mod host_text;
mod request;

pub use answer::{ApiCode, ApiError, Event, Health, OutputStream, SkillEntry, Skills};
pub use host_text::HostText;
pub use request::{
    Call, EnvPair, ExplainRequest, ParamsFrom, ParamsText, RunRequest, Typed, Unfit,
    own_environment, own_folder,
};
