//! `bench cold`: what one call costs when nothing is kept ready.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::container::Engine;
use super::dockerd::Daemon;
use super::measure::{Rounds, interleaved, seed_from_clock};
use super::peer::{Absent, Contender, HELLO_SCRIPT, Peer};
use super::report::{Host, Missing, Report, Row, targets};
use super::stats::Summary;
use super::{baseline, bwrap, image, skillcell};
use crate::workspace::Places;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds that count; each runs every peer once
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Rounds before that, measured by nobody
    #[arg(long, default_value_t = 5)]
    warm_up: u32,
    /// Write the whole report as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the Markdown table; the default where --json isn't given
    #[arg(long)]
    markdown: bool,
    /// The interpreter of every peer, in containers too
    #[arg(long, default_value = "/usr/bin/python3", value_name = "PATH")]
    python: PathBuf,
    /// The image of the container peers
    #[arg(long, default_value = image::NAME, value_name = "NAME")]
    image: String,
    /// A ready binary to measure, instead of building one
    #[arg(long, value_name = "PATH")]
    skillcell: Option<PathBuf>,
    /// Leave a peer out; the report says so
    #[arg(long, value_name = "PEER", value_parser = ["bwrap", "podman", "docker", "skillcell"])]
    skip: Vec<String>,
    /// Repeat the order of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Fail when a speed target is missed
    #[arg(long)]
    enforce_targets: bool,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let places = Places::here()?;
    ensure!(
        args.python.is_absolute() && args.python.exists(),
        "--python: {} is not an absolute path of an interpreter",
        args.python.display()
    );
    let dir = tempfile::Builder::new().prefix("bench-cold-").tempdir()?;
    // Rootless and remapped peers read the script as somebody else.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let script = dir.path().join("hello.py");
    fs::write(&script, HELLO_SCRIPT).context("could not write the hello script")?;

    // Lives until the last round is over.
    let mut daemon = None;
    let contenders = contenders(args, &places, &script, &mut daemon)?;
    let (mut peers, mut absent) = (Vec::new(), Vec::new());
    for contender in contenders {
        match contender {
            Ok(peer) => peers.push(peer),
            Err(Absent { name, reason }) => absent.push(Missing { name, reason }),
        }
    }
    let names: Vec<_> = peers.iter().map(|peer| peer.name).collect();
    eprintln!("peers: {}", names.join(", "));
    for missing in &absent {
        eprintln!("absent: {}: {}", missing.name, missing.reason);
    }

    let rounds = Rounds {
        warm_up: args.warm_up as usize,
        counted: args.runs as usize,
    };
    let seed = args.seed.unwrap_or_else(seed_from_clock);
    let total = rounds.warm_up + rounds.counted;
    let samples = interleaved(&peers, rounds, seed, |round| {
        if round % 10 == 0 {
            eprintln!("round {round} of {total}");
        }
    })?;
    let peers = rows(peers, &samples)?;
    let report = Report {
        benchmark: "cold",
        host: Host::here(),
        warm_up: rounds.warm_up,
        rounds: rounds.counted,
        seed,
        targets: targets(&peers),
        peers,
        absent,
    };
    deliver(args, &report)
}

fn contenders(
    args: &Args,
    places: &Places,
    script: &Path,
    daemon: &mut Option<Daemon>,
) -> Result<Vec<Contender>> {
    let python = &args.python;
    let baseline = match baseline::contender(python, script) {
        Ok(peer) => peer,
        Err(absent) => bail!(
            "without a baseline there is nothing to compare: {}",
            absent.reason
        ),
    };
    let mut contenders = vec![Ok(baseline)];
    contenders.push(unless_skipped(args, bwrap::NAME, || {
        bwrap::contender(python, script)
    }));
    contenders.push(unless_skipped(args, "podman", || {
        Engine::podman()?.contender(&args.image, python, script)
    }));
    contenders.push(unless_skipped(args, "docker", || {
        docker(args, places, daemon)?.contender(&args.image, python, script)
    }));
    if args.skip.iter().any(|skip| skip == skillcell::NAME) {
        contenders.push(Err(skipped(skillcell::NAME)));
    } else {
        let binary = match &args.skillcell {
            Some(binary) => std::path::absolute(binary)?,
            None => skillcell::build(places)?,
        };
        let ours = skillcell::peer(places, &binary, python);
        ours.run()?;
        contenders.push(Ok(ours));
    }
    Ok(contenders)
}

fn unless_skipped(
    args: &Args,
    name: &'static str,
    contender: impl FnOnce() -> Contender,
) -> Contender {
    if args.skip.iter().any(|skip| skip == name) {
        return Err(skipped(name));
    }
    contender()
}

fn skipped(name: &'static str) -> Absent {
    Absent {
        name,
        reason: "left out by --skip".to_owned(),
    }
}

/// The running daemon, or one of our own with the image imported.
fn docker(args: &Args, places: &Places, daemon: &mut Option<Daemon>) -> Result<Engine, Absent> {
    let engine = Engine::docker()?;
    if engine.answers() {
        return Ok(engine);
    }
    let absent = |reason: String| Absent {
        name: "docker",
        reason,
    };
    let tarball = image::tarball(places);
    if !tarball.exists() {
        return Err(absent(
            "no docker daemon answers, and there is no root file system for one of our own: \
             run `cargo xtask bench image` first"
                .to_owned(),
        ));
    }
    eprintln!("starting a docker daemon for this run");
    let started = Daemon::start().map_err(|error| absent(format!("{error:#}")))?;
    let engine = Engine::docker_at(&started.socket())?;
    *daemon = Some(started);
    let imported = engine.import(&tarball, &args.image);
    imported.map_err(|error| absent(format!("{error:#}")))?;
    Ok(engine)
}

fn rows(peers: Vec<Peer>, samples: &[Vec<std::time::Duration>]) -> Result<Vec<Row>> {
    let summaries: Option<Vec<_>> = samples.iter().map(|s| Summary::of(s)).collect();
    let summaries = summaries.context("a peer without samples")?;
    let python = summaries.first().context("no peers")?.p50_ms;
    let rows = peers.into_iter().zip(summaries).map(|(peer, summary)| {
        let mut command = vec![peer.program.display().to_string()];
        command.extend(peer.args);
        Row {
            name: peer.name,
            about: peer.about,
            command,
            summary,
            ratio_to_python: summary.p50_ms / python,
        }
    });
    Ok(rows.collect())
}

fn deliver(args: &Args, report: &Report) -> Result<()> {
    let print = args.markdown || args.json.is_none();
    super::report::deliver(
        report,
        args.json.as_deref(),
        print.then(|| report.markdown()),
    )?;
    let missed: Vec<_> = report.targets.iter().filter(|t| !t.met).collect();
    if args.enforce_targets && !missed.is_empty() {
        let claims: Vec<_> = missed.iter().map(|target| target.claim).collect();
        bail!("missed: {}", claims.join("; "));
    }
    Ok(())
}
