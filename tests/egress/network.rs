//! A network of the suite's own: namespaces, documentation addresses, a real name server, servers.
//!
//! `skillcell` runs in the namespace `client`; everything that it could talk to is in `world`. Nothing
//! here touches the machine's own network.

use serde_json::Value;
use skillcell_tests::{Cell, Child, Level, Stage, User};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// Of namespaces: `skct-PID-client`, `skct-PID-world`.
const PREFIX: &str = "skct-";
const NAMESPACES: &str = "/run/netns";

/// Where the world's servers are. Link-local and private ones too: outside a cell they answer.
const SERVERS: [&str; 6] = [
    "198.51.100.10/32",
    "198.51.100.11/32",
    "198.51.100.20/32",
    "203.0.113.5/32",
    "169.254.169.254/32",
    "10.0.0.5/32",
];

/// Runs its arguments with the network's name server, and leaves `/sys` and its cgroups as they are,
/// which `ip netns exec` would not.
const ENTER: &str = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";

static NETWORK: LazyLock<Network> = LazyLock::new(Network::make);

pub struct Network {
    folder: PathBuf,
    client: String,
    /// The servers end when their stdin does, which is when this process does, and remove the
    /// namespaces: also after a panic, and when the suite is killed.
    _world: Mutex<(Child, std::io::PipeWriter)>,
}

/// The network of this test process.
pub fn network() -> &'static Network {
    &NETWORK
}

/// A cell whose `skillcell`, and whose counter-proofs, run in the client's namespace.
pub fn cell(user: User) -> Cell {
    cell_at(Level::Sandbox, user)
}

pub fn cell_at(level: Level, user: User) -> Cell {
    let network = network();
    Cell::new(level, user).at([
        "nsenter".to_owned(),
        format!("--net={NAMESPACES}/{}", network.client),
        "unshare".to_owned(),
        "--mount".to_owned(),
        "sh".to_owned(),
        "-c".to_owned(),
        ENTER.to_owned(),
        network.path("resolv.conf").display().to_string(),
    ])
}

pub use skillcell_tests::venv;

impl Network {
    fn make() -> Network {
        assert!(
            rustix::process::geteuid().is_root(),
            "the egress suite makes network namespaces of its own, which takes root: run it as root"
        );
        sweep();
        let id = std::process::id();
        let (client, world) = (
            format!("{PREFIX}{id}-client"),
            format!("{PREFIX}{id}-world"),
        );
        let folder = Stage::get().fixture("egress").join("run");
        fs::create_dir(&folder).expect("the stage is writable");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("own folder");
        for name in [&client, &world] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        ip(&[
            "-n", &client, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
            &world,
        ]);
        for (name, address) in [
            (&client, "192.0.2.2/24"),
            (&world, "192.0.2.1/24"),
            (&world, "192.0.2.53/24"),
        ] {
            ip(&["-n", name, "addr", "add", address, "dev", "eth0"]);
            ip(&["-n", name, "link", "set", "eth0", "up"]);
        }
        for address in SERVERS {
            ip(&["-n", &world, "addr", "add", address, "dev", "lo"]);
        }
        ip(&["-n", &client, "route", "add", "default", "via", "192.0.2.1"]);
        // A gateway that translates, and has found out where metadata is.
        for (name, address, device) in [
            (&client, "2001:db8:2::2/64", "eth0"),
            (&world, "2001:db8:2::1/64", "eth0"),
            (&world, "64:ff9b::a9fe:a9fe/128", "lo"),
        ] {
            ip(&["-n", name, "addr", "add", address, "dev", device, "nodad"]);
        }
        ip(&[
            "-n",
            &client,
            "route",
            "add",
            "64:ff9b::/96",
            "via",
            "2001:db8:2::1",
        ]);
        fs::write(
            folder.join("resolv.conf"),
            "nameserver 192.0.2.53\noptions timeout:2 attempts:1\n",
        )
        .expect("own folder");
        let world = start_world(&folder, &client, &world);
        Network {
            folder,
            client,
            _world: Mutex::new(world),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The certificate of the authority that the world's servers have theirs from.
    pub fn authority(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// What reached the world with `tag` in it: in a name, a path, a header, a body.
    pub fn arrived(&self, tag: &str) -> Vec<Value> {
        // A server notes a request before it answers, but a connection that was cut may be noted
        // a moment after the call.
        std::thread::sleep(Duration::from_millis(50));
        let text =
            fs::read_to_string(self.path("journal.jsonl")).expect("the world keeps a journal");
        text.lines()
            .filter(|line| line.contains(tag))
            .map(|line| serde_json::from_str(line).expect("the journal is JSON lines"))
            .collect()
    }

    /// Questions that reached the name server with `text` in them.
    pub fn asked(&self, text: &str) -> Vec<String> {
        std::thread::sleep(Duration::from_millis(50));
        fs::read_to_string(self.path("names.log"))
            .expect("the name server keeps a log")
            .lines()
            .filter(|line| line.contains("query[") && line.contains(text))
            .map(str::to_owned)
            .collect()
    }
}

fn start_world(folder: &Path, client: &str, world: &str) -> (Child, std::io::PipeWriter) {
    let (stdin, held) = std::io::pipe().expect("a pipe");
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net={NAMESPACES}/{world}"))
        .arg(venv().join("bin/python"))
        .arg("-B")
        .arg(Stage::get().fixture("egress").join("world/world.py"))
        .arg(folder)
        .args([client, world]);
    let child = Child::spawn_on(command, stdin);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !folder.join("ready").exists() {
        assert!(
            Instant::now() < deadline,
            "the world's servers don't start: {}",
            child.complaints()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    (child, held)
}

/// Namespaces of test processes that are gone, whose world was killed before it could clean up.
fn sweep() {
    for entry in fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another suite may sweep at the same time.
            Child::spawn(ip_command(&["netns", "del", &name]), None).finish();
        }
    }
}

fn ip(arguments: &[&str]) {
    Child::spawn(ip_command(arguments), None)
        .finish()
        .expect_success(&format!("ip {}", arguments.join(" ")));
}

fn ip_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(arguments);
    command
}
