//! Where the client runs: outside of a cell, or as a skill in one.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::network::{NAME, Network, SERVER};
use super::servers::{CHECKPOINT, ECHO, HTTP, RAW};
use super::tls::{self, HTTPS};

const CLIENT: &str = include_str!("client.py");
const BUDGET: &str = "{bytes_in: 8GiB, bytes_out: 1GiB, connections: 100000}";

/// The client and its two policies, on disk.
pub(super) struct Stage<'a> {
    pub(super) network: &'a Network,
    pub(super) skillcell: PathBuf,
    pub(super) python: PathBuf,
    dir: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Outside,
    /// In a cell whose policy names the server's address.
    CellByCidr,
    /// In a cell whose policy names the server's name.
    CellByName,
    /// In one whose policy names the server's requests, so that TLS is taken apart.
    CellInspected,
}

impl<'a> Stage<'a> {
    pub(super) fn set(
        network: &'a Network,
        dir: &Path,
        skillcell: PathBuf,
        python: PathBuf,
    ) -> Result<Self> {
        let cidr = format!("{{cidrs: [{SERVER}/32], ports: [{ECHO}, {RAW}, {CHECKPOINT}]}}");
        let name = format!("{{domains: [{NAME}], ports: [{ECHO}, {RAW}, {HTTP}, {HTTPS}]}}");
        let requests = "http: [{methods: [GET], paths: [\"/*\"]}]";
        let inspected = format!("{{domains: [{NAME}], ports: [{HTTPS}], {requests}}}");
        for (bundle, rule) in [
            ("by-cidr", cidr),
            ("by-name", name),
            ("inspected", inspected),
        ] {
            let grants = format!(
                "network: {{egress: [{rule}], budget: {BUDGET}}}\n  \
                 resources: {{timeout: 300s}}\n"
            );
            let bundle = dir.join(bundle);
            fs::create_dir(&bundle)?;
            let manifest = format!(
                "name: egress-bench\nversion: 1.0.0\ndescription: Measures connections.\n\
                 parameters: {{type: object}}\nsecurity_policy:\n  version: 1\n  {grants}"
            );
            let operator = format!("version: 1\ndefaults:\n  {grants}");
            fs::write(bundle.join("skill.py"), CLIENT)?;
            fs::write(bundle.join("manifest.yaml"), manifest)?;
            fs::write(bundle.with_extension("policy.yaml"), operator)?;
        }
        Ok(Self {
            network,
            skillcell,
            python,
            dir: dir.to_owned(),
        })
    }

    /// Starts the client; what it prints is read by `timings`.
    pub(super) fn start(&self, place: Place, params: &Value) -> Result<Child> {
        let mut command = match place {
            Place::Outside => {
                let mut command = self.network.in_client(&self.python);
                command.arg("-I").arg(self.dir.join("by-cidr/skill.py"));
                command
            }
            Place::CellByCidr => self.call("by-cidr"),
            Place::CellByName => self.call("by-name"),
            Place::CellInspected => {
                let mut command = self.call("inspected");
                command.env("SSL_CERT_FILE", tls::authority(&self.dir));
                command
            }
        };
        command
            .env("HOME", &self.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("could not start the client")?;
        let mut stdin = child.stdin.take().context("a client without stdin")?;
        stdin.write_all(params.to_string().as_bytes())?;
        Ok(child)
    }

    fn call(&self, bundle: &str) -> Command {
        let bundle = self.dir.join(bundle);
        let mut command = self.network.in_client(&self.skillcell);
        command
            .arg("run")
            .arg(&bundle)
            .arg("--policy")
            .arg(bundle.with_extension("policy.yaml"))
            .arg("--python")
            .arg(&self.python)
            .args(["--params-file", "/dev/stdin"]);
        command
    }
}

#[derive(Deserialize)]
struct Answer {
    ns: Vec<u64>,
}

/// Waits for the client. A client that failed is an error: nothing of it is a sample.
pub(super) fn timings(child: Child) -> Result<Vec<Duration>> {
    let output = child.wait_with_output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the client failed: {}",
        complaints.trim_end()
    );
    let answer: Answer = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("not the client's answer: {}", complaints.trim_end()))?;
    ensure!(!answer.ns.is_empty(), "the client measured nothing");
    Ok(answer.ns.into_iter().map(Duration::from_nanos).collect())
}
