//! `bench egress`: what the network door costs: connections, bytes, and memory over time.

mod memory;
mod network;
mod place;
mod proxy;
mod report;
mod servers;
mod tls;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use self::network::{NAME, Network, SERVER};
use self::place::{Place, Stage, timings};
use self::proxy::Proxy;
use self::report::{Report, targets};
use self::servers::{ECHO, HTTP, RAW, Servers};
use self::tls::{HTTPS, LARGE, SMALL, SMALL_BYTES, Web};
use super::measure::{SplitMix, seed_from_clock};
use super::peer::Absent;
use super::report::{Host, Missing, deliver};
use super::skillcell;
use crate::workspace::Places;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds that count; each measures every path once
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Rounds before that, measured by nobody
    #[arg(long, default_value_t = 2)]
    warm_up: u32,
    /// Connections per path and round
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..1000))]
    connections: u32,
    /// MiB per download
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4096))]
    mib: u32,
    /// Write the whole report as JSON; `-` is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the Markdown tables; the default where --json isn't given
    #[arg(long)]
    markdown: bool,
    /// The interpreter of the client, in cells too
    #[arg(long, default_value = "/usr/bin/python3", value_name = "PATH")]
    python: PathBuf,
    /// A ready binary to measure, instead of building one
    #[arg(long, value_name = "PATH")]
    skillcell: Option<PathBuf>,
    /// Repeat the order of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Fail when a target is missed
    #[arg(long)]
    enforce_targets: bool,
}

