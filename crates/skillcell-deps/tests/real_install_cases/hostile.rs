//! A source package whose build code tries what it can. It needs nothing from an index.

use super::Setup;
use skillcell_deps::{BuildLimits, Cause, DepsError, Environment};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A PEP 517 backend that runs `ATTACK` and then gives a wheel with what it found.
const BACKEND: &str = r#"
import os, sys, json, zipfile, socket
def attempt(f):
    try:
        return repr(f())
    except BaseException as e:
        return "denied " + type(e).__name__
found = {}
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    ATTACK
    name = "hostile-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as z:
        z.writestr("hostile.json", json.dumps(found))
        z.writestr("hostile-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n")
        z.writestr("hostile-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("hostile-1.0.dist-info/RECORD", "hostile.json,,\nhostile-1.0.dist-info/METADATA,,\nhostile-1.0.dist-info/WHEEL,,\nhostile-1.0.dist-info/RECORD,,\n")
    return name
"#;

const PROBES: &str = r#"
    home = "@HOME@"
    found["canary"] = attempt(lambda: os.environ["CANARY"])
    found["private"] = attempt(lambda: open(home + "/private.txt").read())
    found["shadow"] = attempt(lambda: open("/etc/shadow").read())
    found["others"] = attempt(lambda: open("/proc/@PARENT@/environ").read())
    found["write home"] = attempt(lambda: open(home + "/planted", "w").write("x"))
    found["write usr"] = attempt(lambda: open("/usr/planted", "w").write("x"))
    found["write cache"] = attempt(lambda: open("@CACHE@/envs/planted", "w").write("x"))
    found["signal"] = attempt(lambda: os.kill(@PARENT@, 0))
    found["raw"] = attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
    found["unix"] = attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect("\0@ABSTRACT@"))
    found["uid 0"] = attempt(lambda: os.setuid(0))
    found["connect"] = attempt(lambda: socket.create_connection(("127.0.0.1", @PORT@), 5).recv(1) or 1 / 0)
    found["resolve"] = attempt(lambda: socket.getaddrinfo("example.com", 443))
"#;

fn package(setup: &Setup, attack: &str) -> PathBuf {
    let folder = setup.home.join("wheels");
    let source = folder.join("hostile-1.0");
    fs::create_dir_all(&source).unwrap();
    let toml = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n[project]\nname = \"hostile\"\nversion = \"1.0\"\n";
    fs::write(source.join("pyproject.toml"), toml).unwrap();
    fs::write(
        source.join("PKG-INFO"),
        "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n",
    )
    .unwrap();
    fs::write(
        source.join("backend.py"),
        BACKEND.replace("    ATTACK", attack),
    )
    .unwrap();
    let status = Command::new("/usr/bin/tar")
        .env("PATH", "/usr/bin:/bin")
        .current_dir(&folder)
        .args(["-czf", "hostile-1.0.tar.gz", "hostile-1.0"])
        .status();
    assert!(status.unwrap().success());
    fs::remove_dir_all(&source).unwrap();
    only_from(setup, &folder);
    folder
}

/// Named as a user would: pip's own settings, which uv is told of as well.
fn only_from(setup: &Setup, folder: &Path) {
    let conf = setup.home.join(".config/pip");
    fs::create_dir_all(&conf).unwrap();
    fs::write(
        conf.join("pip.conf"),
        format!(
            "[global]\nno-index = true\nfind-links = {}\n",
            folder.display()
        ),
    )
    .unwrap();
}

const WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/tiny-1.0-py3-none-any.whl", "w") as z:
    z.writestr("tiny.py", "x = 1\n")
    z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
"#;

pub(crate) fn local_wheels(setup: &Setup) {
    let folder = setup.home.join("wheels");
    fs::create_dir(&folder).unwrap();
    let made = Command::new("/usr/bin/python3")
        .args(["-c", WHEEL])
        .arg(&folder)
        .status();
    assert!(made.unwrap().success());
    only_from(setup, &folder);
    match setup.ensure(&["tiny", "no-such-package-xyz-123"], |_| {}) {
        Err(DepsError::Requirement {
            requirement,
            cause: Cause::NotFound,
            ..
        }) => assert_eq!(requirement, "no-such-package-xyz-123"),
        _ => panic!("another result"),
    }
    setup.nothing_is_left();
    let installed = setup.ensure(&["tiny"], |_| {}).unwrap();
    assert!(installed.site.join("tiny.py").is_file());
}

