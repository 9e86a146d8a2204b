//! Answers the calls that the filter hands over, and records them. On a thread of its own, because
//! the skill waits for each answer.
//!
//! What the allow list allows goes on, whatever the record says of it; what it doesn't allow is
//! denied. The supervisor has a say only where another mechanism holds (mounts, namespaces), or
//! where it counts.

mod calls;
mod decode;
mod judge;
mod own;
mod paths_inside;
mod security;
mod tally;
mod tasks;

pub(crate) use own::OwnFolders;

use crate::door::View;
use decode::Reader;
use rustix::io::Errno;
use skillcell_audit::{Event, RecordFailed, Recorder, Summary, Syscall, Task};
use skillcell_core::{AuditLevel, Denials};
use skillcell_linux::seccomp::{Answer, Listener, Notification, Received, Verdict, syscall_name};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tally::Tally;
use tasks::Tasks;

/// What kind of cell it is, as far as denials go.
#[derive(Debug, Clone)]
pub(crate) enum World {
    Namespaces,
    /// Writable folders of the host.
    Bare {
        writable: Vec<PathBuf>,
    },
}

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: Vec<u8>,
    pub(crate) argv: Vec<Vec<u8>>,
}

/// What the observer has to know of the call.
pub(crate) struct Scene {
    pub(crate) world: World,
    /// Where the plan grants egress: what the broker serves.
    pub(crate) door: Option<View>,
    pub(crate) level: AuditLevel,
    pub(crate) own: OwnFolders,
    /// What the payload is about to execute: our own copy of it can't be read from outside.
    pub(crate) first: Option<Program>,
    /// Init and the most tasks below it, where the supervisor counts them.
    pub(crate) fork_limit: Option<(u32, u64)>,
    pub(crate) recorder: Arc<Recorder>,
}

/// What it saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) denials: Denials,
    /// Forks that failed for the limit.
    pub(crate) forks_denied: u64,
    pub(crate) summary: Summary,
}

/// What the thread and its call share: `None` before there is something to watch, and after the call
/// was answered.
type Sight = Arc<Mutex<Option<Eyes>>>;

/// The running thread. Ends when it is told to, or when nothing is left to watch.
pub(crate) struct Observer {
    stop: Arc<AtomicBool>,
    sight: Sight,
    /// Where the listener is handed over, until it is.
    listener: Option<Sender<(Listener, Scene)>>,
    /// Says the thread's number once it runs; nobody waits for that until it has to be interrupted.
    tid: Receiver<u32>,
    thread: Option<JoinHandle<rustix::io::Result<()>>>,
}

impl Observer {
    /// Starts the thread, while the cell is still being made: it waits for its listener.
    pub(crate) fn start() -> std::io::Result<Observer> {
        skillcell_linux::allow_interrupts()?;
        let (stop, sight) = (Arc::new(AtomicBool::new(false)), Sight::default());
        let (told, shared) = (Arc::clone(&stop), Arc::clone(&sight));
        let (listener, handed) = channel::<(Listener, Scene)>();
        let (here, there) = channel();
        let thread = std::thread::Builder::new()
            .name("observer".into())
            .spawn(move || {
                // Should nobody listen, the supervisor is on its way out.
                here.send(rustix::thread::gettid().as_raw_pid() as u32)
                    .unwrap_or(());
                let Ok((listener, scene)) = handed.recv() else {
                    return Ok(()); // there won't be one
                };
                let listener = Arc::new(listener);
                let eyes = Eyes::new(Arc::clone(&listener), scene);
                *shared.lock().map_err(|_| Errno::IO)? = Some(eyes);
                watch(&listener, &shared, &told)
            })?;
        Ok(Observer {
            stop,
            sight,
            listener: Some(listener),
            tid: there,
            thread: Some(thread),
        })
    }

    /// What it is to watch. Until then the payload waits at its first notified call.
    pub(crate) fn watch(&mut self, listener: Listener, scene: Scene) -> rustix::io::Result<()> {
        listener.prefer_sync_wakeup();
        let thread = self.listener.take().ok_or(Errno::ALREADY)?;
        thread.send((listener, scene)).map_err(|_| Errno::PIPE)
    }