/// One way from the client to a server, and what is done on it.
struct Path {
    group: Group,
    name: String,
    about: String,
    place: Place,
    params: Value,
    samples: Vec<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Connect,
    /// The same with the name looked up for each connection.
    Lookup,
    Raw,
    Http,
    /// With a handshake, and a small answer.
    TlsConnect,
    Tls,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let dir = tempfile::Builder::new().prefix("bench-egress-").tempdir()?;
    // Proxies read their configuration as somebody else.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let binary = match &args.skillcell {
        Some(binary) => std::path::absolute(binary)?,
        None => skillcell::build(&Places::here()?)?,
    };
    let network = Network::make(dir.path())?;
    let servers = Servers::start(&network)?;
    let (proxies, mut absent) = proxy::start_all(&network, dir.path());
    let web = match Web::start(&network, dir.path(), args.mib) {
        Ok(web) => Some(web),
        Err(error) => {
            absent.push(Absent {
                name: "TLS",
                reason: format!("{error:#}"),
            });
            None
        }
    };
    let stage = Stage::set(&network, dir.path(), binary, args.python.clone())?;
    let mut paths = paths(args, &proxies);
    if web.is_some() {
        paths.extend(tls_paths(args));
    }
    let names: Vec<_> = paths.iter().map(|path| path.name.as_str()).collect();
    eprintln!("paths: {}", names.join(", "));

    let seed = args.seed.unwrap_or_else(seed_from_clock);
    measure(args, &stage, &mut paths, seed)?;
    eprintln!("memory: {} connections through one door", memory::MORE);
    let memory = memory::measure(&stage, &servers)?;

    let mut report = Report {
        benchmark: "egress",
        host: Host::here(),
        warm_up: args.warm_up,
        rounds: args.runs,
        seed,
        connections: args.connections,
        mib: args.mib,
        connect: report::connections(&paths, Group::Connect)?,
        lookup: report::connections(&paths, Group::Lookup)?,
        raw: report::downloads(&paths, Group::Raw, args.mib)?,
        http: report::downloads(&paths, Group::Http, args.mib)?,
        tls_connect: match web {
            Some(_) => report::connections(&paths, Group::TlsConnect)?,
            None => Vec::new(),
        },
        tls: match web {
            Some(_) => report::downloads(&paths, Group::Tls, args.mib)?,
            None => Vec::new(),
        },
        memory,
        absent: absent
            .into_iter()
            .map(|gone| Missing {
                name: gone.name,
                reason: gone.reason,
            })
            .collect(),
        targets: Vec::new(),
    };
    report.targets = targets(&report);
    let print = args.markdown || args.json.is_none();
    deliver(
        &report,
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

fn paths(args: &Args, proxies: &[Proxy]) -> Vec<Path> {
    let connect = json!({"act": "connect", "port": ECHO, "count": args.connections});
    let bytes = u64::from(args.mib) << 20;
    let raw = json!({"act": "raw", "port": RAW, "bytes": bytes});
    let http = json!({"act": "http", "port": HTTP, "bytes": bytes});
    let mut paths = Vec::new();
    let mut add = |group, name: &str, about: &str, place, params: &Value, more: Value| {
        let mut params = params.clone();
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        paths.push(Path {
            group,
            name: name.to_owned(),
            about: about.to_owned(),
            place,
            params,
            samples: Vec::new(),
        });
    };
    for (group, act) in [(Group::Connect, &connect), (Group::Raw, &raw)] {
        let (to, by_name) = (json!({"host": SERVER}), json!({"host": NAME}));
        add(
            group,
            report::DIRECT,
            "no cell",
            Place::Outside,
            act,
            to.clone(),
        );
        let about = "a rule by address";
        add(group, report::BY_CIDR, about, Place::CellByCidr, act, to);
        let about = "a rule by name; the first bytes are looked at";
        add(
            group,
            report::BY_NAME,
            about,
            Place::CellByName,
            act,
            by_name,
        );
        for proxy in proxies {
            let through = json!({"host": SERVER, "proxy": proxy.port});
            let about = format!("{}, CONNECT", proxy.about);
            add(group, proxy.name, &about, Place::Outside, act, through);
        }
    }
    let lookup = json!({"host": NAME, "lookup": true});
    let by_name = json!({"host": NAME});
    for (group, act, more, about) in [
        (Group::Lookup, &connect, lookup, "dnsmasq on the other side"),
        (Group::Http, &http, by_name, "no cell"),
    ] {
        add(
            group,
            report::DIRECT,
            about,
            Place::Outside,
            act,
            more.clone(),
        );
        let about = match group {
            Group::Http => "every request is read",
            _ => "a synthetic address; resolved outside",
        };
        add(group, report::BY_NAME, about, Place::CellByName, act, more);
    }
    paths
}

fn tls_paths(args: &Args) -> Vec<Path> {
    let connect = json!({"act": "tls_connect", "count": args.connections, "file": SMALL, "bytes": SMALL_BYTES});
    let bytes = u64::from(args.mib) << 20;
    let bulk = json!({"act": "tls", "file": LARGE, "bytes": bytes});
    let mut paths = Vec::new();
    for (group, act) in [(Group::TlsConnect, connect), (Group::Tls, bulk)] {
        for (name, about, place) in [
            (report::DIRECT, "no cell", Place::Outside),
            (
                report::BY_NAME,
                "the hello is read, the rest is relayed",
                Place::CellByName,
            ),
            (
                report::INSPECTED,
                "taken apart, each request read",
                Place::CellInspected,
            ),
        ] {
            let mut params = act.clone();
            for (key, value) in [
                ("host", json!(NAME)),
                ("port", json!(HTTPS)),
                ("tls", json!(true)),
            ] {
                params[key] = value;
            }
            paths.push(Path {
                group,
                name: name.to_owned(),
                about: about.to_owned(),
                place,
                params,
                samples: Vec::new(),
            });
        }
    }
    paths
}

fn measure(args: &Args, stage: &Stage<'_>, paths: &mut [Path], seed: u64) -> Result<()> {
    let mut random = SplitMix(seed);
    let mut order: Vec<usize> = (0..paths.len()).collect();
    for round in 0..args.warm_up + args.runs {
        eprintln!("round {round} of {}", args.warm_up + args.runs);
        random.shuffle(&mut order);
        for &index in &order {
            let path = &mut paths[index];
            let samples = stage
                .start(path.place, &path.params)
                .and_then(timings)
                .with_context(|| format!("{} ({})", path.name, path.params["act"]))?;
            if round >= args.warm_up {
                path.samples.extend(samples);
            }
        }
    }
    ensure!(
        paths.iter().all(|path| !path.samples.is_empty()),
        "a path without samples"
    );
    Ok(())
}
