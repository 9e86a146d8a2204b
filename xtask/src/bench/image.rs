//! `bench image`: the image of the container peers, made here rather than pulled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::geteuid;

use super::container::Engine;
use super::peer::find_program;
use crate::workspace::Places;

pub(super) const NAME: &str = "skillcell-bench:latest";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to call the image
    #[arg(long, default_value = NAME, value_name = "NAME")]
    image: String,
    /// The Debian release; by default the host's, so that interpreters match
    #[arg(long)]
    suite: Option<String>,
    /// The Debian mirror; by default debootstrap's
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Make the root file system anew even if there is one
    #[arg(long)]
    force: bool,
}

/// Where the root file system is kept, for the next import and for daemons of our own.
pub(super) fn tarball(places: &Places) -> PathBuf {
    places.target.join("bench/rootfs.tar")
}

pub(super) fn run(args: &Args) -> Result<()> {
    let places = Places::here()?;
    let tarball = tarball(&places);
    if args.force || !tarball.exists() {
        make_tarball(args, &tarball)?;
    }
    for engine in [Engine::podman(), Engine::docker()] {
        match engine {
            Ok(engine) if engine.answers() => {
                engine.import(&tarball, &args.image)?;
                eprintln!("imported {} into {}", args.image, engine.name());
            }
            Ok(engine) => eprintln!(
                "{} does not answer; `bench cold` imports {} into a daemon of its own",
                engine.name(),
                tarball.display()
            ),
            Err(absent) => eprintln!("{}", absent.reason),
        }
    }
    Ok(())
}

fn make_tarball(args: &Args, tarball: &Path) -> Result<()> {
    ensure!(
        geteuid().is_root(),
        "debootstrap takes root: run this once as root, or give `bench cold` an --image"
    );
    let Some(debootstrap) = find_program("debootstrap") else {
        bail!("debootstrap is not installed: apt-get install debootstrap");
    };
    let dir = tempfile::Builder::new().prefix("bench-image-").tempdir()?;
    let root = dir.path().join("root");
    let mut command = Command::new(debootstrap);
    command
        .args(["--variant=minbase", "--include=python3-minimal"])
        .arg(args.suite.clone().unwrap_or_else(host_suite))
        .arg(&root)
        .args(&args.mirror);
    succeed(&mut command)?;

    let parent = tarball.parent().context("a tarball without a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("could not create {}", parent.display()))?;
    // Renamed when whole: a half-written tarball would be imported by the next run.
    let partial = tarball.with_extension("partial");
    let mut command = Command::new("tar");
    command
        .args(["--create", "--numeric-owner", "--exclude=./var/cache/apt"])
        .args(["--exclude=./var/lib/apt", "--exclude=./dev"])
        .arg("--file")
        .arg(&partial)
        .arg("--directory")
        .arg(&root)
        .arg(".");
    succeed(&mut command)?;
    fs::rename(&partial, tarball).with_context(|| format!("could not create {}", tarball.display()))
}

fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("could not start {name}"))?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(())
}

/// The release that this host runs, or Debian's stable where it isn't Debian.
fn host_suite() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    suite_of(&release).unwrap_or("stable").to_owned()
}

fn suite_of(os_release: &str) -> Option<&str> {
    let field = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_matches('"'))
    };
    field("VERSION_CODENAME=").filter(|_| field("ID=") == Some("debian"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_the_host_s_on_debian_only() {
        let debian = "VERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(suite_of(debian), Some("bookworm"));
        assert_eq!(suite_of("VERSION_CODENAME=noble\nID=ubuntu\n"), None);
        assert_eq!(suite_of(""), None);
    }
}
