//! The last step of a payload that is resumed: from here on the process is what the image holds.
//!
//! The table of `plan` is carried out by a few instructions in a page of their own, because code,
//! stack and data of this program are gone by then. The way out is the kernel's own: `rt_sigreturn`
//! sets every register, the signal mask and the state of the floating point unit at once.

use super::plan::{self, Row};
use super::{Image, Layout, State};
use crate::error::{During, LinuxError, Result, Step};
use crate::sys::check;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// An image with its table, ready in this process's memory for any number of forks.
pub struct Stage {
    image: Image,
    room: u64,
    /// Where the row with the process's own number has it.
    number: u64,
    /// Offsets in the room.
    table: u64,
    message: u64,
}

/// As `fdpass` reads it: a kind, a step, an errno.
const FAILED: [u8; 2] = [3, Step::Resume as u8];
const MESSAGE: usize = 6;
/// The kernel's `ucontext`, and the part of it that is on the signal frame.
const CONTEXT: usize = 304;
const FLOAT: usize = 512;
/// The two folders of the kernel's pages are never larger.
const SPARE: u64 = 64 << 10;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.skillcell_resume,\"ax\",@progbits",
    ".globl skillcell_resume_start",
    ".globl skillcell_resume_end",
    "skillcell_resume_start:",
    // rdi: the table, rsi: what is said of a failure.
    "mov r12, rdi",
    "mov r13, rsi",
    "2:",
    "mov rax, [r12]",
    "cmp rax, -1",
    "je 5f",
    "mov rdi, [r12 + 8]",
    "mov rsi, [r12 + 16]",
    "cmp rax, -2",
    "je 4f",
    "mov rdx, [r12 + 24]",
    "mov r10, [r12 + 32]",
    "mov r8, [r12 + 40]",
    "mov r9, [r12 + 48]",
    "syscall",
    "cmp qword ptr [r12 + 56], 0",
    "jne 3f",
    "cmp rax, -4096",
    "ja 6f",
    "3:",
    "add r12, 64",
    "jmp 2b",
    "4:",
    "mov dword ptr [rdi], esi",
    "jmp 3b",
    "5:",
    "mov rsp, [r12 + 8]",
    "mov eax, 15",
    "syscall",
    "6:",
    "neg eax",
    "mov dword ptr [r13 + 2], eax",
    "mov edi, 5",
    "mov rsi, r13",
    "mov edx, 6",
    "mov eax, 1",
    "syscall",
    "mov edi, 126",
    "mov eax, 231",
    "syscall",
    "ud2",
    "skillcell_resume_end:",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
fn code() -> &'static [u8] {
    unsafe extern "C" {
        static skillcell_resume_start: u8;
        static skillcell_resume_end: u8;
    }
    // SAFETY: both symbols stand around the instructions above, in one section of this program.
    unsafe {
        let start = &raw const skillcell_resume_start;
        let end = &raw const skillcell_resume_end;
        std::slice::from_raw_parts(start, end.offset_from(start) as usize)
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn code() -> &'static [u8] {
    &[]
}

