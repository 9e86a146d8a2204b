//! A payload held still by ptrace while its image is taken, and asked about what only it can be
//! asked: each question is one system call that it is made to do.

use crate::error::{During, LinuxError, Result, Step};
use crate::sys::check;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// As the kernel's `user_regs_struct`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) r15: u64,
    pub(super) r14: u64,
    pub(super) r13: u64,
    pub(super) r12: u64,
    pub(super) rbp: u64,
    pub(super) rbx: u64,
    pub(super) r11: u64,
    pub(super) r10: u64,
    pub(super) r9: u64,
    pub(super) r8: u64,
    pub(super) rax: u64,
    pub(super) rcx: u64,
    pub(super) rdx: u64,
    pub(super) rsi: u64,
    pub(super) rdi: u64,
    pub(super) orig_rax: u64,
    pub(super) rip: u64,
    pub(super) cs: u64,
    pub(super) eflags: u64,
    pub(super) rsp: u64,
    pub(super) ss: u64,
    pub(super) fs_base: u64,
    pub(super) gs_base: u64,
    pub(super) ds: u64,
    pub(super) es: u64,
    pub(super) fs: u64,
    pub(super) gs: u64,
}

#[repr(C)]
#[derive(Default)]
struct RseqConfiguration {
    address: u64,
    size: u32,
    signature: u32,
    flags: u32,
    pad: u32,
}

const SEIZE: libc::c_ulong = 0x4206;
const INTERRUPT: libc::c_ulong = 0x4207;
const GET_SIGNAL_MASK: libc::c_ulong = 0x420a;
const GET_RSEQ: libc::c_ulong = 0x420f;
const GET_REGISTERS: libc::c_ulong = 12;
const SET_REGISTERS: libc::c_ulong = 13;
const GET_FLOAT: libc::c_ulong = 14;
const SINGLE_STEP: libc::c_ulong = 9;
const CONT: libc::c_ulong = 7;
const DETACH: libc::c_ulong = 17;
const EXIT_KILL: libc::c_ulong = 0x10_0000;

/// Bytes of a `syscall` instruction.
const CALL_BYTES: u64 = 2;

/// A process that this thread traces. It is let go where it was stopped: a dead tracee would keep
/// its namespace alive until somebody asks for it.
pub(super) struct Tracee {
    pid: libc::pid_t,
    registers: Registers,
    /// In its `read`, as `registers` say.
    stopped: bool,
}

fn ptrace(request: libc::c_ulong, pid: libc::pid_t, address: u64, data: u64) -> Result<()> {
    // SAFETY: every request used here reads or writes at most what `data` points at, which the
    // callers below own and size as the request's structure.
    check(unsafe { libc::syscall(libc::SYS_ptrace, request, pid, address, data) })
        .map(drop)
        .during(Step::Image)
}

