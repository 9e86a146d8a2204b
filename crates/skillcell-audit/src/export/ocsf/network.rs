//! Names, connections and requests.

use super::event::{Class, Made, Outcome, made};
use super::parts::{self, put};
use crate::export::Entry;
use crate::export::call::{request_line, target};
use crate::{ConnectionDecided, HttpRequest};
use serde_json::{Value, json};
use skillcell_core::{Adapter, EgressEvent};
use std::net::{IpAddr, SocketAddr};

pub(super) fn connect(entry: &Entry<'_>, address: &str) -> Made {
    let to = match address.parse::<SocketAddr>() {
        Ok(to) => json!({"ip": to.ip(), "port": to.port()}),
        Err(_) => json!({"name": address}),
    };
    of_cell(entry, made(Class::NETWORK, (1, "Open")))
        .with("dst_endpoint", to)
        .message(format!("connect to {address}"))
}

pub(super) fn name(entry: &Entry<'_>, name: &EgressEvent) -> Made {
    let answers = match name.address {
        Some(address) => json!([{"rdata": address.to_string()}]),
        None => Value::Null,
    };
    of_cell(entry, made(Class::DNS, (1, "Query")))
        .with("query", json!({"hostname": name.host}))
        .with("dst_endpoint", json!({"name": "skillcell", "port": 53}))
        .with("answers", answers)
        .with("query_time", json!(entry.record.unix_us / 1000))
        .denied(name.denied)
        .message(format!("asked for {}", name.host))
}

pub(super) fn decided(entry: &Entry<'_>, to: &ConnectionDecided) -> Made {
    let activity = match to.denied {
        None => (1, "Open"),
        Some(_) => (5, "Refuse"),
    };
    of_cell(entry, made(Class::NETWORK, activity))
        .with("dst_endpoint", endpoint(&to.host, to.port, None))
        .with(
            "connection_info",
            connection(Some(to.connection), to.adapter),
        )
        .denied(to.denied)
        .message(format!("connection to {}", target(&to.host, to.port)))
}

pub(super) fn ended(entry: &Entry<'_>, ended: &EgressEvent) -> Made {
    let activity = match ended.denied {
        Some(_) if ended.bytes_in == 0 && ended.address.is_none() => (5, "Refuse"),
        _ if ended.open_at_end => (3, "Reset"),
        _ => (2, "Close"),
    };
    let end = entry.record.unix_us / 1000;
    of_cell(entry, made(Class::NETWORK, activity))
        .with(
            "dst_endpoint",
            endpoint(&ended.host, ended.port, ended.address),
        )
        .with(
            "connection_info",
            connection(ended.connection, ended.adapter),
        )
        .with(
            "traffic",
            json!({
                "bytes_in": ended.bytes_in,
                "bytes_out": ended.bytes_out,
                "bytes": ended.bytes_in.saturating_add(ended.bytes_out),
            }),
        )
        .with("start_time", json!(end.saturating_sub(ended.millis)))
        .with("end_time", json!(end))
        .with("duration", json!(ended.millis))
        .denied(ended.denied)
        .message(format!(
            "connection to {} is over",
            target(&ended.host, ended.port)
        ))
}

pub(super) fn request(entry: &Entry<'_>, request: &HttpRequest) -> Made {
    let activity = match request.method.as_str() {
        "CONNECT" => (1, "Connect"),
        "DELETE" => (2, "Delete"),
        "GET" => (3, "Get"),
        "HEAD" => (4, "Head"),
        "OPTIONS" => (5, "Options"),
        "POST" => (6, "Post"),
        "PUT" => (7, "Put"),
        "TRACE" => (8, "Trace"),
        _ => (99, "Other"),
    };
    let url = json!({
        "hostname": request.host,
        "port": request.port,
        "path": request.path,
        "url_string": format!("{}{}", target(&request.host, Some(request.port)), request.path),
    });
    of_cell(entry, made(Class::HTTP, activity))
        .with(
            "http_request",
            json!({"http_method": request.method, "url": url}),
        )
        .with(
            "dst_endpoint",
            endpoint(&request.host, Some(request.port), None),
        )
        .denied(request.denied)
        .message(request_line(request))
}

fn of_cell(entry: &Entry<'_>, event: Made) -> Made {
    let mut source = json!({"name": "skillcell"});
    if let Some(run) = &entry.record.run_id {
        put(&mut source, "uid", json!(run));
    }
    event
        .outcome(Outcome::Unknown)
        .with("src_endpoint", source)
        .with("actor", parts::actor(entry))
        .with("device", parts::cell(entry))
}

fn endpoint(host: &str, port: Option<u16>, dialled: Option<IpAddr>) -> Value {
    let mut endpoint = json!({});
    match host.parse::<IpAddr>() {
        Ok(ip) => put(&mut endpoint, "ip", json!(ip)),
        Err(_) => put(&mut endpoint, "hostname", json!(host)),
    }
    put(&mut endpoint, "ip", json!(dialled));
    put(&mut endpoint, "port", json!(port));
    endpoint
}

fn connection(number: Option<u64>, adapter: Adapter) -> Value {
    let mut info = json!({
        "direction_id": 2,
        "direction": "Outbound",
        "protocol_name": "tcp",
        "protocol_num": 6,
    });
    if adapter == Adapter::Dns {
        info = json!({"direction_id": 2, "direction": "Outbound"});
    }
    put(&mut info, "uid", json!(number.map(|n| n.to_string())));
    info
}
