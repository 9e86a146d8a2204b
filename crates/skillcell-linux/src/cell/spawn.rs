//! The supervisor's half: clone, maps, cgroup, handshake. What comes back is a running cell.

use super::inside::{self, Inherited};
use super::payload::Wiring;
use super::spec::{CellSpec, Ids, NetworkSpace, Node, World};
use super::{Bind, BindAccess, idmap};
use crate::cgroup::CellCgroup;
use crate::clone::{CELL_NAMESPACES, Forked, fork_into};
use crate::error::{During, LinuxError, Result, Step};
use crate::fdpass::{self, Message};
use crate::host::CELL_ID;
use crate::mount::{self, clone_tree};
use crate::netns;
use crate::seccomp::{AllowList, Listener};
use crate::sys::{kill_by_pidfd, pipe_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// The set-up of a cell takes milliseconds; one that takes this long hangs.
const SETUP_SECONDS: i64 = 20;

/// A cell that runs. Dropping it kills it.
pub struct Cell {
    /// Init (PID 1 of the cell, or the monitor), as the supervisor sees it.
    pub pid: u32,
    pub pidfd: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub result: OwnedFd,
    /// Four bytes when the payload ends: its wait status.
    pub status: OwnedFd,
    /// Closes when the payload was executed; a message on it is a failed execution.
    pub handshake: OwnedFd,
    /// The top of scratch, at `sandbox`.
    pub scratch: Option<OwnedFd>,
    pub staging: Vec<OwnedFd>,
    pub dns: Option<(OwnedFd, OwnedFd)>,
    /// Listeners inside the cell, for the supervisor to serve; none without granted egress.
    pub doors: Vec<OwnedFd>,
    /// What the payload's filter allows, while its listener is still to come.
    pub(super) awaited: Option<AllowList>,
    /// The listener itself, where another process made the cell.
    pub(super) held: Option<Listener>,
    pub(super) namespace: bool,
    pub(super) lifeline: Option<OwnedFd>,
    /// Another process is its parent, and reaps it.
    pub(super) foreign: bool,
    pub(super) reaped: bool,
}

/// A cell that is being made by its own init, in which nothing of the payload exists yet: it waits
/// for [`Made::start`]. Dropping it ends it.
pub struct Made {
    cell: Cell,
    hands: Hands,
}

/// How many descriptors of each kind the child will hand over.
#[derive(Default)]
struct Hands {
    scratch: bool,
    staging: usize,
    doors: usize,
}

impl Hands {
    fn of(spec: &CellSpec) -> Hands {
        let World::Namespaces(world) = &spec.world else {
            return Hands::default();
        };
        Hands {
            scratch: true,
            staging: world.staging.len(),
            doors: match &world.network {
                NetworkSpace::Brokered { ports } => netns::door_count(ports),
                NetworkSpace::Private => 0,
            },
        }
    }
}

/// How the payload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    /// From the bytes on the status pipe.
    pub fn from_status(bytes: [u8; 4]) -> Exit {
        let raw = i32::from_le_bytes(bytes);
        if libc::WIFSIGNALED(raw) {
            Exit::Signal(libc::WTERMSIG(raw))
        } else {
            Exit::Code(libc::WEXITSTATUS(raw))
        }
    }
}

/// Makes the cell and starts the payload. The process must be single-threaded.
pub fn spawn(spec: &CellSpec, cgroup: Option<&CellCgroup>) -> Result<Cell> {
    make(spec, cgroup)?.start()
}

