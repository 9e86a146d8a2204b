//! Something kept by exact name, by suffix and by network, found without looking at the rest.

use ipnet::{IpNet, Ipv4Net};
use std::collections::HashMap;
use std::net::IpAddr;

/// Networks of one prefix length, by their first address.
#[derive(Debug)]
struct Prefixed<K, T> {
    length: u8,
    networks: HashMap<K, T>,
}

#[derive(Debug)]
pub(super) struct Table<T> {
    names: HashMap<Box<str>, T>,
    suffixes: HashMap<Box<str>, T>,
    v4: Vec<Prefixed<u32, T>>,
    v6: Vec<Prefixed<u128, T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            names: HashMap::new(),
            suffixes: HashMap::new(),
            v4: Vec::new(),
            v6: Vec::new(),
        }
    }
}

impl<T: Default> Table<T> {
    /// The entry of a pattern: `wildcard_base` where it has one, else the exact name.
    pub(super) fn name_mut(&mut self, pattern: &str, wildcard_base: Option<&str>) -> &mut T {
        match wildcard_base {
            Some(base) => self.suffixes.entry(base.into()).or_default(),
            None => self.names.entry(pattern.into()).or_default(),
        }
    }

    pub(super) fn network_mut(&mut self, network: IpNet) -> &mut T {
        let network = unmapped(network);
        let length = network.prefix_len();
        match network.network() {
            IpAddr::V4(first) => slot(&mut self.v4, length, first.to_bits()),
            IpAddr::V6(first) => slot(&mut self.v6, length, first.to_bits()),
        }
    }

    pub(super) fn exact(&self, name: &str) -> Option<&T> {
        self.names.get(name)
    }

    /// Entries of wildcards above the name, from the nearest on.
    pub(super) fn above<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a T> {
        let none = self.suffixes.is_empty();
        std::iter::successors(Some(name), |rest| rest.split_once('.').map(|(_, r)| r))
            .skip(1)
            .take_while(move |_| !none)
            .filter_map(|base| self.suffixes.get(base))
    }

    /// Entries of networks that the address lies in, each with its prefix length.
    pub(super) fn around(&self, address: IpAddr) -> impl Iterator<Item = (u8, &T)> {
        let (v4, v6) = match address {
            IpAddr::V4(a) => (Some(a.to_bits()), None),
            IpAddr::V6(a) => (None, Some(a.to_bits())),
        };
        let v4 = v4.into_iter().flat_map(|bits| {
            self.v4.iter().filter_map(move |p| {
                let first = bits & u32::MAX.checked_shl(32 - u32::from(p.length)).unwrap_or(0);
                p.networks.get(&first).map(|found| (p.length, found))
            })
        });
        let v6 = v6.into_iter().flat_map(|bits| {
            self.v6.iter().filter_map(move |p| {
                let first = bits
                    & u128::MAX
                        .checked_shl(128 - u32::from(p.length))
                        .unwrap_or(0);
                p.networks.get(&first).map(|found| (p.length, found))
            })
        });
        v4.chain(v6)
    }
}

fn slot<K: std::hash::Hash + Eq, T: Default>(
    all: &mut Vec<Prefixed<K, T>>,
    length: u8,
    first: K,
) -> &mut T {
    let at = match all.binary_search_by_key(&length, |p| p.length) {
        Ok(at) => at,
        Err(at) => {
            let networks = HashMap::new();
            all.insert(at, Prefixed { length, networks });
            at
        }
    };
    all[at].networks.entry(first).or_default()
}

/// A network of IPv4 addresses in IPv6 clothes as what it is: addresses come without them.
fn unmapped(network: IpNet) -> IpNet {
    const MAPPED: u8 = 96;
    let IpNet::V6(v6) = network else {
        return network;
    };
    match (
        v6.addr().to_ipv4_mapped(),
        v6.prefix_len().checked_sub(MAPPED),
    ) {
        (Some(address), Some(length)) => Ipv4Net::new(address, length).map_or(network, IpNet::V4),
        _ => network,
    }
}
