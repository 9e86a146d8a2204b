//! Benchmarks: what a cell costs beside its peers, measured in one interleaved run.

mod audit;
mod baseline;
mod bwrap;
mod cold;
mod container;
mod decide;
mod dockerd;
mod egress;
mod image;
mod measure;
mod peer;
mod record;
mod report;
mod skillcell;
mod stats;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Cost of the record: checking, indexing and asking a log of a million events
    Audit(audit::Args),
    /// Start-up cost of one call: python3, bwrap, podman, docker and skillcell, interleaved
    Cold(cold::Args),
    /// Cost of one network decision, by number of rules
    Decide(decide::Args),
    /// Cost of the network door: connections, bytes and memory, beside direct and proxied ones
    Egress(egress::Args),
    /// Cost of the record: a call at each audit level, beside strace and unrecorded
    Record(record::Args),
    /// Build the local image that the container peers run, from debootstrap; pulls nothing
    Image(image::Args),
}

pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Audit(args) => audit::run(&args),
        Bench::Cold(args) => cold::run(&args),
        Bench::Decide(args) => decide::run(&args),
        Bench::Egress(args) => egress::run(&args),
        Bench::Record(args) => record::run(&args),
        Bench::Image(args) => image::run(&args),
    }
}
