//! Takes the image of a payload that waits for its params, after finding that nothing of it would
//! be missing in another process.

use super::tracee::Tracee;
use super::vmas::{self, Vma};
use super::{Area, Content, Image, Layout, State, Unfit};
use crate::error::{During, LinuxError, Step};
use crate::procfs;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Dir, MemfdFlags, Mode, OFlags, ResolveFlags, SealFlags, fstat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Zero pages between others that are stored rather than mapped by themselves.
const SHORT_GAP: u64 = 16 * PAGE;
/// The payload's own: stdin, stdout, stderr, params, result.
const OWN_DESCRIPTORS: u32 = 5;
/// Signals are numbered from 1, their bits from 0.
const SIGNALS: i32 = 64;

/// What is known of a payload that was just made, to tell what loading has changed.
pub struct Expected<'a> {
    /// Init of its cell.
    pub init: u32,
    /// The top of its scratch.
    pub scratch: &'a OwnedFd,
    /// The folder that it was started in.
    pub cwd: &'a std::path::Path,
    /// Bytes that an image may have.
    pub largest: u64,
}

impl Image {
    /// The payload must be waiting in a `read` of descriptor 3. It stays stopped afterwards: its
    /// cell is to end now.
    pub fn take(expected: &Expected<'_>) -> Result<Image, Unfit> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(Unfit::Architecture);
        }
        let tasks = procfs::tasks_below(expected.init).map_err(|e| host(&e))?;
        let [pid] = procfs::children(expected.init)[..] else {
            return Err(Unfit::Tasks(tasks.saturating_sub(1)));
        };
        if tasks != 1 {
            return Err(Unfit::Tasks(tasks - 1));
        }
        let tracee = Tracee::stop_reading(pid, 3)?.ok_or(Unfit::Busy)?;
        // It stands still from here on, so what is found is how it stays.
        check_tasks(pid)?;
        check_descriptors(pid)?;
        check_settings(pid, expected)?;
        check_scratch(expected.scratch)?;
        let text = fs::read(format!("/proc/{pid}/smaps")).map_err(|e| host(&e))?;
        let vmas =
            vmas::parse(&text).ok_or(Unfit::Host(LinuxError::new(Step::Image, Errno::PROTO)))?;
        let state = state(&tracee, pid, &vmas)?;
        let mut writer = Writer::new(pid, expected.largest)?;
        let mut vdso = Vec::new();
        for vma in &vmas {
            if vma.is_vdso() {
                vdso.push((vma.start, vma.end));
            } else if !vma.is_vsyscall() {
                writer.add(vma)?;
            }
        }
        writer.finish(vdso, state)
    }
}

fn host(error: &io::Error) -> Unfit {
    Unfit::Host(LinuxError::io(Step::Image, error))
}

fn check_tasks(pid: u32) -> Result<(), Unfit> {
    match procfs::tasks_below(pid).map_err(|e| host(&e))? {
        0 => {}
        more => return Err(Unfit::Tasks(more)),
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .map_err(|e| host(&e))?
        .count() as u64;
    if threads == 1 {
        Ok(())
    } else {
        Err(Unfit::Tasks(threads - 1))
    }
}

fn check_descriptors(pid: u32) -> Result<(), Unfit> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).map_err(|e| host(&e))? {
        let entry = entry.map_err(|e| host(&e))?;
        let number = entry
            .file_name()
            .to_str()
            .and_then(|n| n.parse::<u32>().ok());
        if number.is_none_or(|n| n >= OWN_DESCRIPTORS) {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            return Err(Unfit::OpenFile(target.to_string_lossy().into_owned()));
        }
    }
    Ok(())
}

/// What a new process would not have as this one has it.
fn check_settings(pid: u32, expected: &Expected<'_>) -> Result<(), Unfit> {
    let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).map_err(|e| host(&e));
    let of_init =
        |file: &str| fs::read(format!("/proc/{}/{file}", expected.init)).map_err(|e| host(&e));
    if !read("timers").unwrap_or_default().is_empty() {
        return Err(Unfit::Timer);
    }
    if read("limits")? != of_init("limits")? {
        return Err(Unfit::Setting("resource limits"));
    }
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).map_err(|e| host(&e))?;
    if cwd != expected.cwd {
        return Err(Unfit::Setting("working folder"));
    }
    let (own, init) = (read("status")?, of_init("status")?);
    for (field, what) in [
        ("Umask:", "umask"),
        // A filter or domain of its own would be gone.
        ("Seccomp_filters:", "system call filters"),
        ("x86_Thread_features:", "control flow protection"),
    ] {
        if line(&own, field) != line(&init, field) {
            return Err(Unfit::Setting(what));
        }
    }
    Ok(())
}

fn line<'a>(status: &'a [u8], field: &str) -> Option<&'a [u8]> {
    status
        .split(|b| *b == b'\n')
        .find_map(|l| l.strip_prefix(field.as_bytes()))
        .map(|rest| rest.trim_ascii())
}

