use crate::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// By which way in a destination was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Adapter {
    Dns,
    Transparent,
    HttpConnect,
    HttpForward,
    Socks5,
}

/// One question or connection, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressEvent {
    /// Tells the connections of a call apart; its decision, requests and end have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    pub adapter: Adapter,
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address that was dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// The number of the rule that allowed it, in the plan's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// Why it was denied; absent where it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Reason>,
    pub inspected: bool,
    /// Still open when the call ended, and cut by that.
    pub open_at_end: bool,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub requests: u64,
    pub millis: u64,
}

impl EgressEvent {
    pub fn new(adapter: Adapter, host: impl Into<String>, port: Option<u16>) -> Self {
        EgressEvent {
            connection: None,
            adapter,
            host: host.into(),
            port,
            address: None,
            rule: None,
            denied: None,
            inspected: false,
            open_at_end: false,
            bytes_out: 0,
            bytes_in: 0,
            requests: 0,
            millis: 0,
        }
    }
}