/// Makes the cell. Its init goes on with the mounts by itself, so whatever the caller has to do
/// before the payload may start costs no time here. The process must be single-threaded.
pub fn make(spec: &CellSpec, cgroup: Option<&CellCgroup>) -> Result<Made> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .during(Step::Handshake)?;
    let (stdout, child_stdout) = pipe_pair()?;
    let (stderr, child_stderr) = pipe_pair()?;
    let (result, child_result) = pipe_pair()?;
    let (status, child_status) = pipe_pair()?;
    let (child_lifeline, lifeline) = pipe_pair()?;
    let stdin = match &spec.stdin {
        Some(fd) => fd.try_clone().map_err(|e| LinuxError::io(Step::Pipe, &e))?,
        None => rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .during_at(Step::Open, "/dev/null")?,
    };
    let params = spec
        .params
        .try_clone()
        .map_err(|e| LinuxError::io(Step::Pipe, &e))?;
    let binary = binary_bind()?;
    let trees = clone_trees(spec, &binary)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .during_at(Step::Open, "/dev/null")?;
    let doors = cgroup.map_or_else(|| Ok(Vec::new()), CellCgroup::doors)?;
    let namespaces = match &spec.world {
        World::Namespaces(_) => CELL_NAMESPACES,
        World::Bare { .. } => 0,
    };

    let (pid, pidfd) = match fork_into(namespaces, spec.cgroup.as_ref().map(AsFd::as_fd))? {
        Forked::Child => {
            // The supervisor's ends are of no use here, and a held lifeline would never close.
            drop((ours, stdout, stderr, result, status, lifeline));
            let wiring = Wiring {
                stdin,
                stdout: child_stdout,
                stderr: child_stderr,
                params,
                result: child_result,
            };
            let (binary_tree, trees) = trees;
            inside::run(
                spec,
                Inherited {
                    handshake: theirs,
                    wiring,
                    status: child_status,
                    lifeline: child_lifeline,
                    trees,
                    binary,
                    binary_tree,
                    doors,
                    null,
                },
            )
        }
        Forked::Parent { pid, pidfd } => (pid, pidfd),
    };
    drop((
        theirs,
        child_stdout,
        child_stderr,
        child_result,
        child_status,
        child_lifeline,
        trees,
    ));
    let cell = Cell {
        pid: pid as u32,
        pidfd,
        stdout,
        stderr,
        result,
        status,
        handshake: ours,
        scratch: None,
        staging: Vec::new(),
        dns: None,
        doors: Vec::new(),
        held: None,
        foreign: false,
        awaited: spec.filter.notifies().then(|| spec.filter.list()),
        namespace: matches!(spec.world, World::Namespaces(_)),
        lifeline: Some(lifeline),
        reaped: false,
    };
    // From here on an early return drops the cell, which kills the child.
    if let World::Namespaces(world) = &spec.world {
        write_maps(pid, world.ids)?;
    }
    fdpass::send_go(&cell.handshake)?;
    Ok(Made {
        cell,
        hands: Hands::of(spec),
    })
}

impl Made {
    /// Whether the payload's filter will ask a listener.
    pub fn notifies(&self) -> bool {
        self.cell.notifies()
    }

    /// Lets the payload start; it then waits for [`Cell::listener`] where its filter notifies.
    pub fn start(self) -> Result<Cell> {
        let Made { mut cell, hands } = self;
        // A child that has failed already is not there to read it; its report is.
        let told = fdpass::send_start(&cell.handshake);
        let handed = await_ready(&cell)?;
        told?;
        cell.take(&hands, handed)?;
        Ok(cell)
    }
}

/// This binary, as a file that can be mounted: exactly what runs now, not what its name leads to.
fn binary_bind() -> Result<Bind> {
    let source = rustix::fs::readlink("/proc/self/exe", Vec::new())
        .during_at(Step::Init, "/proc/self/exe")?;
    let source = std::path::PathBuf::from(
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(source.into_bytes()),
    );
    let stat = rustix::fs::stat("/proc/self/exe").during_at(Step::Init, "/proc/self/exe")?;
    Ok(Bind {
        target: source.clone(),
        source,
        access: BindAccess::ReadOnly,
        pin: Some((stat.st_dev, stat.st_ino)),
        as_own: false,
    })
}

/// Where this program was started from a sealed file in memory, that very file: it has no path.
fn sealed_binary() -> Result<Option<OwnedFd>> {
    let name = rustix::fs::readlink("/proc/self/exe", Vec::new())
        .during_at(Step::Init, "/proc/self/exe")?;
    if !name.to_bytes().starts_with(b"/memfd:") {
        return Ok(None);
    }
    rustix::fs::open(
        "/proc/self/exe",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .during_at(Step::Init, "/proc/self/exe")
    .map(Some)
}

type Trees = (Option<OwnedFd>, Vec<Option<OwnedFd>>);

/// For a privileged caller: every mount, cloned while it may still reach them.
fn clone_trees(spec: &CellSpec, binary: &Bind) -> Result<Trees> {
    let sealed = sealed_binary()?;
    let World::Namespaces(world) = &spec.world else {
        let binary = match sealed {
            Some(sealed) => sealed,
            None => mount::open_exact(&binary.source)?,
        };
        return Ok((Some(binary), Vec::new()));
    };
    if !world.privileged_mounts {
        return Ok((sealed, world.nodes.iter().map(|_| None).collect()));
    }
    let wants_own = world
        .nodes
        .iter()
        .any(|n| matches!(n, Node::Bind(b) if b.as_own));
    let userns = if wants_own {
        Some(idmap::make(world.ids)?)
    } else {
        None
    };
    let mut trees = Vec::with_capacity(world.nodes.len());
    for node in &world.nodes {
        trees.push(match node {
            Node::Bind(bind) => Some(clone_tree(bind, userns.as_ref().map(AsFd::as_fd))?),
            _ => None,
        });
    }
    let binary = match sealed {
        Some(sealed) => sealed,
        None => clone_tree(binary, None)?,
    };
    Ok((Some(binary), trees))
}

fn write_maps(pid: i32, outside: Ids) -> Result<()> {
    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/{pid}/{file}"), text)
            .map_err(|e| LinuxError::io(Step::IdMap, &e))
    };
    // An ordinary user may map its group only after giving up setgroups in there.
    if rustix::process::geteuid().as_raw() == outside.uid {
        write("setgroups", "deny".into())?;
    }
    write("uid_map", format!("{CELL_ID} {} 1", outside.uid))?;
    write("gid_map", format!("{CELL_ID} {} 1", outside.gid))
}

