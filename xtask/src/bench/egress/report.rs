//! The result of `bench egress`, as JSON and as Markdown.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::memory::Memory;
use super::{Group, Path};
use crate::bench::report::{Host, Missing, Target};
use crate::bench::stats::Summary;

pub(super) const DIRECT: &str = "direct";
pub(super) const BY_CIDR: &str = "broker, by address";
pub(super) const BY_NAME: &str = "broker, by name";
pub(super) const INSPECTED: &str = "broker, inspected";

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) benchmark: &'static str,
    pub(super) host: Host,
    pub(super) warm_up: u32,
    pub(super) rounds: u32,
    pub(super) seed: u64,
    pub(super) connections: u32,
    pub(super) mib: u32,
    pub(super) connect: Vec<Connections>,
    pub(super) lookup: Vec<Connections>,
    pub(super) raw: Vec<Downloads>,
    pub(super) http: Vec<Downloads>,
    pub(super) tls_connect: Vec<Connections>,
    pub(super) tls: Vec<Downloads>,
    pub(super) memory: Memory,
    pub(super) absent: Vec<Missing>,
    pub(super) targets: Vec<Target>,
}

#[derive(Serialize)]
pub(super) struct Connections {
    path: String,
    about: String,
    #[serde(flatten)]
    summary: Summary,
    added_p50_ms: f64,
    /// Of the medians.
    ratio_to_direct: f64,
}

#[derive(Serialize)]
pub(super) struct Downloads {
    path: String,
    about: String,
    #[serde(flatten)]
    summary: Summary,
    p50_mib_s: f64,
    /// Nine in ten are faster.
    p90_mib_s: f64,
    p99_mib_s: f64,
    /// Of the median rates: one is as fast as direct.
    ratio_to_direct: f64,
}

/// Each path of a group with its summary, and the median of the direct one.
fn summaries(paths: &[Path], group: Group) -> Result<(Vec<(&Path, Summary)>, f64)> {
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| path.group == group) {
        let summary = Summary::of(&path.samples).context("a path without samples")?;
        found.push((path, summary));
    }
    let direct = found.iter().find(|(path, _)| path.name == DIRECT);
    let direct = direct.context("nothing to compare with")?.1.p50_ms;
    Ok((found, direct))
}

pub(super) fn connections(paths: &[Path], group: Group) -> Result<Vec<Connections>> {
    let (found, direct) = summaries(paths, group)?;
    let row = |(path, summary): (&Path, Summary)| Connections {
        path: path.name.clone(),
        about: path.about.clone(),
        summary,
        added_p50_ms: summary.p50_ms - direct,
        ratio_to_direct: summary.p50_ms / direct,
    };
    Ok(found.into_iter().map(row).collect())
}

pub(super) fn downloads(paths: &[Path], group: Group, mib: u32) -> Result<Vec<Downloads>> {
    let (found, direct) = summaries(paths, group)?;
    let rate = |ms: f64| f64::from(mib) / ms * 1e3;
    let row = |(path, summary): (&Path, Summary)| Downloads {
        path: path.name.clone(),
        about: path.about.clone(),
        summary,
        p50_mib_s: rate(summary.p50_ms),
        p90_mib_s: rate(summary.p90_ms),
        p99_mib_s: rate(summary.p99_ms),
        ratio_to_direct: direct / summary.p50_ms,
    };
    Ok(found.into_iter().map(row).collect())
}

/// Kept for the receipt: one event per connection, up to ten thousand.
const EVENTS_KIB: u64 = 4 << 10;
/// Of an allocator, over ten thousand connections.
const NOISE_KIB: u64 = 256;

