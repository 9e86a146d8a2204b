//! How many calls run at once, and who is next.
//!
//! Skills take turns: of those that wait, each gets one call through before any gets a second, so
//! that a flood of calls of one skill doesn't hold up another's. The waiting room is bounded, and
//! no skill may have more than half of it; who finds no place is told that the daemon is busy.

use crate::cancel::Cancel;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    running: usize,
    waiting: usize,
    turned_away: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// A queue per skill, the next one in front. Never one that is empty.
    queues: VecDeque<(String, VecDeque<Arc<Ticket>>)>,
}

#[derive(Debug)]
struct Ticket {
    called: OwnedFd,
}

/// A place among the running calls; given back when dropped.
#[derive(Debug)]
pub struct Permit<'a>(&'a Gate);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    Busy,
    /// The caller left while waiting.
    Cancelled,
}

impl Gate {
    /// At most `running` at once, and `waiting` besides.
    pub fn new(running: usize, waiting: usize) -> Gate {
        Gate {
            state: Mutex::default(),
            running: running.max(1),
            waiting,
            turned_away: AtomicU64::new(0),
        }
    }

    /// Waits for a place.
    pub fn enter(&self, skill: &str, cancel: &Cancel) -> Result<Permit<'_>, TurnedAway> {
        let ticket = {
            let mut state = self.lock();
            if state.running < self.running {
                state.running += 1;
                return Ok(Permit(self));
            }
            let Some(ticket) = self.ticket(&mut state, skill) else {
                self.turned_away.fetch_add(1, Ordering::Relaxed);
                return Err(TurnedAway::Busy);
            };
            ticket
        };
        loop {
            let mut fds = [
                PollFd::new(&ticket.called, PollFlags::IN),
                PollFd::new(cancel, PollFlags::IN),
            ];
            let failed = match poll(&mut fds, None) {
                Ok(_) => false,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => true,
            };
            if !fds[0].revents().is_empty() {
                return Ok(Permit(self));
            }
            if failed || !fds[1].revents().is_empty() {
                return match self.leave(skill, &ticket) {
                    Left::Waiting => Err(TurnedAway::Cancelled),
                    // Called in the same moment: the place is ours to give back.
                    Left::Called => {
                        drop(Permit(self));
                        Err(TurnedAway::Cancelled)
                    }
                };
            }
        }
    }

    fn ticket(&self, state: &mut State, skill: &str) -> Option<Arc<Ticket>> {
        if state.waiting >= self.waiting {
            return None;
        }
        let share = self.waiting.div_ceil(2);
        let queue = state.queues.iter_mut().position(|(name, _)| name == skill);
        if queue.is_some_and(|at| state.queues[at].1.len() >= share) {
            return None;
        }
        // A host that is out of descriptors is busy too.
        let called = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        let ticket = Arc::new(Ticket { called });
        match queue {
            Some(at) => state.queues[at].1.push_back(Arc::clone(&ticket)),
            None => {
                let queue = VecDeque::from([Arc::clone(&ticket)]);
                state.queues.push_back((skill.to_owned(), queue));
            }
        }
        state.waiting += 1;
        Some(ticket)
    }

    fn leave(&self, skill: &str, ticket: &Arc<Ticket>) -> Left {
        let mut state = self.lock();
        let Some(at) = state.queues.iter().position(|(name, _)| name == skill) else {
            return Left::Called;
        };
        let queue = &mut state.queues[at].1;
        let Some(place) = queue.iter().position(|t| Arc::ptr_eq(t, ticket)) else {
            return Left::Called;
        };
        queue.remove(place);
        if queue.is_empty() {
            state.queues.remove(at);
        }
        state.waiting -= 1;
        Left::Waiting
    }

    pub fn running(&self) -> usize {
        self.lock().running
    }

    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Left {
    Waiting,
    Called,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        while let Some((skill, mut queue)) = state.queues.pop_front() {
            let Some(ticket) = queue.pop_front() else {
                continue;
            };
            state.waiting -= 1;
            if !queue.is_empty() {
                state.queues.push_back((skill, queue));
            }
            // An event descriptor takes a 1 always; were it not so, the next one gets the place.
            if rustix::io::write(&ticket.called, &1u64.to_ne_bytes()).is_ok() {
                return;
            }
        }
        state.running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::EndAll;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    fn never() -> Cancel {
        Cancel::new(None, &EndAll::new().unwrap()).unwrap()
    }

    fn until(what: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(5);
        while !what() {
            assert!(Instant::now() < end, "it did not happen");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn skills_take_turns_however_many_calls_one_of_them_has() {
        let gate = Gate::new(1, 16);
        let first = gate.enter("flood", &never()).unwrap();
        let (sender, order) = mpsc::channel();
        std::thread::scope(|scope| {
            for (place, skill) in ["flood", "flood", "flood", "other"].iter().enumerate() {
                let (gate, sender) = (&gate, sender.clone());
                scope.spawn(move || {
                    let permit = gate.enter(skill, &never()).unwrap();
                    sender.send(*skill).unwrap();
                    drop(permit);
                });
                until(|| gate.waiting() == place + 1);
            }
            drop(first);
        });
        drop(sender);
        let order: Vec<_> = order.iter().collect();
        assert_eq!(order, ["flood", "other", "flood", "flood"]);
        assert_eq!((gate.running(), gate.waiting()), (0, 0));
    }

    #[test]
    fn a_full_room_is_busy_and_one_skill_has_half_of_it_at_most() {
        let gate = Gate::new(1, 4);
        let first = gate.enter("a", &never()).unwrap();
        std::thread::scope(|scope| {
            for place in 0..2 {
                let gate = &gate;
                scope.spawn(move || drop(gate.enter("a", &never())));
                until(|| gate.waiting() == place + 1);
            }
            assert_eq!(gate.enter("a", &never()).unwrap_err(), TurnedAway::Busy);
            for place in 2..4 {
                let gate = &gate;
                scope.spawn(move || drop(gate.enter("b", &never())));
                until(|| gate.waiting() == place + 1);
            }
            assert_eq!(gate.enter("c", &never()).unwrap_err(), TurnedAway::Busy);
            assert_eq!(gate.turned_away(), 2);
            drop(first);
        });
        assert_eq!((gate.running(), gate.waiting()), (0, 0));
    }

    #[test]
    fn who_leaves_the_room_takes_no_place() {
        let gate = Gate::new(1, 4);
        let first = gate.enter("a", &never()).unwrap();
        let all = EndAll::new().unwrap();
        let cancel = Cancel::new(None, &all).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter("a", &cancel).err());
            until(|| gate.waiting() == 1);
            all.now().unwrap();
            assert_eq!(waiting.join().unwrap(), Some(TurnedAway::Cancelled));
        });
        drop(first);
        assert_eq!((gate.running(), gate.waiting()), (0, 0));
        assert!(gate.enter("a", &never()).is_ok());
    }
}
