//! What the daemon counts, as Prometheus reads it.

use crate::engine::{EngineMetrics, MetricKind};
use skillcell_core::Status;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const STATUSES: [(Status, &str); 8] = [
    (Status::Ok, "ok"),
    (Status::SkillError, "skill_error"),
    (Status::InvalidInput, "invalid_input"),
    (Status::InvalidResult, "invalid_result"),
    (Status::Denied, "denied"),
    (Status::LimitExceeded, "limit_exceeded"),
    (Status::Refused, "refused"),
    (Status::InternalError, "internal_error"),
];

/// Upper bounds in microseconds.
const BUCKETS: [u64; 14] = [
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
];

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    calls: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS.len()],
    micros: AtomicU64,
    running: AtomicU64,
    connections: AtomicU64,
    busy: AtomicU64,
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

/// Counts something for as long as it lives.
#[derive(Debug)]
pub(crate) struct During<'a>(&'a AtomicU64);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn during(gauge: &AtomicU64) -> During<'_> {
    gauge.fetch_add(1, Ordering::Relaxed);
    During(gauge)
}

impl Metrics {
    pub(crate) fn call(&self) -> During<'_> {
        during(&self.running)
    }

    pub(crate) fn connection(&self) -> During<'_> {
        during(&self.connections)
    }

    pub(crate) fn calls_running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn ended(&self, status: Status, took: Duration) {
        if let Some(at) = STATUSES.iter().position(|(s, _)| *s == status) {
            self.calls[at].fetch_add(1, Ordering::Relaxed);
        }
        let micros = took.as_micros() as u64;
        self.micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(at) = BUCKETS.iter().position(|bound| micros <= *bound) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn request(&self, route: &'static str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route, status)).or_default() += 1;
    }

    pub(crate) fn text(&self, engine: &EngineMetrics, draining: bool) -> String {
        let mut out = Text::default();
        out.head("build_info", "gauge", "The version that runs.");
        out.value("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        out.head("draining", "gauge", "1 while the daemon ends.");
        out.value("draining", &[], f64::from(u8::from(draining)));
        let load = |atomic: &AtomicU64| atomic.load(Ordering::Relaxed) as f64;
        out.head("connections", "gauge", "Open connections.");
        out.value("connections", &[], load(&self.connections));
        out.head("calls_running", "gauge", "Calls that run or wait now.");
        out.value("calls_running", &[], load(&self.running));
        out.head(
            "busy_total",
            "counter",
            "Calls that were not begun because there were too many.",
        );
        out.value("busy_total", &[], load(&self.busy));
        out.head(
            "calls_total",
            "counter",
            "Calls that have ended, by status.",
        );
        let mut calls = 0.0;
        for (count, (_, name)) in self.calls.iter().zip(STATUSES) {
            calls += load(count);
            out.value("calls_total", &[("status", name)], load(count));
        }
        out.head(
            "call_seconds",
            "histogram",
            "How long calls took, waiting included.",
        );
        let mut below = 0.0;
        for (count, bound) in self.buckets.iter().zip(BUCKETS) {
            below += load(count);
            let bound = (bound as f64 / 1e6).to_string();
            out.value("call_seconds_bucket", &[("le", &bound)], below);
        }
        out.value("call_seconds_bucket", &[("le", "+Inf")], calls.max(below));
        out.value("call_seconds_sum", &[], load(&self.micros) / 1e6);
        out.value("call_seconds_count", &[], calls.max(below));
        out.head(
            "http_requests_total",
            "counter",
            "Requests, by route and status.",
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((route, status), count) in requests.iter() {
            let labels = [("route", *route), ("code", &status.to_string())];
            out.value("http_requests_total", &labels, *count as f64);
        }
        let mut last = "";
        for metric in &engine.0 {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            if last != metric.name {
                out.head(metric.name, kind, metric.help);
                last = metric.name;
            }
            let label = metric.label.as_ref().map(|(k, v)| (*k, v.as_str()));
            out.value(metric.name, label.as_slice(), metric.value);
        }
        out.0
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    // Writing to a String can't fail.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(
            self.0,
            "# HELP skillcell_{name} {help}\n# TYPE skillcell_{name} {kind}"
        )
        .unwrap_or_default();
    }

    /// A label may hold words of a skill's.
    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(k, v)| format!("{k}=\"{}\"", escaped(v)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        writeln!(self.0, "skillcell_{name}{labels} {value}").unwrap_or_default();
    }
}

/// As a value of a label, on one line.
fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '\\' | '"' => vec!['\\', c],
            c if c.is_control() => vec!['?'],
            c => vec![c],
        })
        .collect()
}
