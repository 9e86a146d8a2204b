//! The call's budgets: bytes, connections, requests and hosts, counted for the call as a whole.

use crate::Budget;
use skillcell_core::Host;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    BytesOut,
    BytesIn,
    Connections,
    Requests,
    Hosts,
}

impl Spent {
    /// The field of `network.budget`.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Spent::BytesOut => "bytes_out",
            Spent::BytesIn => "bytes_in",
            Spent::Connections => "connections",
            Spent::Requests => "requests",
            Spent::Hosts => "hosts",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    Out,
    In,
}

/// One connection's own count, beside the call's.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Its number in the call.
    pub(crate) connection: Option<u64>,
    pub(crate) out: AtomicU64,
    pub(crate) into: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Meter {
    budget: Budget,
    total: Traffic,
    connections: AtomicU64,
    requests: AtomicU64,
    hosts: Mutex<HashSet<Host>>,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        Meter {
            budget,
            total: Traffic::default(),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            hosts: Mutex::default(),
        }
    }

    pub(crate) fn connection(&self) -> Result<(), Spent> {
        take(
            &self.connections,
            1,
            self.budget.connections,
            Spent::Connections,
        )
    }

    pub(crate) fn request(&self) -> Result<(), Spent> {
        take(&self.requests, 1, self.budget.requests, Spent::Requests)
    }

    pub(crate) fn host(&self, host: &Host) -> Result<(), Spent> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.contains(host) {
            return Ok(());
        }
        if hosts.len() as u64 >= self.budget.hosts {
            return Err(Spent::Hosts);
        }
        hosts.insert(host.clone());
        Ok(())
    }

    /// Counts what has moved. An error means that the budget is passed and the connection ends.
    pub(crate) fn moved(&self, way: Direction, bytes: u64, own: &Traffic) -> Result<(), Spent> {
        match way {
            Direction::Out => {
                own.out.fetch_add(bytes, Ordering::Relaxed);
                take(
                    &self.total.out,
                    bytes,
                    self.budget.bytes_out,
                    Spent::BytesOut,
                )
            }
            Direction::In => {
                own.into.fetch_add(bytes, Ordering::Relaxed);
                take(
                    &self.total.into,
                    bytes,
                    self.budget.bytes_in,
                    Spent::BytesIn,
                )
            }
        }
    }

    /// Bytes that may still go out or come in.
    pub(crate) fn room(&self, way: Direction) -> u64 {
        match way {
            Direction::Out => {
                self.budget.bytes_out - self.budget.bytes_out.min(get(&self.total.out))
            }
            Direction::In => self.budget.bytes_in - self.budget.bytes_in.min(get(&self.total.into)),
        }
    }

    /// Bytes out and in so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (get(&self.total.out), get(&self.total.into))
    }
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn take(counter: &AtomicU64, amount: u64, limit: u64, spent: Spent) -> Result<(), Spent> {
    let before = counter.fetch_add(amount, Ordering::Relaxed);
    if before.saturating_add(amount) > limit {
        Err(spent)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_nothing_allows_nothing() {
        let meter = Meter::new(Budget {
            bytes_out: 0,
            bytes_in: 0,
            connections: 0,
            requests: 0,
            hosts: 0,
        });
        let host = Host::parse("a.example.com").expect("a host");
        assert_eq!(meter.connection(), Err(Spent::Connections));
        assert_eq!(meter.request(), Err(Spent::Requests));
        assert_eq!(meter.host(&host), Err(Spent::Hosts));
        assert_eq!(
            meter.moved(Direction::Out, 1, &Traffic::default()),
            Err(Spent::BytesOut)
        );
        assert_eq!(meter.room(Direction::In), 0);
    }

    #[test]
    fn a_known_host_costs_nothing_more() {
        let meter = Meter::new(Budget {
            bytes_out: 10,
            bytes_in: 10,
            connections: 2,
            requests: 1,
            hosts: 1,
        });
        let host = |text| Host::parse(text).expect("a host");
        assert_eq!(meter.host(&host("a.example.com")), Ok(()));
        assert_eq!(meter.host(&host("a.example.com")), Ok(()));
        assert_eq!(meter.host(&host("b.example.com")), Err(Spent::Hosts));
    }
}