pub(super) fn targets(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    for (path, claim) in [
        (BY_CIDR, "set-up by address adds at most 0.5 ms p50"),
        (BY_NAME, "set-up by name adds at most 0.5 ms p50"),
    ] {
        let row = report.connect.iter().find(|row| row.path == path);
        targets.extend(row.map(|row| Target {
            claim,
            measured: format!("{:+.3} ms", row.added_p50_ms),
            met: row.added_p50_ms <= 0.5,
        }));
    }
    for (rows, path, claim) in [
        (
            &report.raw,
            BY_CIDR,
            "bulk by address is at least half of direct",
        ),
        (
            &report.raw,
            BY_NAME,
            "bulk by name is at least half of direct",
        ),
    ] {
        let row = rows.iter().find(|row| row.path == path);
        targets.extend(row.map(|row| Target {
            claim,
            measured: format!("{:.2} of direct", row.ratio_to_direct),
            met: row.ratio_to_direct >= 0.5,
        }));
    }
    if let [few, many, more] = report.memory.samples.as_slice() {
        let grown = many.rss_kib.saturating_sub(few.rss_kib);
        targets.push(Target {
            claim: "from 1,000 to 10,000 connections memory grows by at most 4 MiB, for the events of the receipt",
            measured: format!("{grown} KiB"),
            met: grown <= EVENTS_KIB,
        });
        let grown = more.rss_kib.saturating_sub(many.rss_kib);
        targets.push(Target {
            claim: "from 10,000 to 20,000 connections memory grows by less than 256 KiB, and no descriptor is left",
            measured: format!("{grown} KiB, {} descriptors, {} before", more.descriptors, few.descriptors),
            met: grown < NOISE_KIB && more.descriptors <= few.descriptors,
        });
    }
    targets
}

impl Report {
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        self.write_markdown(&mut text).unwrap_or_default();
        text
    }

    fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "Linux {}, {} CPUs, as {}; {} rounds in random order after {} of warm-up (seed {}).",
            self.host.kernel,
            self.host.cpus,
            self.host.caller,
            self.rounds,
            self.warm_up,
            self.seed
        )?;
        for (title, rows) in [
            ("connect and echo", &self.connect),
            ("with a lookup", &self.lookup),
            ("TLS handshake and a small answer", &self.tls_connect),
        ] {
            if rows.is_empty() {
                continue;
            }
            writeln!(
                text,
                "\n| {title} | p50 ms | p90 ms | p99 ms | added | × direct | set-up |\n|---|--:|--:|--:|--:|--:|---|"
            )?;
            for row in rows {
                let Summary {
                    p50_ms,
                    p90_ms,
                    p99_ms,
                    ..
                } = row.summary;
                writeln!(
                    text,
                    "| {} | {p50_ms:.3} | {p90_ms:.3} | {p99_ms:.3} | {:+.3} | {:.2} | {} |",
                    row.path, row.added_p50_ms, row.ratio_to_direct, row.about
                )?;
            }
        }
        for (title, rows) in [("TCP", &self.raw), ("HTTP", &self.http), ("TLS", &self.tls)] {
            if rows.is_empty() {
                continue;
            }
            writeln!(
                text,
                "\n| {} MiB, {title} | p50 MiB/s | p90 | p99 | × direct | set-up |\n|---|--:|--:|--:|--:|---|",
                self.mib
            )?;
            for row in rows {
                writeln!(
                    text,
                    "| {} | {:.0} | {:.0} | {:.0} | {:.2} | {} |",
                    row.path,
                    row.p50_mib_s,
                    row.p90_mib_s,
                    row.p99_mib_s,
                    row.ratio_to_direct,
                    row.about
                )?;
            }
        }
        writeln!(
            text,
            "\n| connections of one call | supervisor RSS KiB | descriptors |\n|--:|--:|--:|"
        )?;
        for sample in &self.memory.samples {
            writeln!(
                text,
                "| {} | {} | {} |",
                sample.connections, sample.rss_kib, sample.descriptors
            )?;
        }
        for missing in &self.absent {
            writeln!(text, "\nAbsent: {}: {}", missing.name, missing.reason)?;
        }
        writeln!(text, "\nTargets:")?;
        for target in &self.targets {
            let verdict = if target.met { "met" } else { "MISSED" };
            writeln!(text, "- {}: {verdict} ({})", target.claim, target.measured)?;
        }
        Ok(())
    }
}
