//! A folder that every user can read: the binary, the fixtures, and the compiled hostile programs.
//! The build folder may be under a private home, where an ordinary user could not follow.

use crate::Child;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const PREFIX: &str = "skillcell-tests.";

static STAGE: LazyLock<Stage> = LazyLock::new(Stage::make);

pub struct Stage {
    root: PathBuf,
}

impl Stage {
    pub fn get() -> &'static Stage {
        &STAGE
    }

    pub fn binary(&self) -> PathBuf {
        self.root.join("bin/skillcell")
    }

    /// A folder of `tests/fixtures/`.
    pub fn fixture(&self, name: &str) -> PathBuf {
        self.root.join("fixtures").join(name)
    }

    /// A program of `tests/fixtures/c/`, compiled statically.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join("programs").join(name)
    }

    fn make() -> Stage {
        let parent = tempfile::env::temp_dir();
        sweep(&parent);
        let root = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}.", std::process::id()))
            .tempdir_in(&parent)
            .expect("the temporary folder is writable")
            .keep();
        readable(&root);
        let stage = Stage { root };
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        copy_tree(&fixtures, &stage.root.join("fixtures"));
        folder(&stage.root.join("bin"));
        fs::copy(built_binary(), stage.binary()).expect("the binary can be copied");
        readable(&stage.binary());
        folder(&stage.root.join("programs"));
        for entry in fs::read_dir(fixtures.join("c")).expect("tests/fixtures/c exists") {
            let source = entry.expect("a folder can be read").path();
            if source.extension().is_some_and(|e| e == "c") {
                stage.compile(&source);
            }
        }
        stage
    }

    fn compile(&self, source: &Path) {
        let name = source
            .file_stem()
            .expect("a source has a name")
            .to_string_lossy();
        let mut gcc = Command::new("gcc");
        gcc.args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(self.program(&name))
            .arg(source);
        Child::spawn(gcc, None)
            .finish()
            .expect_success("hostile programs are compiled with gcc (apt install gcc libc6-dev)");
    }
}

/// `SKILLCELL_BIN`, or the binary that was built beside this test.
fn built_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("SKILLCELL_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a process has an executable");
    let binary = test
        .parent()
        .and_then(Path::parent)
        .expect("tests are in target/PROFILE/deps")
        .join("skillcell");
    assert!(
        binary.exists(),
        "there is no {}: build it with `cargo build -p skillcell-cli`, or set SKILLCELL_BIN",
        binary.display()
    );
    binary
}

/// A static is never dropped, so the folders of dead test processes are removed by the next one.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent)
        .expect("the temporary folder is readable")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('.').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another user's folder, or one that another suite sweeps at the same time.
            fs::remove_dir_all(entry.path()).unwrap_or_default();
        }
    }
}

pub fn copy_tree(from: &Path, to: &Path) {
    folder(to);
    for entry in fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let entry = entry.expect("a folder can be read");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a file has a type").is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap_or_else(|e| panic!("{}: {e}", target.display()));
            readable(&target);
        }
    }
}

fn folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    readable(path);
}

fn readable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
