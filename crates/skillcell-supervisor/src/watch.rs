//! Watches one running cell until it ends: collects what it says, answers its notifications, holds
//! the limits that nothing else holds, and takes it down.

use crate::door::View;
use crate::name_stub::NameStub;
use crate::observe::{Observer, OwnFolders, Program, Scene, Seen, World};
use crate::quota::Quota;
use crate::{Interaction, Printed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use skillcell_audit::{Recorder, Summary};
use skillcell_backend::Running;
use skillcell_core::{AuditLevel, Denials, Reason};
use skillcell_linux::cell::Exit;
use skillcell_linux::{LinuxError, set_nonblocking};
use skillcell_plan::Limits;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an event waits at most for others to be written with.
const WRITE_TICK: Duration = Duration::from_millis(50);

/// What was seen of a call.
pub(crate) struct Observed {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) result: Vec<u8>,
    pub(crate) end: End,
    pub(crate) denials: Denials,
    pub(crate) wall: Duration,
    pub(crate) cpu_millis: u64,
    pub(crate) peak_memory: u64,
    /// A limit that was met although the call went on.
    pub(crate) limit_met: Option<Reason>,
    pub(crate) summary: Summary,
    /// Why the record failed, where it did.
    pub(crate) unrecorded: Option<String>,
    /// What still looks at a cell whose end wasn't waited for.
    pub(crate) left: Option<Observer>,
}

#[derive(Debug)]
pub(crate) enum End {
    /// A whole result frame came, or the payload ended by itself.
    Exited(Exit),
    Limit(Reason),
    /// The payload could not be executed.
    NotExecuted(LinuxError),
    /// The supervisor was asked to stop.
    Interrupted,
    /// Init ended without a word: somebody killed it.
    Vanished,
    /// What it does can't be recorded any more.
    Unrecorded,
}

/// What the watch has to know besides the cell.
pub(crate) struct Terms<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) world: World,
    pub(crate) door: Option<View>,
    pub(crate) level: AuditLevel,
    pub(crate) own: OwnFolders,
    pub(crate) first: Option<Program>,
    pub(crate) recorder: Arc<Recorder>,
    /// Where the payload's filter notifies.
    pub(crate) observer: Option<Observer>,
    pub(crate) signals: BorrowedFd<'a>,
    /// Who sees what the skill prints, as it comes.
    pub(crate) ui: &'a dyn Interaction,
    /// Called when there is a whole result, before the cell is taken down.
    pub(crate) at_rest: Option<&'a mut dyn FnMut(&Running)>,
    pub(crate) ending: Ending,
}

/// When a call that has answered counts as over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// When everything in the cell is gone.
    Complete,
    /// When everything in it has been told to go, and can do nothing more that would be seen: the
    /// caller waits for the answer alone.
    Answered,
}

/// Runs the loop to the end of the cell. Nothing of it is left when this returns.
pub(crate) fn watch(running: &mut Running, mut terms: Terms<'_>) -> rustix::io::Result<Observed> {
    let started = Instant::now();
    let (limits, signals, ending) = (terms.limits, terms.signals, terms.ending);
    let at_rest = terms.at_rest.take();
    let recorder = Arc::clone(&terms.recorder);
    let mut streams = Streams::new(running, limits.output.bytes() as usize, terms.ui)?;
    let mut names = NameStub::new(running.cell.dns.take(), Arc::clone(&recorder));
    let mut quota = Quota::new(running, limits);
    let mut observer = terms.observer.take();
    let deadline = started + limits.timeout.duration();
    let end = match confined(running, observer.as_mut(), terms) {
        Ok(None) => turn(
            running,
            &mut streams,
            &mut names,
            &mut quota,
            &recorder,
            deadline,
            signals,
        ),
        Ok(Some(error)) => Ok(End::NotExecuted(error)),
        Err(errno) => Err(errno),
    };
    let end = match end {
        Ok(end) => end,
        Err(errno) => {
            running.cell.kill()?;
            running.cell.reap()?;
            return Err(errno);
        }
    };
    if let (End::Exited(_), Some(at_rest)) = (&end, at_rest) {
        at_rest(running);
    }
    match ending {
        Ending::Complete => quota.last_look(running),
        Ending::Answered => quota.quick_look(running),
    }
    running.cell.kill()?;
    let answered = matches!(end, End::Exited(_)) && streams.result_is_whole();
    let waited = ending == Ending::Complete || !answered;
    if waited {
        running.cell.reap()?;
    }
    let wall = started.elapsed();
    // Everything inside is gone: what is still in the pipes is all there will ever be.
    let flooded = streams.drain(running)?;
    let end = match (end, flooded) {
        (End::Exited(_), true) => End::Limit(Reason::OutputExceeded),
        (end, _) => end,
    };
    let (seen, left) = match (observer, waited) {
        (None, _) => (Seen::default(), None),
        (Some(observer), true) => (observer.finish()?, None),
        (Some(observer), false) => match observer.look_away() {
            Ok(seen) => (seen, Some(observer)),
            Err(_) => (observer.finish()?, None),
        },
    };
    let usage = running.cgroup_usage().unwrap_or_default();
    let limit_met = quota.met(&usage, seen.forks_denied);
    let mut denials = seen.denials;
    denials.absorb(names.into_denials());
    // Also what failed while the cell was taken down.
    let end = match recorder.failure() {
        Some(_) => End::Unrecorded,
        None => end,
    };
    Ok(Observed {
        stdout: streams.stdout.bytes,
        stderr: streams.stderr.bytes,
        result: streams.result.bytes,
        end,
        denials,
        wall,
        cpu_millis: quota.cpu_millis,
        peak_memory: quota.peak_memory(&usage),
        limit_met,
        summary: seen.summary,
        unrecorded: recorder.failure(),
        left,
    })
}