/// Scratch as it was made: folders for the other writable places, and nothing in them. Compiled
/// files of Python's are as good as absent.
fn check_scratch(top: &OwnedFd) -> Result<(), Unfit> {
    for name in names(top, ".")? {
        let empty = match name.as_bytes() {
            b".pycache" => true,
            b".tmp" | b".shm" => names(top, &name)?.is_empty(),
            other => other.starts_with(b".out-") && names(top, &name)?.is_empty(),
        };
        if !empty {
            return Err(Unfit::Scratch);
        }
    }
    Ok(())
}

fn names(top: &OwnedFd, folder: impl AsRef<OsStr>) -> Result<Vec<std::ffi::OsString>, Unfit> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder =
        rustix::fs::openat(top, folder.as_ref(), flags, Mode::empty()).during(Step::Image)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).during(Step::Image)? {
        let entry = entry.during(Step::Image)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// From `/proc/PID/stat`, whose numbers are told to whoever may trace the process.
fn layout(pid: u32, vmas: &[Vma]) -> Result<Layout, Unfit> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| host(&e))?;
    // The name is in brackets, and may have any character.
    let fields: Vec<u64> = text
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // The first field after the name is the third of all.
    let field = |n: usize| fields.get(n - 3).copied().unwrap_or(0);
    let begin = field(47);
    let heap = vmas.iter().find(|v| v.name == b"[heap]");
    let layout = Layout {
        code: [field(26), field(27)],
        data: [field(45), field(46)],
        heap: [begin, heap.map_or(begin, |v| v.end)],
        stack: field(28),
        arguments: [field(48), field(49)],
        environment: [field(50), field(51)],
    };
    match begin {
        0 => Err(Unfit::Host(LinuxError::new(Step::Image, Errno::PROTO))),
        _ => Ok(layout),
    }
}

fn state(tracee: &Tracee, pid: u32, vmas: &[Vma]) -> Result<State, Unfit> {
    let memory = File::open(format!("/proc/{pid}/mem")).map_err(|e| host(&e))?;
    let status = fs::read(format!("/proc/{pid}/status")).map_err(|e| host(&e))?;
    let signals = |field| -> u64 {
        line(&status, field)
            .and_then(|text| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok())
            .unwrap_or(0)
    };
    let word = |address: u64| -> Result<u64, Unfit> {
        let mut bytes = [0u8; 8];
        memory
            .read_exact_at(&mut bytes, address)
            .map_err(|e| host(&e))?;
        Ok(u64::from_le_bytes(bytes))
    };
    let space = tracee.space();
    let mut handlers = Vec::new();
    for signal in (1..=SIGNALS).filter(|n| signals("SigCgt:") >> (n - 1) & 1 == 1) {
        tracee.call(libc::SYS_rt_sigaction, [signal as u64, 0, space, 8])?;
        let mut action = [0u64; 4];
        for (n, value) in action.iter_mut().enumerate() {
            *value = word(space + 8 * n as u64)?;
        }
        handlers.push((signal, action));
    }
    tracee.call(libc::SYS_sigaltstack, [0, space, 0, 0])?;
    let alternate_stack = [word(space)?, word(space + 8)?, word(space + 16)?];
    for timer in [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF] {
        tracee.call(libc::SYS_getitimer, [timer as u64, space, 0, 0])?;
        if word(space + 16)? != 0 || word(space + 24)? != 0 {
            return Err(Unfit::Timer);
        }
    }
    // glibc keeps a thread's number two words before its list of robust mutexes.
    let robust_list = tracee.robust_list()?;
    let clear_tid = robust_list.0.wrapping_sub(16);
    let inside = line(&status, "NSpid:")
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| {
            text.split_ascii_whitespace()
                .next_back()?
                .parse::<u64>()
                .ok()
        });
    if robust_list.0 == 0 || Some(word(clear_tid)? & 0xffff_ffff) != inside {
        return Err(Unfit::Library);
    }
    Ok(State {
        registers: tracee.registers(),
        float: tracee.float()?,
        blocked: tracee.blocked_signals()?,
        ignored: signals("SigIgn:"),
        handlers,
        alternate_stack,
        clear_tid,
        robust_list,
        rseq: tracee.rseq(),
        name: fs::read(format!("/proc/{pid}/comm"))
            .map_err(|e| host(&e))?
            .trim_ascii_end()
            .to_vec(),
        layout: layout(pid, vmas)?,
    })
}

/// Sorts memory into what must be stored and what is in files.
struct Writer {
    memory: File,
    pagemap: File,
    root: OwnedFd,
    stored: File,
    size: u64,
    largest: u64,
    files: Vec<OwnedFd>,
    known: Vec<((u32, u32), u64)>,
    areas: Vec<Area>,
}

impl Writer {
    fn new(pid: u32, largest: u64) -> Result<Writer, Unfit> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let stored = rustix::fs::memfd_create("skillcell-image", flags).during(Step::Image)?;
        let open = |file: &str| File::open(format!("/proc/{pid}/{file}")).map_err(|e| host(&e));
        Ok(Writer {
            memory: open("mem")?,
            pagemap: open("pagemap")?,
            root: rustix::fs::open(
                format!("/proc/{pid}/root"),
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .during(Step::Image)?,
            stored: stored.into(),
            size: 0,
            largest,
            files: Vec::new(),
            known: Vec::new(),
            areas: Vec::new(),
        })
    }

