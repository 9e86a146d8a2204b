//! The parts of the host's system that every cell sees, read-only.

use crate::cell::{Bind, BindAccess, Node};
use std::path::{Path, PathBuf};

/// Links or folders at the top that lead into `/usr` on merged systems.
const TOP: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Configuration that libraries read; nothing that tells about users, hosts or secrets.
const ETC: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/etc/mime.types",
    "/etc/localtime",
    "/etc/fonts",
    // Without it no Java of Debian's starts. What lies beside it may name the host's proxies.
    "/etc/java-11-openjdk/security",
    "/etc/java-17-openjdk/security",
    "/etc/java-21-openjdk/security",
    "/etc/java-25-openjdk/security",
];

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// `/usr` and what leads into it.
pub fn nodes() -> Vec<Node> {
    let mut nodes = vec![read_only("/usr")];
    for top in TOP {
        let path = Path::new(top);
        match std::fs::read_link(path) {
            Ok(to) => nodes.push(Node::Symlink {
                at: path.to_owned(),
                to,
            }),
            Err(_) if path.is_dir() => nodes.push(read_only(path)),
            Err(_) => {}
        }
    }
    for etc in ETC {
        // A link such as /etc/localtime is shown as the file that it leads to.
        if let Ok(real) = std::fs::canonicalize(etc) {
            nodes.push(Node::Bind(Bind {
                target: PathBuf::from(etc),
                ..bind(real, BindAccess::ReadOnly)
            }));
        }
    }
    for device in DEVICES {
        nodes.push(Node::Bind(bind(
            Path::new("/dev").join(device),
            BindAccess::Device,
        )));
    }
    for (at, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        nodes.push(Node::Symlink {
            at: Path::new("/dev").join(at),
            to: to.into(),
        });
    }
    nodes
}

/// Files that are the same in every cell.
pub fn synthetic(hostname: &str, resolver: &str) -> Vec<Node> {
    let file = |at: &str, content: String| Node::File {
        at: at.into(),
        content: content.into_bytes(),
    };
    vec![
        file("/etc/passwd", "skill:x:1000:1000:skill:/scratch:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n".into()),
        file("/etc/group", "skill:x:1000:\nnogroup:x:65534:\n".into()),
        file("/etc/hostname", format!("{hostname}\n")),
        file("/etc/hosts", format!("127.0.0.1 localhost {hostname}\n::1 localhost\n")),
        file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".into()),
        file("/etc/resolv.conf", resolver.to_owned()),
    ]
}

pub fn read_only(path: impl Into<PathBuf>) -> Node {
    Node::Bind(bind(path.into(), BindAccess::ReadOnly))
}

pub fn bind(source: PathBuf, access: BindAccess) -> Bind {
    Bind {
        target: source.clone(),
        source,
        access,
        pin: None,
        as_own: false,
    }
}

/// Whether a path is shown already because `/usr` or one of the top folders is.
pub fn is_system(path: &Path) -> bool {
    path.starts_with("/usr") || TOP.iter().any(|top| path.starts_with(top))
}

/// Whether a path below `/etc` is shown because its folder, or the file itself, is.
pub fn shows(path: &Path) -> bool {
    ETC.iter()
        .any(|etc| path.starts_with(etc) && Path::new(etc).exists())
}

/// What a Landlock domain needs to allow of the above, by paths inside the cell.
pub fn readable() -> Vec<PathBuf> {
    ["/usr", "/etc", "/proc"]
        .iter()
        .copied()
        .chain(
            TOP.iter()
                .copied()
                .filter(|top| Path::new(top).is_dir() && !Path::new(top).is_symlink()),
        )
        .map(PathBuf::from)
        .collect()
}

/// As `readable`, by the host's own paths: for cells without mounts, where users, hosts and secrets
/// in `/etc` must stay out.
pub fn readable_on_host() -> Vec<PathBuf> {
    let mut paths = readable();
    paths.retain(|p| p != Path::new("/proc") && p != Path::new("/etc"));
    let more = ["/etc/nsswitch.conf", "/etc/passwd", "/etc/group"];
    paths.extend(
        ETC.iter()
            .chain(&more)
            .map(PathBuf::from)
            .filter(|path| path.exists()),
    );
    paths
}

pub fn device_paths() -> Vec<PathBuf> {
    DEVICES.iter().map(|d| Path::new("/dev").join(d)).collect()
}
