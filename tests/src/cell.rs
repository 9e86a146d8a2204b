//! One caller at one isolation level, with a home and temporary folders of its own.

use crate::leaks::Before;
use crate::{Child, Finished, Outcome, Running, Stage, User};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Sandbox,
    Process,
}

impl Level {
    /// The default needs no flag; anything weaker is asked for by name.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Level::Sandbox => &[],
            Level::Process => &["--isolation", "process", "--trust"],
        }
    }
}

pub struct Cell {
    pub level: Level,
    pub user: User,
    root: TempDir,
    mark: String,
    place: Vec<OsString>,
}

impl Cell {
    /// How the names of all probes of this process begin.
    pub(crate) fn mark_prefix() -> String {
        format!("sp{:x}-", std::process::id())
    }

    pub fn new(level: Level, user: User) -> Cell {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = tempfile::Builder::new()
            .prefix("skillcell-call.")
            .tempdir()
            .expect("a temporary folder");
        let cell = Cell {
            level,
            user,
            root,
            mark: format!("{}{count:x}", Cell::mark_prefix()),
            place: Vec::new(),
        };
        fs::set_permissions(cell.root.path(), fs::Permissions::from_mode(0o755))
            .expect("own folder");
        user.own(cell.root.path());
        for name in ["home", "tmp", "run", "work"] {
            cell.folder(name);
        }
        fs::set_permissions(cell.path("run"), fs::Permissions::from_mode(0o700))
            .expect("own folder");
        cell
    }

    /// Everything of this cell starts through `place`, a command line that executes its arguments:
    /// as whoever runs the suite, before the user is switched. For another network, say.
    pub fn at<S: AsRef<OsStr>>(mut self, place: impl IntoIterator<Item = S>) -> Cell {
        self.place = place.into_iter().map(|a| a.as_ref().to_owned()).collect();
        self
    }

    /// The name that the probe gives to its processes; fits the 15 bytes that the kernel keeps.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A path in this cell's own corner of the host.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        let mut path = self.root.path().to_owned();
        for part in name.split('/') {
            path.push(part);
            if !path.exists() {
                fs::create_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                self.user.own(&path);
            }
        }
        path
    }

    /// A file of the host that belongs to the caller.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let parent = path.parent().expect("a file is in a folder");
        self.folder(
            &parent
                .strip_prefix(self.root.path())
                .expect("own folder")
                .to_string_lossy(),
        );
        fs::write(&path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.user.own(&path);
        path
    }

    /// A bundle with these files.
    pub fn bundle(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        for (file, content) in files {
            self.file(&format!("bundles/{name}/{file}"), content);
        }
        self.path(&format!("bundles/{name}"))
    }

    /// The probe with a `security_policy` of its own; `policy` is the YAML below that key.
    pub fn probe_with(&self, policy: &str) -> PathBuf {
        let probe = Stage::get().fixture("probe");
        let read = |name: &str| fs::read_to_string(probe.join(name)).expect("the probe is staged");
        let indented: String = policy.lines().map(|line| format!("  {line}\n")).collect();
        let manifest = format!(
            "{}security_policy:\n  version: 1\n{indented}",
            read("manifest.yaml")
        );
        self.bundle(
            "probe",
            &[
                ("manifest.yaml", &manifest),
                ("skill.py", &read("skill.py")),
            ],
        )
    }

    /// Folders that must be empty after a call.
    pub(crate) fn temporary_folders(&self) -> [PathBuf; 2] {
        [self.path("tmp"), self.path("run")]
    }

    /// `program` as the caller, with this cell's home and nothing of the suite's environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_as(self.user, program)
    }

    pub(crate) fn command_as(&self, user: User, program: impl AsRef<OsStr>) -> Command {
        let mut command = user.command(program);
        if let Some((first, rest)) = self.place.split_first() {
            let inner = command;
            command = Command::new(first);
            command
                .args(rest)
                .arg(inner.get_program())
                .args(inner.get_args());
        }
        let home = self.path("home");
        command
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("LANG", "C.UTF-8")
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.path("work"));
        command
    }

    /// A call of `skillcell run` that is yet to be made.
    pub fn call(&self, skill: impl AsRef<OsStr>) -> Call<'_> {
        Call {
            cell: self,
            through: Vec::new(),
            flags: vec![skill.as_ref().to_owned()],
            arguments: Vec::new(),
            stdin: None,
            env: Vec::new(),
        }
    }

    /// Any other command of the binary.
    pub fn skillcell<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Outcome {
        let before = Before::look();
        let mut command = self.command(Stage::get().binary());
        command.args(arguments);
        let outcome = Outcome::new(Child::spawn(command, None).finish());
        before.assert_nothing_left(self, outcome.run_id());
        outcome
    }
}

