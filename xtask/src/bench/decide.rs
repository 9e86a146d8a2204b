//! What one network decision costs, with few rules and with many.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use skillcell_core::{DenyPattern, Host, HostPattern, NormalPath};
use skillcell_manifest::{DenyRule, EgressRule, HttpRule};
use skillcell_policy::{Ask, Egress, Intent};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Decisions per line of the table
    #[arg(long, default_value_t = 200_000)]
    rounds: usize,
    /// Fail when a p99 is above this many nanoseconds
    #[arg(long)]
    at_most: Option<u64>,
}

#[expect(clippy::print_stdout, reason = "the table is the output")]
pub(crate) fn run(args: &Args) -> Result<()> {
    ensure!(args.rounds > 0, "--rounds must be at least 1");
    if cfg!(debug_assertions) {
        eprintln!(
            "note: this is a debug build; `cargo run --release -p xtask -- bench decide` counts"
        );
    }
    let overhead = percentiles(args.rounds, || {}).0;
    println!("| rules | question | p50 ns | p99 ns |");
    println!("|---|---|---|---|");
    let mut worst = 0;
    for rules in [10, 100, 1_000, 10_000] {
        let egress = compile(rules)?;
        let path = NormalPath::parse("/repos/a/b")?;
        let (open, last) = (rules - 2, rules - 1);
        let (port, method, path) = (443, "GET", &path);
        let connect = Ask::Connect { port };
        let request = Ask::Request { port, method, path };
        for (name, host, ask, allowed) in [
            ("exact name", format!("h{open}.example.com"), connect, true),
            (
                "wildcard",
                format!("a.b.w{open}.example.org"),
                connect,
                true,
            ),
            ("address", "203.0.113.9".to_owned(), connect, true),
            ("request", format!("r{last}.example.com"), request, true),
            (
                "not allowed",
                "a.b.c.elsewhere.test".to_owned(),
                connect,
                false,
            ),
            (
                "denied",
                format!("d{last}.example.net"),
                Ask::Resolve,
                false,
            ),
        ] {
            let host = Host::parse(&host)?;
            let intent = Intent { host: &host, ask };
            ensure!(
                egress.decide(&intent).is_allowed() == allowed,
                "`{name}` is not what is measured"
            );
            let (p50, p99) = percentiles(args.rounds, || {
                black_box(egress.decide(black_box(&intent)));
            });
            worst = worst.max(p99);
            let net = |ns: u64| ns.saturating_sub(overhead);
            println!("| {rules} | {name} | {} | {} |", net(p50), net(p99));
        }
    }
    println!("\nThe clock's own {overhead} ns are taken off.");
    if let Some(most) = args.at_most {
        ensure!(worst <= most, "a p99 of {worst} ns is above {most} ns");
    }
    Ok(())
}

/// Half of the rules by name, wildcard and network, half about requests, and as many deny entries.
fn compile(rules: usize) -> Result<Egress> {
    let mut list = Vec::new();
    let mut deny = Vec::new();
    for i in 0..rules {
        let http = HttpRule {
            methods: vec!["GET".into()],
            paths: vec!["/repos/*".into()],
        };
        let network = format!("203.{}.{}.0/{}", i / 256 % 256, i % 256, 24 + i % 8);
        list.push(if i % 2 == 0 {
            EgressRule {
                domains: vec![
                    HostPattern::parse(&format!("h{i}.example.com"))?,
                    HostPattern::parse(&format!("*.w{i}.example.org"))?,
                ],
                cidrs: vec![network.parse()?, "203.0.113.0/24".parse()?],
                ports: vec![443],
                http: Vec::new(),
            }
        } else {
            EgressRule {
                domains: vec![HostPattern::parse(&format!("r{i}.example.com"))?],
                cidrs: Vec::new(),
                ports: vec![443],
                http: vec![http],
            }
        });
        deny.push(DenyRule {
            domains: vec![DenyPattern::parse(&format!("d{i}.example.net"))?],
            cidrs: Vec::new(),
            ports: Vec::new(),
        });
    }
    Ok(Egress::compile(&list, &deny))
}

/// p50 and p99 of single runs, in nanoseconds.
fn percentiles(rounds: usize, mut work: impl FnMut()) -> (u64, u64) {
    for _ in 0..rounds / 10 {
        work();
    }
    let mut times: Vec<u64> = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    (times[rounds / 2], times[rounds * 99 / 100])
}
