//! The daemon: calls over HTTP, on a unix socket and over TCP.
//!
//! It knows requests and answers, who asks, and how many calls there are. What makes a call is an
//! [`Engine`]; the one that is here starts this program again for each.

pub mod api;
mod auth;
mod caller;
mod cancel;
pub mod client;
mod cold;
mod engine;
mod failed;
mod gate;
mod http;
pub mod line;
mod listen;
mod metrics;
pub mod openapi;
mod outbox;
mod routes;
mod serve;
mod streamed;
mod warm;

pub use auth::{TokenError, Tokens, make as make_token};
pub use caller::Caller;
pub use cancel::{Cancel, EndAll};
pub use cold::{ColdEngine, Job, Order, OrderError, Workers};
pub use engine::{Busy, Engine, EngineMetrics, Metric, MetricKind};
pub use failed::failed;
pub use gate::{Gate, Permit, TurnedAway};
pub use listen::{
    PlaceError, SocketError, TcpError, TcpListen, TlsError, TlsFiles, UnixListen, default_socket,
};
pub use outbox::Outbox;
pub use serve::{Ends, Settings, serve};
pub use warm::WarmEngine;