#[must_use = "a call does nothing until it is run"]
pub struct Call<'a> {
    cell: &'a Cell,
    through: Vec<OsString>,
    flags: Vec<OsString>,
    arguments: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    env: Vec<(OsString, OsString)>,
}

impl Call<'_> {
    pub fn flag(mut self, flag: impl AsRef<OsStr>) -> Self {
        self.flags.push(flag.as_ref().to_owned());
        self
    }

    pub fn flags<S: AsRef<OsStr>>(mut self, flags: impl IntoIterator<Item = S>) -> Self {
        self.flags
            .extend(flags.into_iter().map(|f| f.as_ref().to_owned()));
        self
    }

    pub fn read(self, path: impl AsRef<Path>) -> Self {
        self.flag("--read").flag(path.as_ref())
    }

    pub fn write(self, path: impl AsRef<Path>) -> Self {
        self.flag("--write").flag(path.as_ref())
    }

    pub fn params(self, params: &Value) -> Self {
        self.flag("--params").flag(params.to_string())
    }

    /// What stands after `--`.
    pub fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = Some(bytes.as_ref().to_owned());
        self
    }

    /// A variable of the host, which is not yet one of the skill.
    pub fn host_env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts `skillcell` from another program, which gets its command line as arguments.
    pub fn through<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.through = command.into_iter().map(|a| a.as_ref().to_owned()).collect();
        self
    }

    /// Runs with `--json` and checks that nothing is left behind.
    pub fn run(self) -> Outcome {
        let (cell, before) = (self.cell, Before::look());
        let outcome = Outcome::new(self.flag("--json").finish());
        before.assert_nothing_left(cell, outcome.run_id());
        outcome
    }

    /// Runs without `--json`, as a person would.
    pub fn run_for_people(self) -> Outcome {
        let (cell, before) = (self.cell, Before::look());
        let outcome = Outcome::new(self.finish());
        before.assert_nothing_left(cell, None);
        outcome
    }

    /// Starts the call and lets it go on.
    pub fn start(self) -> Running {
        let mark = self.cell.mark().to_owned();
        Running {
            supervisor: self.flag("--json").spawn(),
            mark,
        }
    }

    /// To its end; in a warm cell where the suite is run against those.
    fn finish(self) -> Finished {
        if !crate::warm::is_asked_for(self.cell, &self.through) {
            return self.spawn().finish();
        }
        let daemon = crate::warm::Daemon::start(self.cell);
        let finished = self.flag(daemon.flag()).spawn().finish();
        daemon.assert_no_excuse();
        daemon.end();
        finished
    }

    fn spawn(self) -> Child {
        let binary = Stage::get().binary().into_os_string();
        let mut words = self.through.into_iter().chain([binary, "run".into()]);
        let mut command = self.cell.command(words.next().expect("there is a binary"));
        command
            .args(words)
            .args(self.flags)
            .args(self.cell.level.flags())
            .envs(self.env);
        if !self.arguments.is_empty() {
            command.arg("--").args(self.arguments);
        }
        Child::spawn(command, self.stdin.as_deref())
    }
}
