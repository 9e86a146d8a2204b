//! Forward proxies that people use, each with the smallest configuration that lets `CONNECT` pass.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::network::Network;
use crate::bench::peer::{Absent, find_program, first_line};

const START: Duration = Duration::from_secs(15);

/// A proxy by its name, and what it is told.
struct Kind {
    name: &'static str,
    port: u16,
    version: &'static str,
    /// Before the path of the configuration.
    args: &'static [&'static str],
    configuration: fn(&Path, u16) -> String,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "tinyproxy",
        port: 8888,
        version: "-v",
        args: &["-d", "-c"],
        configuration: tinyproxy,
    },
    Kind {
        name: "squid",
        port: 3128,
        version: "--version",
        args: &["-N", "-f"],
        configuration: squid,
    },
];

/// A running proxy of our own; dropping it ends it.
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) about: String,
    pub(super) port: u16,
    child: Child,
}

/// Every proxy that is installed, and why another isn't there.
pub(super) fn start_all(network: &Network, dir: &Path) -> (Vec<Proxy>, Vec<Absent>) {
    let (mut running, mut absent) = (Vec::new(), Vec::new());
    for kind in KINDS {
        let started = match find_program(kind.name) {
            None => Err(anyhow::anyhow!("not installed")),
            Some(program) => start(network, dir, &kind, program),
        };
        match started {
            Ok(proxy) => running.push(proxy),
            Err(error) => absent.push(Absent {
                name: kind.name,
                reason: format!("{error:#}"),
            }),
        }
    }
    (running, absent)
}

fn start(network: &Network, dir: &Path, kind: &Kind, program: PathBuf) -> Result<Proxy> {
    let dir = dir.join(kind.name);
    fs::create_dir(&dir)?;
    // Both give root up.
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777))?;
    let configuration = dir.join("conf");
    fs::write(&configuration, (kind.configuration)(&dir, kind.port))?;
    let log = File::create(dir.join("output"))?;
    let child = network
        .in_client(&program)
        .args(kind.args)
        .arg(&configuration)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("could not start {}", kind.name))?;
    let mut proxy = Proxy {
        name: kind.name,
        about: first_line(&program, &[kind.version]),
        port: kind.port,
        child,
    };
    let deadline = Instant::now() + START;
    while !proxy.listens()? {
        if proxy.child.try_wait()?.is_some() || Instant::now() > deadline {
            let output = fs::read_to_string(dir.join("output")).unwrap_or_default();
            bail!("it doesn't start: {}", output.lines().last().unwrap_or(""));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(proxy)
}

impl Proxy {
    /// Whether something in the proxy's network listens on its port.
    fn listens(&self) -> Result<bool> {
        let pid = self.child.id();
        let port = format!(":{:04X} ", self.port);
        for table in ["tcp", "tcp6"] {
            let text = fs::read_to_string(format!("/proc/{pid}/net/{table}"))?;
            // State 0A is listening; no port of a peer can stand behind one.
            if text
                .lines()
                .any(|line| line.contains(&port) && line.contains(" 0A "))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // One that has ended already is waited for just the same.
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap_or(());
        let deadline = Instant::now() + Duration::from_secs(3);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn tinyproxy(dir: &Path, port: u16) -> String {
    format!(
        "User nobody\nGroup nogroup\nPort {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 100\n\
         LogFile \"{}/log\"\nLogLevel Critical\n",
        dir.display()
    )
}

fn squid(dir: &Path, port: u16) -> String {
    format!(
        "http_port 127.0.0.1:{port}\nhttp_access allow all\ncache deny all\naccess_log none\n\
         cache_log {0}/log\npid_filename {0}/pid\ncoredump_dir {0}\nshutdown_lifetime 0 seconds\n\
         pinger_enable off\nnetdb_filename none\nclient_db off\n",
        dir.display()
    )
}
