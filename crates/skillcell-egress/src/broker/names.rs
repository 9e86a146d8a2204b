//! Synthetic addresses: each name that a call may reach gets an address of its own, which stands
//! for that name in that call and means nothing outside of it.

use skillcell_core::DomainName;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// 198.18.0.0/15, which no network outside of a laboratory routes.
const V4_BASE: u32 = 0xc612_0000;
const V4_SIZE: u32 = 1 << 17;
/// A unique local prefix.
const V6_BASE: u128 = 0xfd53_6b63_656c_6c00 << 64;

/// Most names of one call, whatever its budget says.
const MAX_NAMES: usize = 4096;

/// Which address stands for which name.
#[derive(Debug, Default)]
pub struct Names(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_name: HashMap<DomainName, u32>,
    by_number: Vec<DomainName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Synthetic(u32);

impl Synthetic {
    pub(crate) fn v4(self) -> IpAddr {
        Ipv4Addr::from(V4_BASE + 1 + self.0).into()
    }

    pub(crate) fn v6(self) -> IpAddr {
        Ipv6Addr::from(V6_BASE + 1 + u128::from(self.0)).into()
    }
}

impl Names {
    /// The address of a name, a new one if it has none yet; `None` when there are too many.
    pub(crate) fn assign(&self, name: &DomainName) -> Option<Synthetic> {
        let mut table = self.table();
        if let Some(number) = table.by_name.get(name) {
            return Some(Synthetic(*number));
        }
        if table.by_number.len() >= MAX_NAMES {
            return None;
        }
        let number = table.by_number.len() as u32;
        table.by_name.insert(name.clone(), number);
        table.by_number.push(name.clone());
        Some(Synthetic(number))
    }

    /// The name that an address stands for.
    pub fn lookup(&self, address: IpAddr) -> Option<DomainName> {
        let number = match address.to_canonical() {
            IpAddr::V4(v4) => u32::from(v4).checked_sub(V4_BASE + 1)?,
            IpAddr::V6(v6) => u32::try_from(u128::from(v6).checked_sub(V6_BASE + 1)?).ok()?,
        };
        self.table().by_number.get(number as usize).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is whole after every statement, so a panic elsewhere can't have torn it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const _: () = assert!(MAX_NAMES < V4_SIZE as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_one_name_only() {
        let names = Names::default();
        let name = |text: &str| DomainName::parse(text).expect("a name");
        let first = names.assign(&name("a.example.com")).expect("room");
        let second = names.assign(&name("b.example.com")).expect("room");
        assert_ne!(first, second);
        assert_eq!(names.assign(&name("a.example.com")), Some(first));
        for address in [first.v4(), first.v6()] {
            assert_eq!(names.lookup(address), Some(name("a.example.com")));
        }
        for address in ["198.18.0.0", "198.18.0.3", "192.0.2.1", "::1", "fd53::1"] {
            assert_eq!(names.lookup(address.parse().expect("an address")), None);
        }
    }
}