    /// After the cell is gone: nothing waits for an answer any more.
    pub(crate) fn finish(mut self) -> rustix::io::Result<Seen> {
        self.end();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done.and_then(|()| self.seen()),
            _ => Err(Errno::IO), // it panicked, so nobody knows what it saw
        }
    }

    /// Everything in the cell was told to end. From here on nothing is allowed and nothing recorded;
    /// the thread ends with the cell, or with this value.
    pub(crate) fn look_away(&self) -> rustix::io::Result<Seen> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(Errno::AGAIN); // `finish` says how
        }
        self.seen()
    }

    fn seen(&self) -> rustix::io::Result<Seen> {
        let eyes = self.sight.lock().map_err(|_| Errno::IO)?.take();
        Ok(eyes.map(Eyes::seen).unwrap_or_default())
    }

    /// It may be about to wait just when it is interrupted, so once may not be enough.
    fn end(&mut self) {
        self.listener = None;
        self.stop.store(true, Ordering::Release);
        // Without a number it has ended before it began.
        let Ok(tid) = self.tid.recv() else { return };
        while self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            skillcell_linux::interrupt_thread(tid);
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

/// Straight from call to call: asking first whether one is there would cost as much again.
fn watch(listener: &Listener, sight: &Sight, stop: &AtomicBool) -> rustix::io::Result<()> {
    while !stop.load(Ordering::Acquire) {
        match listener.receive()? {
            Received::Call(call) => serve(listener, sight, call)?,
            Received::Nothing => {}
            Received::Over => break,
        }
    }
    Ok(())
}

fn serve(listener: &Listener, sight: &Sight, call: Notification) -> rustix::io::Result<()> {
    let answer = match sight.lock().map_err(|_| Errno::IO)?.as_mut() {
        // What can't be recorded doesn't happen; the watch ends the call.
        Some(eyes) => eyes
            .answer(&call)
            .unwrap_or(Answer::Errno(Errno::IO.raw_os_error())),
        None => Answer::Errno(Errno::PERM.raw_os_error()),
    };
    listener.answer(&call, answer)
}

/// The thread's state.
struct Eyes {
    listener: Arc<Listener>,
    scene: Scene,
    tasks: Tasks,
    tally: Tally,
    denials: Denials,
    forks_denied: u64,
}

impl Eyes {
    fn new(listener: Arc<Listener>, scene: Scene) -> Eyes {
        Eyes {
            listener,
            scene,
            tasks: Tasks::default(),
            tally: Tally::default(),
            denials: Denials::default(),
            forks_denied: 0,
        }
    }

    fn seen(self) -> Seen {
        Seen {
            denials: self.denials,
            forks_denied: self.forks_denied,
            summary: self.tally.summary(self.tasks.seen()),
        }
    }

    fn answer(&mut self, call: &Notification) -> Result<Answer, RecordFailed> {
        let name = syscall_name(call.nr);
        let task = self.tasks.of(call.pid);
        let verdict = self.listener.verdict(call);
        self.tally.call(calls::layout(&name).0);
        let answer = match verdict {
            Verdict::Allowed => Answer::Continue,
            Verdict::Errno(errno) => Answer::Errno(errno),
            Verdict::Ask => self.judge(call, &name, task)?,
        };
        if answer == Answer::Continue && self.scene.level >= AuditLevel::Security {
            self.note_security(call, &name, task)?;
        }
        if self.scene.level == AuditLevel::Full {
            let errno = match answer {
                Answer::Continue => None,
                Answer::Errno(errno) => Some(errno),
            };
            let event = Event::Syscall(self.decoded(call, &name, errno));
            self.scene.recorder.note(Some(task), &event)?;
        }
        if matches!(name.as_ref(), "exit" | "exit_group") {
            self.tasks.forget(call.pid);
        }
        Ok(answer)
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            listener: &self.listener,
            redactor: self.scene.recorder.redactor(),
        }
    }

    fn decoded(&self, call: &Notification, name: &str, errno: Option<i32>) -> Syscall {
        Syscall {
            name: name.to_owned(),
            args: self.reader().args(call, name),
            errno,
        }
    }

    fn note(&self, task: Task, event: &Event) -> Result<(), RecordFailed> {
        self.scene.recorder.note(Some(task), event)
    }
}
