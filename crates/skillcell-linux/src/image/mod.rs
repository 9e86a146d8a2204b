//! Images of processes: a payload that has done its start-up is written down once, and resumed any
//! number of times, each time in a fresh cell.
//!
//! A resumed process is made by the same steps as any payload: clone, mounts, limits, Landlock,
//! filter. Only the last one differs: in place of `execve`, the process gives up all of its memory
//! for the image's. So nothing of the image runs before it is confined, nothing of the supervisor's
//! memory is left when it does, and there is no living template that a call could talk to or poison:
//! an image is a sealed file.
//!
//! What can't be carried over (threads, open files, shared memory, timers, files in scratch) is
//! found when the image is taken, and then there is none: [`Unfit`] says why.

mod capture;
mod jump;
mod plan;
mod tracee;
mod vmas;

pub use capture::Expected;
pub use jump::Stage;

use crate::error::LinuxError;
use rustix::fd::OwnedFd;
use tracee::Registers;

/// A payload at rest: its memory, and what the kernel held for it.
pub struct Image {
    /// Written and private pages.
    memory: OwnedFd,
    /// Files that parts of it are mapped from, opened for reading.
    files: Vec<OwnedFd>,
    areas: Vec<Area>,
    vdso: Vec<(u64, u64)>,
    state: State,
    /// Bytes in `memory`.
    size: u64,
}

/// A stretch of memory and where its content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    start: u64,
    end: u64,
    protection: i32,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Zero,
    /// Zero, and grows downwards as far as a stack may.
    Stack,
    /// At this offset of the image's memory.
    Image(u64),
    /// In this file, at this offset.
    File(usize, u64),
}

/// What the kernel keeps for the one thread.
struct State {
    registers: Registers,
    float: Box<[u8; 512]>,
    blocked: u64,
    /// Ignored and handled signals; the rest is at its default.
    ignored: u64,
    handlers: Vec<(i32, [u64; 4])>,
    alternate_stack: [u64; 3],
    clear_tid: u64,
    robust_list: (u64, u64),
    rseq: Option<Rseq>,
    name: Vec<u8>,
    layout: Layout,
}

/// Where the kernel takes parts of memory to be; the heap grows from there. As `prctl_mm_map`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Layout {
    code: [u64; 2],
    data: [u64; 2],
    /// Where the heap begins and ends.
    heap: [u64; 2],
    stack: u64,
    arguments: [u64; 2],
    environment: [u64; 2],
}

#[derive(Debug, Clone, Copy)]
struct Rseq {
    address: u64,
    size: u32,
    signature: u32,
}

/// Why a payload can't be resumed from an image.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unfit {
    #[error("images are made on x86-64 only")]
    Architecture,
    #[error("it started {0} more processes or threads while it was loaded")]
    Tasks(u64),
    #[error("it keeps a file open that it opened while it was loaded: {0}")]
    OpenFile(String),
    #[error("it shares memory: {0}")]
    SharedMemory(String),
    #[error("it set a timer while it was loaded")]
    Timer,
    #[error("it left files in scratch while it was loaded")]
    Scratch,
    #[error("it changed its {0} while it was loaded")]
    Setting(&'static str),
    #[error("it does not wait for its params")]
    Busy,
    #[error("its C library keeps threads in a way that is not known here")]
    Library,
    #[error("its folder changed while it was loaded, or has too many files to tell")]
    Changing,
    #[error("its memory is larger than an image may be ({0} MiB)")]
    Large(u64),
    #[error("this host can't make an image: {0}")]
    Host(#[from] LinuxError),
}

impl Image {
    /// What it takes while it is kept.
    pub fn bytes(&self) -> u64 {
        self.size
    }
}