fn build(setup: &Setup, limits: BuildLimits) -> Result<Environment, DepsError> {
    setup.ensure(&["hostile"], |request| {
        request.source_builds = true;
        request.limits = limits;
    })
}

pub(crate) fn wheels_only(setup: &Setup) {
    package(setup, "    raise SystemExit('the build code ran')");
    let refused = setup.ensure(&["hostile"], |_| {}).unwrap_err();
    assert!(!refused.output().unwrap().contains("the build code ran"));
    match refused {
        DepsError::Requirement {
            requirement,
            cause: Cause::NoWheel | Cause::NotFound,
            ..
        } => {
            assert_eq!(requirement, "hostile");
        }
        _ => panic!("another result"),
    }
    setup.nothing_is_left();
    // The same package, where its code may run.
    let failed = build(setup, BuildLimits::default()).unwrap_err();
    assert!(failed.output().unwrap().contains("the build code ran"));
}

pub(crate) fn probes(setup: &Setup) {
    let name = format!("skillcell-test-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            &name,
        )
        .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    // The counter-proof: from outside of a cell it can be connected to.
    drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    drop(server.accept().unwrap());
    server.set_nonblocking(true).unwrap();
    let attack = PROBES
        .replace("@PORT@", &port.to_string())
        .replace("@HOME@", setup.home.to_str().unwrap())
        .replace("@CACHE@", setup.cache.path().to_str().unwrap())
        .replace("@ABSTRACT@", &name)
        .replace("@PARENT@", &std::process::id().to_string());
    package(setup, &attack);
    let env = build(setup, BuildLimits::default()).unwrap();
    let found: serde_json::Value =
        serde_json::from_slice(&fs::read(env.site.join("hostile.json")).unwrap()).unwrap();
    println!("{found}");
    let found = found.as_object().unwrap();
    assert_eq!(found.len(), 13);
    assert_eq!(
        server.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "a connection left the cell"
    );
    // The folder above the granted wheels exists inside, as an empty one on scratch.
    for (what, result) in found.iter().filter(|(what, _)| *what != "write home") {
        assert!(
            result.as_str().unwrap().starts_with("denied"),
            "{what}: {result}"
        );
    }
    assert!(!setup.home.join("planted").exists() && !Path::new("/usr/planted").exists());
}

/// Whoever writes the environment can write more than packages into it.
pub(crate) fn ways_out(setup: &Setup) {
    let site = if setup.isolation == skillcell_core::Isolation::Sandbox {
        "site = '/env/site'".to_owned()
    } else {
        "p = os.environ['TMPDIR']; site = p[:p.index('/env/')] + '/env/site'".to_owned()
    };
    for attack in [
        "os.symlink('/etc/passwd', site + '/innocent.py')",
        "os.rename(site, site + '-old'); os.symlink('/', site)",
        "open(site + '/tool', 'w').close(); os.chmod(site + '/tool', 0o4755)",
        "os.mkfifo(site + '/pipe')",
    ] {
        package(setup, &format!("    {site}\n    {attack}\n"));
        let result = build(setup, BuildLimits::default());
        // An installer may stumble over a folder that has become a link, which is fine as well.
        let stumbled =
            attack.contains("rename") && matches!(result, Err(DepsError::Requirement { .. }));
        assert!(
            stumbled || matches!(result, Err(DepsError::Hostile { .. })),
            "{attack}"
        );
        setup.nothing_is_left();
    }
}

pub(crate) fn endless(setup: &Setup) {
    package(
        setup,
        "    import time, subprocess\n    subprocess.Popen(['sleep', '4321'], start_new_session=True)\n    time.sleep(4321)\n",
    );
    let started = Instant::now();
    let limits = BuildLimits {
        timeout: Duration::from_secs(6),
        ..BuildLimits::default()
    };
    assert!(matches!(
        build(setup, limits),
        Err(DepsError::Timeout { .. })
    ));
    assert!(started.elapsed() < Duration::from_secs(20));
    setup.nothing_is_left();
    let mine = skillcell_linux::procfs::descendants(std::process::id());
    assert!(mine.is_empty(), "{mine:?}");
}
