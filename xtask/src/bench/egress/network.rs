//! A network of the benchmark's own: `client`, where everything that is measured starts, and
//! `world`, where the servers and the name server are. Nothing here touches the machine's own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::fd::AsFd as _;
use rustix::process::geteuid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::bench::peer::find_program;

pub(super) const SERVER: &str = "198.51.100.10";
pub(super) const NAME: &str = "bench.example.com";
const NAME_SERVER: &str = "192.0.2.53";

/// Runs its arguments with the network's name server.
const ENTER: &str = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";

pub(super) struct Network {
    client: String,
    world: String,
    resolv: PathBuf,
    name_server: Option<Child>,
}

impl Network {
    pub(super) fn make(dir: &Path) -> Result<Self> {
        ensure!(
            geteuid().is_root(),
            "this benchmark makes network namespaces of its own, which takes root: run it as root"
        );
        let id = std::process::id();
        let resolv = dir.join("resolv.conf");
        fs::write(&resolv, format!("nameserver {NAME_SERVER}\n"))
            .context("could not write the resolver's settings")?;
        // Made first, so that a half-made network is taken down as well.
        let mut network = Self {
            client: format!("skcb-{id}-client"),
            world: format!("skcb-{id}-world"),
            resolv,
            name_server: None,
        };
        network.lay()?;
        network.name_server = Some(network.start_name_server()?);
        Ok(network)
    }

    fn lay(&self) -> Result<()> {
        let (client, world) = (self.client.as_str(), self.world.as_str());
        for name in [client, world] {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        ip(&[
            "-n", client, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
            world,
        ])?;
        for (name, address) in [
            (client, "192.0.2.2/24"),
            (world, "192.0.2.1/24"),
            (world, "192.0.2.53/24"),
        ] {
            ip(&["-n", name, "addr", "add", address, "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
        }
        ip(&["-n", world, "addr", "add", SERVER, "dev", "lo"])?;
        ip(&["-n", client, "route", "add", "default", "via", "192.0.2.1"])?;
        // Tens of thousands of connections to one port within a minute wait out their end.
        let mut widen = self.in_client("sh");
        widen.args([
            "-c",
            "echo 10240 65000 > /proc/sys/net/ipv4/ip_local_port_range",
        ]);
        run(widen)
    }

    fn start_name_server(&self) -> Result<Child> {
        let program = find_program("dnsmasq")
            .context("there is no dnsmasq, the name server of this benchmark: install it")?;
        let mut command = self.beside_servers(program);
        command
            .args(["--keep-in-foreground", "--conf-file=/dev/null"])
            .args(["--no-resolv", "--no-hosts", "--user=root", "--pid-file="])
            .args(["--bind-interfaces", "--except-interface=lo"])
            .arg(format!("--listen-address={NAME_SERVER}"))
            .args(["--local=/example.com/", "--local-ttl=300"])
            .arg(format!("--host-record={NAME},{SERVER}"))
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().context("could not start dnsmasq")
    }

    /// `program` where the servers are.
    pub(super) fn beside_servers(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.world))
            .arg(program);
        command
    }

    /// `program` where the clients are. The child's pid becomes the program's.
    pub(super) fn in_client(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.client))
            .args(["unshare", "--mount", "sh", "-c", ENTER])
            .arg(&self.resolv)
            .arg(program);
        command
    }

    /// Runs `there` on a thread that is in the world, to its end.
    pub(super) fn in_world<T: Send>(&self, there: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let place = File::open(Path::new("/run/netns").join(&self.world))?;
        let moved = || {
            move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))?;
            there()
        };
        std::thread::scope(|scope| match scope.spawn(moved).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(mut child) = self.name_server.take() {
            drop(child.kill());
            drop(child.wait());
        }
        for name in [&self.client, &self.world] {
            if let Err(error) = ip(&["netns", "del", name]) {
                eprintln!("warning: {error:#}");
            }
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("ip");
    command.args(arguments);
    run(command)
}

fn run(mut command: Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("could not start {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(())
}
