use skillcell_core::Denial;
use skillcell_egress::BrokerError;
use skillcell_linux::LinuxError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// There is no environment, and nothing half-made either.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DepsError {
    #[error("there is no place for the cache: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoHome,
    #[error("{step} `{}` failed: {}", .path.display(), io_text(.source))]
    Io {
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the cache at `{}` can't be trusted: {problem}", .path.display())]
    Untrusted {
        path: PathBuf,
        problem: &'static str,
    },
    #[error("neither uv nor pip is there to install packages for Python {}.{}", .version.0, .version.1)]
    NoInstaller { version: (u8, u8) },
    #[error("the build cell could not be made: {0}")]
    Cell(#[from] LinuxError),
    #[error("the build cell could not be made: {0}")]
    NotConfinable(&'static str),
    #[error("`{}` can't be read by the unprivileged id that the installer runs as", .path.display())]
    Unreachable { path: PathBuf },
    #[error("`{setting}` can't be read: `{text}`: {problem}")]
    IndexAddress {
        setting: String,
        text: String,
        problem: String,
    },
    #[error("uv.toml can't be read: {message}")]
    UvSettings { message: String },
    #[error("no package index is named, and which one the installer would ask can't be found out")]
    NoDefaultIndex,
    #[error("at level process the network can't be held to the package index ({})", .hosts.join(", "))]
    NetworkNotHeld { hosts: Vec<String> },
    #[error("the build cell's network is not available: {}", with_cause(.0))]
    Broker(#[from] BrokerError),
    #[error("requirement `{requirement}` can't be installed: {reason}")]
    Requirement {
        requirement: String,
        reason: String,
        cause: Cause,
        output: String,
        denials: Vec<Denial>,
    },
    #[error("the packages can't be installed: {reason}")]
    Install {
        reason: String,
        cause: Cause,
        output: String,
        denials: Vec<Denial>,
    },
    #[error("the install took longer than {} seconds", .limit.as_secs())]
    Timeout {
        limit: Duration,
        output: String,
        denials: Vec<Denial>,
    },
    #[error("the install used more than its {what}")]
    Limit { what: &'static str, output: String },
    #[error("the install was interrupted")]
    Interrupted,
    #[error("the installed packages were refused: `{}` {problem}", .path.display())]
    Hostile {
        path: PathBuf,
        problem: &'static str,
    },
    #[error("a path or setting holds a NUL byte")]
    Nul,
}

/// Why an installer gave up, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    NotFound,
    NoWheel,
    Conflict,
    Network,
    Certificate,
    Disk,
    /// The build cell may not reach somebody that the install needs.
    Denied,
    Other,
}

impl DepsError {
    pub(crate) fn io(
        step: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> DepsError + use<> {
        let path = path.to_owned();
        move |source| DepsError::Io { step, path, source }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        let denied: Vec<String> = self
            .denials()
            .iter()
            .take(3)
            .map(|d| format!("{} was denied ({}): {}", d.target, d.reason, d.hint))
            .collect();
        let advice = self.advice().map(str::to_owned);
        let all: Vec<String> = advice.into_iter().chain(denied).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// What the build cell was denied on the way.
    pub fn denials(&self) -> &[Denial] {
        match self {
            DepsError::Requirement { denials, .. }
            | DepsError::Install { denials, .. }
            | DepsError::Timeout { denials, .. } => denials,
            _ => &[],
        }
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self {
            DepsError::NoHome => "set SKILLCELL_CACHE_DIR to a folder of your own",
            DepsError::Untrusted { .. } => {
                "use a folder that belongs to you and that nobody else can write, or set SKILLCELL_CACHE_DIR"
            }
            DepsError::NoInstaller { .. } => {
                "install uv and put it on PATH, or give this Python pip (`python3 -m ensurepip`, or the package python3-pip)"
            }
            DepsError::Cell(_) | DepsError::NotConfinable(_) => {
                "`skillcell doctor` tells what this host lacks and how to get it"
            }
            DepsError::Unreachable { .. } => {
                "as root, the process level needs an interpreter and a cache that others can read; use the sandbox level"
            }
            DepsError::IndexAddress { .. } => {
                "write it as https://HOST/PATH, with a port where it has one"
            }
            DepsError::UvSettings { .. } => "mend the file, or set UV_NO_CONFIG=1 to do without it",
            DepsError::NoDefaultIndex => {
                "name the index: set UV_DEFAULT_INDEX or PIP_INDEX_URL to its address"
            }
            DepsError::NetworkNotHeld { .. } => {
                "install at level sandbox (`skillcell deps prepare SKILL`), pass packages by --deps DIR, or use local wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR"
            }
            DepsError::Broker(BrokerError::Resolver(_)) => {
                "mend /etc/resolv.conf, or name a server in the operator's policy: `network: {resolver: ADDRESS}`"
            }
            DepsError::Requirement { cause, .. } | DepsError::Install { cause, .. } => {
                cause.hint()?
            }
            DepsError::Timeout { .. } => "try again: nothing was kept of this attempt",
            DepsError::Limit { .. } => "prepare a virtualenv yourself and pass it by --deps",
            DepsError::Hostile { .. } => {
                "a package tried to leave its folder; don't use it before you know why"
            }
            DepsError::Io { .. }
            | DepsError::Interrupted
            | DepsError::Nul
            | DepsError::Broker(_) => return None,
        })
    }

    /// The end of the installer's output, for those who want to see it.
    pub fn output(&self) -> Option<&str> {
        match self {
            DepsError::Requirement { output, .. }
            | DepsError::Install { output, .. }
            | DepsError::Timeout { output, .. }
            | DepsError::Limit { output, .. } => Some(output),
            _ => None,
        }
    }
}

impl Cause {
    fn hint(self) -> Option<&'static str> {
        Some(match self {
            Cause::NotFound => "check the name and version, and that your package index has it",
            Cause::NoWheel => {
                "only wheels are installed; the operator may allow source builds by `dependencies: {source_builds: true}`"
            }
            Cause::Conflict => "the requirements contradict each other; loosen the versions",
            Cause::Network => {
                "no package index could be reached; check the network, the proxy variables and your pip or uv settings"
            }
            Cause::Certificate => {
                "the package index has a certificate that isn't trusted; set SSL_CERT_FILE or PIP_CERT to your authority's"
            }
            Cause::Disk => {
                "free some disk space; `skillcell deps prune` removes environments that aren't used"
            }
            Cause::Denied | Cause::Other => return None,
        })
    }
}

/// An error and what is behind it, in one line.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The kernel's own words, without Rust's `(os error N)`.
fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or(&text)
        .to_lowercase()
}