impl Tracee {
    /// Stops the process in its `read` of a descriptor. `None`: it does something else, for longer
    /// than anybody waits.
    pub(super) fn stop_reading(pid: u32, fd: u64) -> Result<Option<Tracee>> {
        let pid = pid as libc::pid_t;
        ptrace(SEIZE, pid, 0, EXIT_KILL)?;
        let mut tracee = Tracee {
            pid,
            registers: Registers::default(),
            stopped: false,
        };
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            ptrace(INTERRUPT, pid, 0, 0)?;
            wait_stopped(pid)?;
            tracee.stopped = true;
            let mut registers = Registers::default();
            ptrace(GET_REGISTERS, pid, 0, (&raw mut registers) as u64)?;
            tracee.registers = registers;
            // ERESTARTSYS and its kin: it was waiting, and has read nothing.
            let waiting = (-516..=-512).contains(&(registers.rax as i64));
            let reads = registers.orig_rax == libc::SYS_read as u64 && registers.rdi == fd;
            if waiting && reads {
                return Ok(Some(tracee));
            }
            if Instant::now() > deadline {
                tracee.busy()?;
                return Ok(None);
            }
            ptrace(CONT, pid, 0, 0)?;
            tracee.stopped = false;
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Lets a process go on that was stopped in something else.
    fn busy(&mut self) -> Result<()> {
        self.stopped = false;
        ptrace(DETACH, self.pid, 0, 0)
    }

    /// With the call that it waits in about to be made again.
    pub(super) fn registers(&self) -> Registers {
        Registers {
            rip: self.registers.rip - CALL_BYTES,
            rax: self.registers.orig_rax,
            ..self.registers
        }
    }

    pub(super) fn float(&self) -> Result<Box<[u8; 512]>> {
        let mut float = Box::new([0u8; 512]);
        ptrace(GET_FLOAT, self.pid, 0, float.as_mut_ptr() as u64)?;
        Ok(float)
    }

    pub(super) fn blocked_signals(&self) -> Result<u64> {
        let mut mask = 0u64;
        ptrace(GET_SIGNAL_MASK, self.pid, 8, (&raw mut mask) as u64)?;
        Ok(mask)
    }

    /// `None` where the kernel or the C library has none.
    pub(super) fn rseq(&self) -> Option<super::Rseq> {
        let mut rseq = RseqConfiguration::default();
        let size = size_of::<RseqConfiguration>() as u64;
        ptrace(GET_RSEQ, self.pid, size, (&raw mut rseq) as u64).ok()?;
        (rseq.address != 0).then_some(super::Rseq {
            address: rseq.address,
            size: rseq.size,
            signature: rseq.signature,
        })
    }

    pub(super) fn robust_list(&self) -> Result<(u64, u64)> {
        let (mut head, mut size) = (0u64, 0u64);
        // SAFETY: the call writes one pointer and one size.
        check(unsafe {
            libc::syscall(
                libc::SYS_get_robust_list,
                self.pid,
                &raw mut head,
                &raw mut size,
            )
        })
        .during(Step::Image)?;
        Ok((head, size))
    }

    /// An address below its stack that it may use for an answer.
    pub(super) fn space(&self) -> u64 {
        (self.registers.rsp - 1024) & !63
    }

    /// Makes it do one system call, which its filter must allow without asking.
    pub(super) fn call(&self, nr: libc::c_long, args: [u64; 4]) -> Result<u64> {
        let mut registers = self.registers();
        registers.rax = nr as u64;
        registers.orig_rax = u64::MAX; // nothing to make again
        [registers.rdi, registers.rsi, registers.rdx, registers.r10] = args;
        ptrace(SET_REGISTERS, self.pid, 0, (&raw const registers) as u64)?;
        ptrace(SINGLE_STEP, self.pid, 0, 0)?;
        wait_stopped(self.pid)?;
        let mut after = Registers::default();
        ptrace(GET_REGISTERS, self.pid, 0, (&raw mut after) as u64)?;
        let result = after.rax as i64;
        match result {
            -4095..=-1 => Err(LinuxError::new(
                Step::Image,
                Errno::from_raw_os_error(-result as i32),
            )),
            _ if after.rip != self.registers.rip => Err(LinuxError::new(Step::Image, Errno::FAULT)),
            _ => Ok(after.rax),
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if !self.stopped {
            return;
        }
        let registers = Registers {
            orig_rax: u64::MAX,
            ..self.registers()
        };
        // It may be dead by now; then there is nothing to let go.
        ptrace(SET_REGISTERS, self.pid, 0, (&raw const registers) as u64)
            .and_then(|()| ptrace(DETACH, self.pid, 0, 0))
            .unwrap_or(());
    }
}

fn wait_stopped(pid: libc::pid_t) -> Result<()> {
    loop {
        let mut status = 0;
        // SAFETY: the call writes one int.
        let got = check(unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) }.into());
        match got {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(LinuxError::new(Step::Image, errno)),
            Ok(_) if libc::WIFSTOPPED(status) => return Ok(()),
            Ok(_) => return Err(LinuxError::new(Step::Image, Errno::SRCH)),
        }
    }
}