/// Waits until the payload is confined and the observer answers its calls; an error is why it isn't.
fn confined(
    running: &mut Running,
    observer: Option<&mut Observer>,
    terms: Terms<'_>,
) -> rustix::io::Result<Option<LinuxError>> {
    match (running.cell.listener(), observer) {
        (Ok(Some(listener)), Some(observer)) => observer
            .watch(listener, scene(running, terms))
            .map(|()| None),
        (Ok(None), None) => Ok(None),
        (Err(error), _) => Ok(Some(error)),
        // A listener that nobody serves, or the other way around: the skill would wait for ever.
        _ => Err(Errno::PROTO),
    }
}

fn scene(running: &Running, terms: Terms<'_>) -> Scene {
    // The filter reports forks exactly where no cgroup counts them.
    let (_, counted) = running.cgroup_counts();
    Scene {
        world: terms.world,
        door: terms.door,
        level: terms.level,
        own: terms.own,
        first: terms.first,
        fork_limit: (!counted).then_some((running.cell.pid, terms.limits.processes.into())),
        recorder: terms.recorder,
    }
}

fn turn(
    running: &mut Running,
    streams: &mut Streams<'_>,
    names: &mut NameStub,
    quota: &mut Quota,
    recorder: &Recorder,
    deadline: Instant,
    signals: BorrowedFd<'_>,
) -> rustix::io::Result<End> {
    let mut handshake_open = true;
    loop {
        let now = Instant::now();
        if now >= deadline {
            return Ok(End::Limit(Reason::TimeoutExceeded));
        }
        if let Some(reason) = quota.tick(running, now) {
            return Ok(End::Limit(reason));
        }
        // What is recorded and not written yet is written when nothing else happens.
        let wake = quota
            .next_tick()
            .map_or(deadline, |tick| tick.min(deadline))
            .min(now + WRITE_TICK);
        let timeout = timespec(wake.saturating_duration_since(now));
        let cell = &running.cell;
        let mut fds = vec![
            PollFd::from_borrowed_fd(signals, PollFlags::IN),
            PollFd::new(&cell.status, PollFlags::IN),
            PollFd::new(&cell.pidfd, PollFlags::IN),
            PollFd::from_borrowed_fd(recorder.alarm(), PollFlags::IN),
        ];
        let handshake = handshake_open.then(|| {
            fds.push(PollFd::new(&cell.handshake, PollFlags::IN));
            fds.len() - 1
        });
        let stream_start = fds.len();
        streams.push(cell, &mut fds);
        let notice_start = fds.len();
        names.push(&mut fds);
        match poll(&mut fds, Some(&timeout)) {
            // A failure stays with the recorder, and raises its alarm.
            Ok(0) => recorder.flush().unwrap_or(()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);

        if ready[0] {
            return Ok(End::Interrupted);
        }
        if ready[3] {
            return Ok(End::Unrecorded);
        }
        names.serve(&ready[notice_start..]);
        match streams.read(&running.cell, &ready[stream_start..notice_start])? {
            Read::Flood => return Ok(End::Limit(Reason::OutputExceeded)),
            Read::WholeResult => return Ok(End::Exited(Exit::Code(0))),
            Read::More => {}
        }
        if handshake.is_some_and(|at| ready[at]) {
            handshake_open = false;
            if let Some(error) = running.cell.exec_failure() {
                return Ok(End::NotExecuted(error));
            }
        }
        if ready[1] {
            let mut status = [0u8; 4];
            match rustix::io::read(&running.cell.status, &mut status)? {
                4 => return Ok(End::Exited(Exit::from_status(status))),
                _ => return Ok(End::Vanished),
            }
        }
        if ready[2] {
            return Ok(End::Vanished);
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // A little late rather than a busy loop just before the deadline.
    let duration = duration + Duration::from_micros(100);
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: duration.subsec_nanos().into(),
    }
}

enum Read {
    More,
    WholeResult,
    Flood,
}

struct Stream {
    bytes: Vec<u8>,
    /// How much of it was shown.
    shown: usize,
    open: bool,
    max: usize,
}

impl Stream {
    fn new(max: usize) -> Self {
        Stream {
            bytes: Vec::new(),
            shown: 0,
            open: true,
            max,
        }
    }

    /// Reads what is there. True when there is more than allowed.
    fn read(&mut self, fd: &OwnedFd) -> rustix::io::Result<bool> {
        let mut buffer = [0u8; 64 << 10];
        loop {
            match rustix::io::read(fd, &mut buffer) {
                Ok(0) => {
                    self.open = false;
                    return Ok(false);
                }
                Ok(n) => {
                    let room = self.max - self.bytes.len();
                    self.bytes.extend_from_slice(&buffer[..n.min(room)]);
                    if n > room {
                        return Ok(true);
                    }
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

struct Streams<'u> {
    stdout: Stream,
    stderr: Stream,
    result: Stream,
    ui: &'u dyn Interaction,
}

/// Kind and length in front of a result.
pub(crate) const FRAME_HEADER: usize = 9;

impl<'u> Streams<'u> {
    fn new(running: &Running, max: usize, ui: &'u dyn Interaction) -> rustix::io::Result<Self> {
        for fd in [
            &running.cell.stdout,
            &running.cell.stderr,
            &running.cell.result,
        ] {
            set_nonblocking(fd)?;
        }
        Ok(Streams {
            stdout: Stream::new(max),
            stderr: Stream::new(max),
            result: Stream::new(max + FRAME_HEADER),
            ui,
        })
    }

    fn each<'a>(
        &'a mut self,
        cell: &'a skillcell_linux::cell::Cell,
    ) -> [(&'a mut Stream, &'a OwnedFd); 3] {
        [
            (&mut self.result, &cell.result),
            (&mut self.stdout, &cell.stdout),
            (&mut self.stderr, &cell.stderr),
        ]
    }

    fn push<'a>(&self, cell: &'a skillcell_linux::cell::Cell, fds: &mut Vec<PollFd<'a>>) {
        // A closed stream is asked for nothing, but keeps its place.
        let flags = |s: &Stream| {
            if s.open {
                PollFlags::IN
            } else {
                PollFlags::empty()
            }
        };
        fds.push(PollFd::from_borrowed_fd(
            cell.result.as_fd(),
            flags(&self.result),
        ));
        fds.push(PollFd::from_borrowed_fd(
            cell.stdout.as_fd(),
            flags(&self.stdout),
        ));
        fds.push(PollFd::from_borrowed_fd(
            cell.stderr.as_fd(),
            flags(&self.stderr),
        ));
    }

    fn read(
        &mut self,
        cell: &skillcell_linux::cell::Cell,
        ready: &[bool],
    ) -> rustix::io::Result<Read> {
        for (index, (stream, fd)) in self.each(cell).into_iter().enumerate() {
            if ready[index] && stream.open && stream.read(fd)? {
                return Ok(Read::Flood);
            }
        }
        self.show();
        match self.frame_length() {
            Some(length) if length > self.result.max - FRAME_HEADER => Ok(Read::Flood),
            Some(length) if self.result.bytes.len() >= FRAME_HEADER + length => {
                Ok(Read::WholeResult)
            }
            _ => Ok(Read::More),
        }
    }

    fn result_is_whole(&self) -> bool {
        self.frame_length()
            .is_some_and(|length| self.result.bytes.len() >= FRAME_HEADER + length)
    }

    /// Shows what the skill has printed since the last time.
    fn show(&mut self) {
        let streams = [
            (Printed::Stdout, &mut self.stdout),
            (Printed::Stderr, &mut self.stderr),
        ];
        for (from, stream) in streams {
            if stream.shown < stream.bytes.len() {
                self.ui.output(from, &stream.bytes[stream.shown..]);
                stream.shown = stream.bytes.len();
            }
        }
    }

    fn frame_length(&self) -> Option<usize> {
        let length: [u8; 8] = self.result.bytes.get(1..FRAME_HEADER)?.try_into().ok()?;
        Some(usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX))
    }

    /// True when more was in the pipes than is allowed.
    fn drain(&mut self, running: &Running) -> rustix::io::Result<bool> {
        let mut flooded = false;
        for (stream, fd) in self.each(&running.cell) {
            if stream.open {
                flooded |= stream.read(fd)?;
            }
        }
        self.show();
        Ok(flooded)
    }
}