fn await_ready(cell: &Cell) -> Result<Vec<OwnedFd>> {
    let timeout = Timespec {
        tv_sec: SETUP_SECONDS,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(&cell.handshake, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(LinuxError::new(Step::Handshake, Errno::TIMEDOUT)),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(LinuxError::new(Step::Handshake, errno)),
        }
    }
    match fdpass::receive(&cell.handshake)? {
        Some(Message::Ready(fds)) => Ok(fds),
        Some(Message::Failed(error)) => Err(error),
        Some(Message::Go | Message::Start) => Err(LinuxError::new(Step::Handshake, Errno::PROTO)),
        None => Err(LinuxError::new(Step::Handshake, Errno::PIPE)),
    }
}

impl Cell {
    /// Sorts the descriptors that the child handed over, in the order that it sent them.
    fn take(&mut self, hands: &Hands, handed: Vec<OwnedFd>) -> Result<()> {
        let mut handed = handed.into_iter();
        let mut next = || {
            handed
                .next()
                .ok_or_else(|| LinuxError::new(Step::Handshake, Errno::PROTO))
        };
        if hands.scratch {
            self.scratch = Some(next()?);
            for _ in 0..hands.staging {
                self.staging.push(next()?);
            }
            self.dns = Some((next()?, next()?));
            for _ in 0..hands.doors {
                self.doors.push(next()?);
            }
        }
        Ok(())
    }

    /// Whether the payload's filter asks a listener.
    pub fn notifies(&self) -> bool {
        self.awaited.is_some() || self.held.is_some()
    }

    /// The listener of the payload's filter, once; an error is a payload that could not be confined.
    pub fn listener(&mut self) -> Result<Option<Listener>> {
        if let Some(listener) = self.held.take() {
            return Ok(Some(listener));
        }
        let Some(list) = self.awaited.take() else {
            return Ok(None);
        };
        let fd = await_ready(self)?.into_iter().next();
        let fd = fd.ok_or_else(|| LinuxError::new(Step::Handshake, Errno::PROTO))?;
        Ok(Some(Listener::new(fd, list)))
    }

    /// After the handshake became readable: why the payload could not be executed, if so.
    pub fn exec_failure(&self) -> Option<LinuxError> {
        match fdpass::receive(&self.handshake) {
            Ok(Some(Message::Failed(error))) => Some(error),
            Ok(None) => None,
            Ok(Some(_)) => Some(LinuxError::new(Step::Handshake, Errno::PROTO)),
            Err(error) => Some(error),
        }
    }

    /// Ends everything in the cell. In a namespace the kernel does it; a monitor is asked first,
    /// because only it knows its orphans.
    pub fn kill(&mut self) -> rustix::io::Result<()> {
        self.lifeline = None;
        if self.namespace {
            return kill_by_pidfd(&self.pidfd);
        }
        let patience = Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        if poll(
            &mut [PollFd::new(&self.pidfd, PollFlags::IN)],
            Some(&patience),
        )? == 0
        {
            for pid in crate::procfs::descendants(self.pid) {
                if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
                    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or(());
                }
            }
            kill_by_pidfd(&self.pidfd)?;
        }
        Ok(())
    }

    /// Waits for init to be gone, and with it everything in the cell.
    pub fn reap(&mut self) -> rustix::io::Result<()> {
        if self.foreign {
            self.wait_gone()?;
            self.reaped = true;
        }
        if !self.reaped {
            loop {
                match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED) {
                    Err(Errno::INTR) => {}
                    Ok(_) | Err(Errno::CHILD) => break,
                    Err(errno) => return Err(errno),
                }
            }
            self.reaped = true;
        }
        Ok(())
    }
}

impl Cell {
    /// Init is dead only when everything in its namespace is.
    fn wait_gone(&self) -> rustix::io::Result<()> {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        loop {
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                other => return other.map(drop),
            }
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if !self.reaped {
            // Best effort on a path that has failed already; the lifeline closes in any case.
            self.kill().unwrap_or(());
            self.reap().unwrap_or(());
        }
    }
}
