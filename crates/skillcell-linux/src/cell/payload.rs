//! The last steps of the payload: limits, its Landlock domain, its descriptors, and execve, or the
//! memory that it goes on with.

use super::spec::{CellSpec, Exec, Resource, Start};
use crate::error::{During, LinuxError, Result, Step};
use crate::{fdpass, landlock_domain, sys};
use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{Resource as Kernel, Rlimit, getrlimit, setrlimit};

/// The payload's ends of stdout, stderr and the result pipe, and its stdin.
pub(super) struct Wiring {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) params: OwnedFd,
    pub(super) result: OwnedFd,
}

/// Above every descriptor that the payload gets, so that arranging them clobbers none.
const SAFE: RawFd = 16;
/// The handshake while the payload is between fork and exec; closed by the exec.
const HANDSHAKE: RawFd = 5;

/// Sets rlimits and affinity for everything in the cell.
pub(super) fn limit(spec: &CellSpec) -> Result<()> {
    for (resource, value) in &spec.rlimits {
        let kernel = match resource {
            Resource::Processes => Kernel::Nproc,
            Resource::OpenFiles => Kernel::Nofile,
            Resource::Core => Kernel::Core,
            Resource::FileSize => Kernel::Fsize,
            Resource::LockedMemory => Kernel::Memlock,
            Resource::MessageQueues => Kernel::Msgqueue,
        };
        // A hard limit that is lower already can't be raised, and needn't be.
        let value = getrlimit(kernel)
            .maximum
            .map_or(*value, |hard| hard.min(*value));
        setrlimit(
            kernel,
            Rlimit {
                current: Some(value),
                maximum: Some(value),
            },
        )
        .during(Step::Rlimit)?;
    }
    if let Some(cpus) = spec.cpus {
        let allowed = rustix::thread::sched_getaffinity(None).during(Step::Affinity)?;
        let mut pinned = rustix::thread::CpuSet::new();
        for cpu in (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|c| allowed.is_set(*c))
            .take(cpus as usize)
        {
            pinned.set(cpu);
        }
        rustix::thread::sched_setaffinity(None, &pinned).during(Step::Affinity)?;
    }
    Ok(())
}

/// Forks the payload; gives its number in the caller's pid namespace.
pub(super) fn fork(spec: &CellSpec, handshake: &OwnedFd, wiring: &Wiring) -> Result<i32> {
    if spec.uncommon_number {
        use_up_a_number()?;
    }
    match sys::fork().during(Step::Fork)? {
        0 => {
            let error = match become_payload(spec, handshake, wiring) {
                Err(error) => error,
                Ok(never) => match never {},
            };
            // After close_range only the copy at HANDSHAKE is open; before it, the original.
            let sent = fdpass::send_failed(handshake, &error)
                .or_else(|_| fdpass::send_failed(borrow_handshake(), &error));
            sys::exit_now(if sent.is_ok() { 126 } else { 127 })
        }
        pid => Ok(pid),
    }
}

fn use_up_a_number() -> Result<()> {
    match sys::fork().during(Step::Fork)? {
        0 => sys::exit_now(0),
        pid => {
            let pid = rustix::process::Pid::from_raw(pid);
            rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())
                .during(Step::Fork)
                .map(drop)
        }
    }
}

fn borrow_handshake() -> rustix::fd::BorrowedFd<'static> {
    // SAFETY: used only after `arrange` has put the handshake there, in a process that ends next.
    unsafe { rustix::fd::BorrowedFd::borrow_raw(HANDSHAKE) }
}

enum Never {}

fn become_payload(spec: &CellSpec, handshake: &OwnedFd, wiring: &Wiring) -> Result<Never> {
    rustix::process::setsid().during(Step::Fork)?;
    let cwd = spec.start.cwd();
    rustix::process::chdir(cwd).during_at(Step::Open, cwd)?;
    landlock_domain::enter(&spec.domain)?;
    reset_signals();
    match &spec.start {
        Start::Execute(exec) => {
            arrange(handshake, wiring, &[])?;
            hand_over_listener(spec)?;
            let errno = execve(exec);
            let program = exec.program.to_string_lossy();
            Err(LinuxError::at(Step::Exec, program.as_ref(), errno))
        }
        Start::Resume { stage, .. } => {
            let image: Vec<&OwnedFd> = stage.descriptors().collect();
            arrange(handshake, wiring, &image)?;
            stage.take_signals()?;
            // As an execve would leave it. Nothing of the skill runs beside this, and what there is
            // to see of this program is gone when it does.
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
                .during(Step::Dumpable)?;
            stage.take_layout()?;
            hand_over_listener(spec)?;
            stage.jump()
        }
    }
}

/// Installs the filter. From here on calls may wait for the supervisor, who has the listener first.
fn hand_over_listener(spec: &CellSpec) -> Result<()> {
    let Some(listener) = spec.filter.install()? else {
        return Ok(());
    };
    match spec.filter.pass() {
        Some(pass) => {
            fdpass::send_ready_with_pass(borrow_handshake(), listener.as_fd(), pass)?;
        }
        None => fdpass::send_ready(borrow_handshake(), &[listener.as_fd()])?,
    }
    // The kernel closes it on execve; closing it here would be one more call to record.
    std::mem::forget(listener);
    Ok(())
}

/// 0 stdin, 1 stdout, 2 stderr, 3 params, 4 result; nothing else survives. Of an image, what it is
/// made from stands behind the handshake, and goes with it.
fn arrange(handshake: &OwnedFd, wiring: &Wiring, image: &[&OwnedFd]) -> Result<()> {
    let own = [
        &wiring.stdin,
        &wiring.stdout,
        &wiring.stderr,
        &wiring.params,
        &wiring.result,
        handshake,
    ];
    let safe = SAFE + image.len() as RawFd;
    let mut high = Vec::with_capacity(own.len() + image.len());
    for fd in own.iter().chain(image) {
        high.push(rustix::io::fcntl_dupfd_cloexec(fd, safe).during(Step::Descriptors)?);
    }
    for (target, fd) in high.iter().enumerate() {
        sys::dup_to(fd.as_fd(), target as RawFd).during(Step::Descriptors)?;
    }
    rustix::io::fcntl_setfd(borrow_handshake(), rustix::io::FdFlags::CLOEXEC)
        .during(Step::Descriptors)?;
    // `high` is closed by this as well; forgetting it keeps its destructor from closing twice.
    let kept = high.len() as u32;
    std::mem::forget(high);
    sys::close_range(kept).during(Step::Descriptors)
}

fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is valid for every signal; those that can't be changed fail harmlessly.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set is initialised before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn execve(exec: &Exec) -> Errno {
    let pointers = |list: &[std::ffi::CString]| -> Vec<*const libc::c_char> {
        list.iter()
            .map(|s| s.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (argv, env) = (pointers(&exec.argv), pointers(&exec.env));
    // SAFETY: both arrays end in NULL and point at strings that live in `exec`.
    unsafe { libc::execve(exec.program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    sys::last_errno()
}