    fn add(&mut self, vma: &Vma) -> Result<(), Unfit> {
        let writable = vma.protection & libc::PROT_WRITE != 0;
        if vma.shared && (writable || !vma.is_file()) {
            return Err(Unfit::SharedMemory(
                String::from_utf8_lossy(&vma.name).into_owned(),
            ));
        }
        let area = |start, end, content| Area {
            start,
            end,
            protection: vma.protection,
            content,
        };
        let file = match vma.is_file() {
            true => self.file(vma)?,
            false => None,
        };
        let below = |start, end| match (file, vma.is_stack()) {
            (Some(file), _) => area(
                start,
                end,
                Content::File(file, vma.offset + (start - vma.start)),
            ),
            (None, true) => area(start, end, Content::Stack),
            (None, false) => area(start, end, Content::Zero),
        };
        if vma.wiped {
            self.areas.push(below(vma.start, vma.end));
            return Ok(());
        }
        // A file that can't be opened as itself is stored like memory.
        let all = vma.is_file() && file.is_none();
        let mut at = vma.start;
        for (start, end) in self.written(vma, all)? {
            if at < start || (vma.is_stack() && at == vma.start) {
                self.areas.push(below(at, start));
            }
            let offset = self.store(start, end)?;
            self.areas.push(area(start, end, Content::Image(offset)));
            at = end;
        }
        if at < vma.end {
            self.areas.push(below(at, vma.end));
        }
        Ok(())
    }

    /// Runs of pages that are the process's own. Short gaps of zeros belong to them.
    fn written(&self, vma: &Vma, all: bool) -> Result<Vec<(u64, u64)>, Unfit> {
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        const OF_FILE: u64 = 1 << 61;
        if all {
            return Ok(vec![(vma.start, vma.end)]);
        }
        if vma.protection == 0 && !vma.is_file() && vma.end - vma.start > self.largest {
            return Ok(Vec::new()); // reserved, never touched
        }
        let pages = (vma.end - vma.start) / PAGE;
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut words = vec![0u8; 8 * pages.min(8192) as usize];
        let mut page = 0;
        while page < pages {
            let count = (pages - page).min(8192) as usize;
            let part = &mut words[..8 * count];
            self.pagemap
                .read_exact_at(part, 8 * (vma.start / PAGE + page))
                .map_err(|e| host(&e))?;
            for (n, word) in part.chunks_exact(8).enumerate() {
                let word = word.try_into().map_or(0, u64::from_le_bytes);
                let own = word & SWAPPED != 0 || (word & PRESENT != 0 && word & OF_FILE == 0);
                if !own {
                    continue;
                }
                let start = vma.start + (page + n as u64) * PAGE;
                match runs.last_mut() {
                    // In a file's mapping a gap has the file's content.
                    Some(run)
                        if start == run.1 || (!vma.is_file() && start - run.1 <= SHORT_GAP) =>
                    {
                        run.1 = start + PAGE;
                    }
                    _ => runs.push((start, start + PAGE)),
                }
            }
            page += count as u64;
        }
        Ok(runs)
    }

    fn store(&mut self, start: u64, end: u64) -> Result<u64, Unfit> {
        let offset = self.size;
        self.size += end - start;
        if self.size > self.largest {
            return Err(Unfit::Large(self.largest >> 20));
        }
        let mut buffer = vec![0u8; 256 << 10];
        let mut at = start;
        while at < end {
            let part = &mut buffer[..(end - at).min(256 << 10) as usize];
            self.memory.read_exact_at(part, at).map_err(|e| host(&e))?;
            self.stored.write_all(part).map_err(|e| host(&e))?;
            at += part.len() as u64;
        }
        Ok(offset)
    }

    /// The mapped file by its name in the cell, if that still leads to it.
    fn file(&mut self, vma: &Vma) -> Result<Option<usize>, Unfit> {
        let key = (vma.device, vma.inode);
        if let Some(at) = self.known.iter().position(|k| *k == key) {
            return Ok(Some(at));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let path = OsStr::from_bytes(&vma.name);
        let Ok(fd) = rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) else {
            return Ok(None);
        };
        let stat = fstat(&fd).during(Step::Image)?;
        let device = (
            rustix::fs::major(stat.st_dev),
            rustix::fs::minor(stat.st_dev),
        );
        if (device, stat.st_ino) != key {
            return Ok(None);
        }
        self.files.push(fd);
        self.known.push(key);
        Ok(Some(self.files.len() - 1))
    }

    fn finish(self, vdso: Vec<(u64, u64)>, state: State) -> Result<Image, Unfit> {
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(self.stored.as_fd(), seals).during(Step::Image)?;
        // Read-only from here on, also by mode: a shared writable mapping can't be made of it.
        let path = format!("/proc/self/fd/{}", self.stored.as_raw_fd());
        let memory = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .during(Step::Image)?;
        Ok(Image {
            memory,
            files: self.files,
            areas: self.areas,
            vdso,
            state,
            size: self.size,
        })
    }
}
