use rustix::io::Errno;
use std::fmt;
use std::path::PathBuf;

/// A step of making a cell that failed. The payload never runs after one.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{step}{}: {}", .path.as_ref().map(|p| format!(" `{}`", p.display())).unwrap_or_default(), errno_text(*.errno))]
pub struct LinuxError {
    pub step: Step,
    pub path: Option<PathBuf>,
    pub errno: i32,
}

/// The kernel's own words for an errno, without Rust's `(os error N)`.
pub(crate) fn errno_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text.to_lowercase(),
    }
}

impl LinuxError {
    pub(crate) fn new(step: Step, errno: Errno) -> Self {
        LinuxError {
            step,
            path: None,
            errno: errno.raw_os_error(),
        }
    }

    pub(crate) fn at(step: Step, path: impl Into<PathBuf>, errno: Errno) -> Self {
        LinuxError {
            step,
            path: Some(path.into()),
            errno: errno.raw_os_error(),
        }
    }

    pub(crate) fn io(step: Step, error: &std::io::Error) -> Self {
        LinuxError {
            step,
            path: None,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

macro_rules! steps {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Where the making of a cell stands. The number travels from the child to the supervisor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Step { $($name),* }

        impl Step {
            const ALL: &'static [Step] = &[$(Step::$name),*];

            pub(crate) fn from_u8(n: u8) -> Option<Step> {
                Step::ALL.get(usize::from(n)).copied()
            }
        }

        impl fmt::Display for Step {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Step::$name => $text),* })
            }
        }
    };
}

steps! {
    Clone = "making the namespaces",
    IdMap = "writing the id maps",
    Cgroup = "setting up the cgroup",
    Pipe = "opening a pipe",
    Handshake = "talking to the cell's set-up",
    Open = "opening",
    Changed = "opening a path that changed while the call was prepared",
    Propagation = "making mounts private",
    NewRoot = "mounting the new root",
    Mount = "mounting",
    ReadOnly = "making a mount read-only",
    Create = "creating",
    Scratch = "mounting scratch",
    Proc = "mounting /proc",
    Pivot = "pivoting into the new root",
    Loopback = "bringing loopback up",
    Dns = "opening the DNS stub",
    Route = "making every address local to the cell",
    Door = "opening a listener for a granted port",
    Hostname = "setting the host name",
    Ids = "taking the cell's ids",
    Rlimit = "setting a resource limit",
    Affinity = "setting the CPU affinity",
    Capabilities = "dropping capabilities",
    NoNewPrivs = "setting no_new_privs",
    Seccomp = "installing the system call filter",
    Landlock = "entering the Landlock domain",
    Fork = "starting the payload",
    Descriptors = "arranging file descriptors",
    Exec = "executing",
    Init = "executing the cell's init",
    Memfd = "making a sealed file",
    Subreaper = "becoming child subreaper",
    Dumpable = "hiding the set-up's memory",
    IdMappedMount = "mapping the owner of a mount",
    Image = "taking the image of a loaded skill",
    Resume = "resuming a loaded skill from its image",
}

pub(crate) type Result<T> = std::result::Result<T, LinuxError>;

/// Names the step when a kernel call fails.
pub(crate) trait During<T> {
    fn during(self, step: Step) -> Result<T>;
    fn during_at(self, step: Step, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> During<T> for rustix::io::Result<T> {
    fn during(self, step: Step) -> Result<T> {
        self.map_err(|errno| LinuxError::new(step, errno))
    }

    fn during_at(self, step: Step, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|errno| LinuxError::at(step, path, errno))
    }
}
