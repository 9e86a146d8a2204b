//! The result of a benchmark, as JSON and as Markdown.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustix::process::geteuid;
use serde::Serialize;

use super::stats::Summary;
use super::{baseline, bwrap, skillcell};

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) benchmark: &'static str,
    pub(super) host: Host,
    pub(super) warm_up: usize,
    pub(super) rounds: usize,
    pub(super) seed: u64,
    pub(super) peers: Vec<Row>,
    pub(super) absent: Vec<Missing>,
    pub(super) targets: Vec<Target>,
}

#[derive(Serialize)]
pub(super) struct Host {
    pub(super) kernel: String,
    pub(super) cpus: usize,
    pub(super) caller: &'static str,
}

impl Host {
    pub(super) fn here() -> Self {
        Self {
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            caller: if geteuid().is_root() {
                "root"
            } else {
                "an ordinary user"
            },
        }
    }
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) about: String,
    pub(super) command: Vec<String>,
    #[serde(flatten)]
    pub(super) summary: Summary,
    /// Of the medians.
    pub(super) ratio_to_python: f64,
}

#[derive(Serialize)]
pub(super) struct Missing {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

/// One promise about speed, and whether this run kept it.
#[derive(Serialize)]
pub(super) struct Target {
    pub(super) claim: &'static str,
    pub(super) measured: String,
    pub(super) met: bool,
}

/// The promises that the peers of this run can speak to.
pub(super) fn targets(peers: &[Row]) -> Vec<Target> {
    let p50 = |name: &str| {
        let row = peers.iter().find(|row| row.name == name)?;
        Some(row.summary.p50_ms)
    };
    let Some(ours) = p50(skillcell::NAME) else {
        return Vec::new();
    };
    let mut targets = Vec::new();
    if let Some(python) = p50(baseline::NAME) {
        targets.push(Target {
            claim: "at most 6 ms p50 over plain python3",
            measured: format!("{:+.1} ms", ours - python),
            met: ours - python <= 6.0,
        });
    }
    if let Some(bwrap) = p50(bwrap::NAME) {
        targets.push(Target {
            claim: "no slower than bwrap + 3 ms p50",
            measured: format!("{:+.1} ms", ours - bwrap),
            met: ours - bwrap <= 3.0,
        });
    }
    if let Some(docker) = p50("docker") {
        targets.push(Target {
            claim: "more than 10 times faster than docker run",
            measured: format!("{:.1} times", docker / ours),
            met: docker / ours > 10.0,
        });
    }
    targets
}

/// Writes the report to a file, or to stdout for `-`, and prints the Markdown if there is any.
pub(super) fn deliver(
    report: &impl Serialize,
    json: Option<&Path>,
    markdown: Option<String>,
) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    if let Some(file) = json {
        let mut json = serde_json::to_string_pretty(report)?;
        json.push('\n');
        if file == Path::new("-") {
            stdout.write_all(json.as_bytes())?;
        } else {
            std::fs::write(file, json)
                .with_context(|| format!("could not write {}", file.display()))?;
        }
    }
    if let Some(markdown) = markdown {
        stdout.write_all(markdown.as_bytes())?;
    }
    Ok(())
}

impl Report {
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        self.write_markdown(&mut text).unwrap_or_default();
        text
    }

    fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        let Host {
            kernel,
            cpus,
            caller,
        } = &self.host;
        writeln!(
            text,
            "Linux {kernel}, {cpus} CPUs, as {caller}; {} rounds in random order after {} of warm-up (seed {}).\n",
            self.rounds, self.warm_up, self.seed
        )?;
        writeln!(
            text,
            "| peer | p50 ms | p90 ms | p99 ms | × python3 | set-up |"
        )?;
        writeln!(text, "|---|--:|--:|--:|--:|---|")?;
        for row in &self.peers {
            let Summary {
                p50_ms,
                p90_ms,
                p99_ms,
                ..
            } = row.summary;
            writeln!(
                text,
                "| {} | {p50_ms:.1} | {p90_ms:.1} | {p99_ms:.1} | {:.2} | {} |",
                row.name, row.ratio_to_python, row.about
            )?;
        }
        if !self.absent.is_empty() {
            writeln!(text, "\nAbsent:")?;
        }
        for missing in &self.absent {
            writeln!(text, "- {}: {}", missing.name, missing.reason)?;
        }
        if !self.targets.is_empty() {
            writeln!(text, "\nTargets:")?;
        }
        for target in &self.targets {
            let verdict = if target.met { "met" } else { "MISSED" };
            writeln!(text, "- {}: {verdict} ({})", target.claim, target.measured)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(name: &'static str, ms: u64) -> Row {
        Row {
            name,
            about: String::new(),
            command: Vec::new(),
            summary: Summary::of(&[Duration::from_millis(ms)]).unwrap(),
            ratio_to_python: 1.0,
        }
    }

    #[test]
    fn a_slow_skillcell_misses_every_target() {
        let peers = [
            row("python3", 10),
            row("bwrap", 12),
            row("docker", 200),
            row("skillcell", 25),
        ];
        assert_eq!(targets(&peers).len(), 3);
        assert!(targets(&peers).iter().all(|target| !target.met));
    }

    #[test]
    fn a_target_without_its_peer_is_not_claimed() {
        let peers = [row("python3", 10), row("skillcell", 12)];
        let targets = targets(&peers);
        assert_eq!(targets.len(), 1);
        assert!(targets[0].met);
    }
}
