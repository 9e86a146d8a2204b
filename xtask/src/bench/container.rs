//! podman and docker, one container per call from a local image.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};

use super::peer::{Absent, Contender, Expect, HELLO_LINE, Peer, find_program, first_line};

/// A command line tool that runs containers.
pub(super) struct Engine {
    name: &'static str,
    program: PathBuf,
    /// Which daemon to talk to, where that isn't the default one.
    global: Vec<String>,
}

impl Engine {
    pub(super) fn podman() -> Result<Self, Absent> {
        Self::find("podman", Vec::new())
    }

    pub(super) fn docker() -> Result<Self, Absent> {
        Self::find("docker", Vec::new())
    }

    pub(super) fn docker_at(socket: &Path) -> Result<Self, Absent> {
        let host = format!("unix://{}", socket.display());
        Self::find("docker", vec!["--host".to_owned(), host])
    }

    fn find(name: &'static str, global: Vec<String>) -> Result<Self, Absent> {
        match find_program(name) {
            Some(program) => Ok(Self {
                name,
                program,
                global,
            }),
            None => Err(Absent {
                name,
                reason: format!("{name} is not installed"),
            }),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.global).args(args).stdin(Stdio::null());
        command
    }

    fn succeeds(&self, args: &[&str]) -> bool {
        let output = self.command(args).output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Whether the engine is up: podman always, docker when its daemon answers.
    pub(super) fn answers(&self) -> bool {
        self.succeeds(&["info"])
    }

    pub(super) fn has_image(&self, image: &str) -> bool {
        self.succeeds(&["image", "inspect", image])
    }

    /// Makes an image of a root file system.
    pub(super) fn import(&self, tarball: &Path, image: &str) -> anyhow::Result<()> {
        let tarball = tarball.display().to_string();
        let output = self.command(&["import", &tarball, image]).output()?;
        anyhow::ensure!(
            output.status.success(),
            "{} import failed: {}",
            self.name,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        Ok(())
    }

    /// The engine as a peer, with the first set of options that works on this host.
    pub(super) fn contender(&self, image: &str, python: &Path, script: &Path) -> Contender {
        if !self.has_image(image) {
            return Err(Absent {
                name: self.name,
                reason: format!("no local image {image}: run `cargo xtask bench image` first"),
            });
        }
        let mut reasons: Vec<String> = Vec::new();
        for options in options(self.name) {
            match self.peer(&options, image, python, script).probed() {
                Ok(peer) => return Ok(peer),
                Err(absent) if reasons.contains(&absent.reason) => {}
                Err(absent) => reasons.push(absent.reason),
            }
        }
        Err(Absent {
            name: self.name,
            reason: reasons.join("; then "),
        })
    }

    fn peer(&self, options: &Options, image: &str, python: &Path, script: &Path) -> Peer {
        let mut args = self.global.clone();
        args.extend(options.global.iter().cloned());
        let fixed = ["run", "--rm", "--network", "none", "--read-only"];
        args.extend(fixed.map(str::to_owned));
        args.extend(options.run.iter().cloned());
        args.push("--volume".to_owned());
        args.push(format!("{}:/hello.py:ro", script.display()));
        args.push(image.to_owned());
        args.push(python.display().to_string());
        args.push("/hello.py".to_owned());
        let mut about = vec![first_line(&self.program, &["--version"])];
        about.extend(self.storage_driver());
        about.extend(options.global.iter().chain(&options.run).cloned());
        Peer {
            name: self.name,
            about: about.join(" "),
            program: self.program.clone(),
            args,
            expect: Expect::Line(HELLO_LINE),
        }
    }

    /// Named in the report because a copying driver would make the peer look slower than it is.
    fn storage_driver(&self) -> Option<String> {
        let format = match self.name {
            "podman" => "{{.Store.GraphDriverName}}",
            _ => "{{.Driver}}",
        };
        let output = self.command(&["info", "--format", format]).output().ok()?;
        let driver = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!driver.is_empty()).then(|| format!("storage={driver}"))
    }
}

/// Options of one attempt.
#[derive(Clone, Default)]
struct Options {
    global: Vec<String>,
    run: Vec<String>,
}

/// From the engine's defaults to what restricted hosts need: crun refuses hybrid cgroups, and both
/// engines raise hard limits, which takes CAP_SYS_RESOURCE.
fn options(engine: &str) -> Vec<Options> {
    let plain = Options::default();
    let limits = Options {
        run: modest_limits(),
        ..Options::default()
    };
    if engine != "podman" {
        return vec![plain, limits];
    }
    let runc = |options: &Options| Options {
        global: vec!["--runtime".to_owned(), "runc".to_owned()],
        run: options.run.clone(),
    };
    let (plain_runc, limits_runc) = (runc(&plain), runc(&limits));
    vec![plain, limits, plain_runc, limits_runc]
}

/// Low enough to be a lowering wherever the engine's monitor has lowered the hard limit first.
const MODEST_LIMIT: u64 = 1024;

fn modest_limits() -> Vec<String> {
    let limits = [("nofile", Resource::Nofile), ("nproc", Resource::Nproc)];
    let mut flags = Vec::new();
    for (name, resource) in limits {
        let hard = getrlimit(resource).maximum.unwrap_or(MODEST_LIMIT);
        let limit = hard.min(MODEST_LIMIT);
        flags.push("--ulimit".to_owned());
        flags.push(format!("{name}={limit}:{limit}"));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_s_defaults_are_tried_first() {
        for engine in ["podman", "docker"] {
            let options = options(engine);
            assert!(options[0].global.is_empty() && options[0].run.is_empty());
            assert!(options.len() > 1);
        }
    }
}