impl Stage {
    /// The C library's area for restartable sequences must be off in this process: the kernel would
    /// go on writing to it when it is gone. [`rseq_is_off`] tells.
    pub fn new(image: Image) -> Result<Stage> {
        if !rseq_is_off() || code().is_empty() {
            return Err(LinuxError::new(Step::Resume, Errno::NOTSUP));
        }
        let code_bytes = plan::pages(code().len());
        // The number of rows doesn't depend on where the room is.
        let most = image.areas.len() + 4 * image.vdso.len() + 32;
        let data = most * size_of::<Row>() + CONTEXT + FLOAT + 256;
        let size = code_bytes + plan::pages(data) + SPARE;
        let room = plan::free_room(&image, size)?;
        let spare = room + code_bytes + plan::pages(data);
        let mut rows = plan::rows(&image, (room, room + size), spare)?;
        let number = rows.len() as u64;
        rows.push(plan::own_number(&image));
        let table = code_bytes;
        let float = align(table + ((rows.len() + 1) * size_of::<Row>()) as u64);
        let context = align(float + FLOAT as u64);
        let message = align(context + CONTEXT as u64);
        let mut done = [0u64; 8];
        done[0] = plan::DONE;
        done[1] = room + context;
        rows.push(done);
        map_room(room, size)?;
        let mut bytes = vec![0u8; (message as usize + MESSAGE) - table as usize];
        for (n, row) in rows.iter().enumerate() {
            for (m, word) in row.iter().enumerate() {
                put(&mut bytes, 64 * n + 8 * m, &word.to_ne_bytes());
            }
        }
        let at = |offset: u64| (offset - table) as usize;
        put(&mut bytes, at(float), &image.state.float[..]);
        put(
            &mut bytes,
            at(context),
            &context_of(&image.state, room + float),
        );
        put(&mut bytes, at(message), &FAILED);
        write_room(room, code());
        write_room(room + table, &bytes);
        make_executable(room, code_bytes)?;
        Ok(Stage {
            image,
            room,
            number: room + table + number * size_of::<Row>() as u64 + 16,
            table: room + table,
            message: room + message,
        })
    }

    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What must be open at [`plan::FIRST_IMAGE`] and above when `jump` is called.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.image.memory).chain(&self.image.files)
    }

    /// Sets what the kernel keeps of signals. None is delivered from here on.
    pub(crate) fn take_signals(&self) -> Result<()> {
        let all = u64::MAX;
        // SAFETY: the mask is eight bytes, as the size says.
        check(unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const all,
                0,
                8,
            )
        })
        .during(Step::Resume)?;
        let state = &self.image.state;
        let ignored = (1..=64).filter(|n| state.ignored >> (n - 1) & 1 == 1);
        let ignore = ignored.map(|n| (n, [libc::SIG_IGN as u64, 0, 0, 0]));
        for (signal, action) in ignore.chain(state.handlers.iter().copied()) {
            // SAFETY: the action has the kernel's size and lives across the call; its handler is an
            // address in the image, and every signal is blocked until that is there.
            check(unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), 0, 8) })
                .during(Step::Resume)?;
        }
        let mut name = state.name.clone();
        name.push(0);
        // SAFETY: the name ends in NUL, and the kernel copies at most 16 bytes of it.
        check(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) }.into())
            .during(Step::Resume)
            .map(drop)
    }

    /// Tells the kernel where the image's heap is. This program must not ask for memory any more.
    pub(crate) fn take_layout(&self) -> Result<()> {
        #[repr(C)]
        struct Map {
            layout: Layout,
            auxv: u64,
            auxv_size: u32,
            exe: u32,
        }
        const PR_SET_MM: libc::c_int = 35;
        const PR_SET_MM_MAP: libc::c_ulong = 14;
        let map = Map {
            layout: self.image.state.layout,
            auxv: 0,
            auxv_size: 0,
            exe: u32::MAX,
        };
        // SAFETY: the map has the size that is passed and lives across the call. The heap that this
        // moves is not used again: what comes next only makes system calls.
        check(unsafe {
            libc::prctl(
                PR_SET_MM,
                PR_SET_MM_MAP,
                &raw const map,
                size_of::<Map>(),
                0,
            )
            .into()
        })
        .during(Step::Resume)
        .map(drop)
    }

    /// Becomes the image. The process must be single-threaded, confined, and through with
    /// everything: a failure is written to the handshake.
    pub(crate) fn jump(&self) -> ! {
        let own = rustix::thread::gettid().as_raw_pid() as u32;
        write_room(self.number, &u64::from(own).to_ne_bytes());
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the room holds the code above, mapped executable; table and message are in it, and
        // nothing of this program is used after the jump.
        unsafe {
            std::arch::asm!(
                "jmp {room}",
                room = in(reg) self.room,
                in("rdi") self.table,
                in("rsi") self.message,
                options(noreturn)
            )
        }
        #[cfg(not(target_arch = "x86_64"))]
        crate::sys::exit_now(126)
    }
}

fn align(offset: u64) -> u64 {
    offset.next_multiple_of(64)
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

/// As the kernel lays a signal frame's context out.
fn context_of(state: &State, float: u64) -> [u8; CONTEXT] {
    const STRICT_SS: u64 = 6;
    let r = &state.registers;
    let mut words = [0u64; CONTEXT / 8];
    words[0] = STRICT_SS;
    words[2..5].copy_from_slice(&state.alternate_stack);
    let registers = [
        r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx,
        r.rax, r.rcx, r.rsp, r.rip, r.eflags,
    ];
    words[5..23].copy_from_slice(&registers);
    words[23] = r.cs | r.ss << 48;
    words[28] = float;
    words[37] = state.blocked;
    let mut bytes = [0u8; CONTEXT];
    for (n, word) in words.iter().enumerate() {
        put(&mut bytes, 8 * n, &word.to_ne_bytes());
    }
    bytes
}

/// Whether the kernel has no area of this thread for restartable sequences.
fn rseq_is_off() -> bool {
    const SIGNATURE: u32 = 0x5305_3053;
    #[repr(C, align(32))]
    struct Area([u8; 32]);
    let area = Box::new(Area([0; 32]));
    let address = &raw const area.0;
    let ask = |flags: i32| {
        // SAFETY: the area has the size and alignment that the kernel asks for, and is taken back
        // before it goes.
        check(unsafe { libc::syscall(libc::SYS_rseq, address, 32, flags, SIGNATURE) })
    };
    match ask(0) {
        Ok(_) => ask(1).is_ok(),
        Err(Errno::NOSYS) => true,
        Err(_) => false,
    }
}

fn map_room(room: u64, size: u64) -> Result<()> {
    // SAFETY: without replacing anything, so nothing that exists is touched.
    let got = unsafe {
        libc::mmap(
            room as *mut libc::c_void,
            size as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if got as u64 == room {
        return Ok(());
    }
    Err(LinuxError::new(Step::Resume, Errno::NOMEM))
}

/// `at` is in the room, which has space for the bytes.
fn write_room(at: u64, bytes: &[u8]) {
    // SAFETY: the room was mapped for this alone, with its size reckoned from what is written.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
}

fn make_executable(room: u64, size: u64) -> Result<()> {
    // SAFETY: these pages hold nothing but the code that was just written.
    check(unsafe {
        libc::mprotect(
            room as *mut libc::c_void,
            size as usize,
            libc::PROT_READ | libc::PROT_EXEC,
        )
        .into()
    })
    .during(Step::Resume)
    .map(drop)
}
