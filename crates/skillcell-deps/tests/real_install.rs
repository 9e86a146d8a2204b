//! Real installs in real cells. A cell is made by a single-threaded process, so this has a `main`
//! of its own, and runs each case as a fresh process with an environment that it chose.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, though without the usual harness"
)]

mod real_install_cases;

use real_install_cases as cases;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const CASE: &str = "SKILLCELL_TEST_CASE";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args[0] == skillcell_linux::cell::INIT_ARGV0 {
        skillcell_linux::cell::init_main(&args[1..]);
    }
    if let Ok(case) = std::env::var(CASE) {
        cases::run(&case);
        return ExitCode::SUCCESS;
    }
    if args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let filter = args
        .iter()
        .skip(1)
        .find(|a| !a.starts_with('-'))
        .cloned()
        .unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    open(folder.path());
    let uv = find_uv(folder.path());
    // Cargo's folder may be private to the caller; the other user needs a copy.
    let binary = folder.path().join("real_install");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();

    let root = rustix::process::geteuid().is_root();
    let users: &[Option<u32>] = if root { &[None, Some(12_345)] } else { &[None] };
    let (mut passed, mut failed) = (0, Vec::new());
    for user in users {
        for level in ["sandbox", "process"] {
            for tool in ["uv", "pip"] {
                for case in cases::NAMES {
                    let who = if user.is_some() || !root {
                        "user"
                    } else {
                        "root"
                    };
                    let name = format!("{case} ({tool}, {level}, {who})");
                    if !name.contains(&filter) {
                        continue;
                    }
                    let home = folder
                        .path()
                        .join(format!("home-{}", passed + failed.len()));
                    make_home(&home, *user);
                    let mut command = Command::new(&binary);
                    command
                        .env_remove("SSH_AUTH_SOCK")
                        .env(CASE, case)
                        .env("LEVEL", level)
                        .env("TOOL", tool)
                        .env("HOME", &home);
                    command
                        .env("SKILLCELL_CACHE_DIR", home.join("cache"))
                        .env("CANARY", "secret")
                        .current_dir(&home);
                    command.env(
                        "PATH",
                        if tool == "uv" {
                            uv.parent().unwrap()
                        } else {
                            Path::new("/usr/bin")
                        },
                    );
                    if cases::OFFLINE.contains(case) {
                        // Settings of the machine are stronger than the file that these cases write.
                        for name in [
                            "PIP_FIND_LINKS",
                            "UV_FIND_LINKS",
                            "UV_DEFAULT_INDEX",
                            "UV_INDEX",
                            "UV_INDEX_URL",
                        ] {
                            command.env_remove(name);
                        }
                    }
                    if let Some(id) = user {
                        command.uid(*id).gid(*id);
                    }
                    let output = command.output().unwrap();
                    println!(
                        "test {name} ... {}",
                        if output.status.success() {
                            "ok"
                        } else {
                            "FAILED"
                        }
                    );
                    if output.status.success() {
                        passed += 1;
                    } else {
                        print!(
                            "{}{}",
                            String::from_utf8_lossy(&output.stdout),
                            String::from_utf8_lossy(&output.stderr)
                        );
                        failed.push(name);
                    }
                }
            }
        }
    }
    println!("\ntest result: {passed} passed; {} failed", failed.len());
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn make_home(home: &Path, user: Option<u32>) {
    std::fs::create_dir(home).unwrap();
    std::fs::write(home.join("private.txt"), "secret").unwrap();
    open(home);
    if let Some(id) = user {
        for path in [home.to_owned(), home.join("private.txt")] {
            std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
        }
    }
}

fn open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// uv from PATH, where every user can execute it; installed where there is none.
fn find_uv(folder: &Path) -> PathBuf {
    let on_path = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .filter_map(|p| p.join("uv").canonicalize().ok())
        .find(|p| std::fs::read(p).is_ok_and(|b| b.starts_with(b"\x7fELF")));
    let source = on_path.unwrap_or_else(|| {
        let target = folder.join("uv-package");
        let status = Command::new("/usr/bin/python3")
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--target",
            ])
            .arg(&target)
            .arg("uv")
            .status();
        assert!(
            status.is_ok_and(|s| s.success()),
            "uv is neither on PATH nor can it be installed"
        );
        target.join("bin/uv")
    });
    let place = folder.join("uv-bin");
    std::fs::create_dir(&place).unwrap();
    open(&place);
    std::fs::copy(source, place.join("uv")).unwrap();
    open(&place.join("uv"));
    place.join("uv")
}
