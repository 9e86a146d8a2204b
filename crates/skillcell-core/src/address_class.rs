//! What an address is for. Only public ones may be reached by name; everything else leads to the
//! host, to its neighbours, to a cloud's control plane, or to one of those by translation.

use ipnet::{Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressClass {
    /// The documentation ranges are public too: nothing of anybody's lies there.
    Public,
    /// `0.0.0.0/8` and `::`, which mean this host.
    Unspecified,
    Loopback,
    /// RFC 1918, shared (carrier) space, unique local and site-local IPv6.
    Private,
    LinkLocal,
    /// Where clouds hand out credentials.
    Metadata,
    Multicast,
    Broadcast,
    /// Kept by the standards for something else than hosts.
    Reserved,
    Benchmarking,
    /// An IPv4 address written as IPv6, mapped or compatible.
    Mapped,
    /// An IPv6 address that a gateway turns into an IPv4 one: NAT64, 6to4, Teredo.
    Translated,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(head: [u16; 4], prefix: u8) -> Ipv6Net {
    let [a, b, c, d] = head;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix)
}

/// The first that contains an address decides.
const V4: [(Ipv4Net, AddressClass); 18] = [
    (v4(169, 254, 169, 254, 32), AddressClass::Metadata), // AWS, Azure, GCP and others
    (v4(169, 254, 170, 2, 32), AddressClass::Metadata),   // AWS ECS credentials
    (v4(169, 254, 170, 23, 32), AddressClass::Metadata),  // AWS EKS credentials
    (v4(100, 100, 100, 200, 32), AddressClass::Metadata), // Alibaba
    (v4(168, 63, 129, 16, 32), AddressClass::Metadata),   // Azure's wire server, public by number
    (v4(192, 0, 0, 192, 32), AddressClass::Metadata),     // Oracle
    (v4(0, 0, 0, 0, 8), AddressClass::Unspecified),
    (v4(127, 0, 0, 0, 8), AddressClass::Loopback),
    (v4(10, 0, 0, 0, 8), AddressClass::Private),
    (v4(172, 16, 0, 0, 12), AddressClass::Private),
    (v4(192, 168, 0, 0, 16), AddressClass::Private),
    (v4(100, 64, 0, 0, 10), AddressClass::Private),
    (v4(169, 254, 0, 0, 16), AddressClass::LinkLocal),
    (v4(192, 0, 0, 0, 24), AddressClass::Reserved),
    (v4(192, 88, 99, 0, 24), AddressClass::Translated), // 6to4 relays
    (v4(198, 18, 0, 0, 15), AddressClass::Benchmarking),
    (v4(224, 0, 0, 0, 4), AddressClass::Multicast),
    (v4(255, 255, 255, 255, 32), AddressClass::Broadcast),
];
const V4_RESERVED: Ipv4Net = v4(240, 0, 0, 0, 4);

const V6: [(Ipv6Net, AddressClass); 13] = [
    (v6([0x64, 0xff9b, 0, 0], 96), AddressClass::Translated),
    (v6([0x64, 0xff9b, 1, 0], 48), AddressClass::Translated),
    (v6([0x2002, 0, 0, 0], 16), AddressClass::Translated),
    (v6([0x2001, 0, 0, 0], 32), AddressClass::Translated),
    (v6([0x2001, 2, 0, 0], 48), AddressClass::Benchmarking),
    (v6([0x2001, 0x10, 0, 0], 28), AddressClass::Reserved), // ORCHID
    (v6([0x2001, 0x20, 0, 0], 28), AddressClass::Reserved), // ORCHIDv2
    (v6([0x2001, 0xdb8, 0, 0], 32), AddressClass::Public),
    (v6([0x100, 0, 0, 0], 64), AddressClass::Reserved), // discard
    (v6([0xfe80, 0, 0, 0], 10), AddressClass::LinkLocal),
    (v6([0xfec0, 0, 0, 0], 10), AddressClass::Private),
    (v6([0xfc00, 0, 0, 0], 7), AddressClass::Private),
    (v6([0xff00, 0, 0, 0], 8), AddressClass::Multicast),
];
/// All that is handed out so far. What lies outside of it is reserved.
const V6_GLOBAL: Ipv6Net = v6([0x2000, 0, 0, 0], 3);
const V6_METADATA: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // AWS
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),  // AWS EKS credentials
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // GCP
];

impl AddressClass {
    /// The class of the address as it stands: a mapped address is `Mapped`, whatever it maps.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    pub fn is_public(self) -> bool {
        self == AddressClass::Public
    }

    pub fn as_str(self) -> &'static str {
        match self {
            AddressClass::Public => "public",
            AddressClass::Unspecified => "unspecified",
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Metadata => "cloud metadata",
            AddressClass::Multicast => "multicast",
            AddressClass::Broadcast => "broadcast",
            AddressClass::Reserved => "reserved",
            AddressClass::Benchmarking => "benchmarking",
            AddressClass::Mapped => "IPv4-mapped",
            AddressClass::Translated => "translated",
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    match V4.iter().find(|(net, _)| net.contains(&address)) {
        Some((_, class)) => *class,
        None if V4_RESERVED.contains(&address) => AddressClass::Reserved,
        None => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    if V6_METADATA.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => return AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => return AddressClass::Loopback,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => {
            return AddressClass::Mapped;
        }
        _ => {}
    }
    match V6.iter().find(|(net, _)| net.contains(&address)) {
        Some((_, class)) => *class,
        None if V6_GLOBAL.contains(&address) => AddressClass::Public,
        None => AddressClass::Reserved,
    }
}

/// The IPv4 address that an IPv6 one stands for, by mapping or translation: a rule against the
/// first must hold against the second.
pub fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // The last 32 bits: mapped, compatible, translated by RFC 2765, and NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low] => Some(pair(high, low)),
        [0x2002, high, low, ..] => Some(pair(high, low)),
        // Teredo hides the client's address by inverting it.
        [0x2001, 0, _, _, _, _, high, low] => Some(pair(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> AddressClass {
        AddressClass::of(text.parse().unwrap_or_else(|e| panic!("{text}: {e}")))
    }

    #[test]
    fn special_addresses_are_known_by_their_class() {
        use AddressClass as C;
        for (address, expected) in [
            ("0.0.0.0", C::Unspecified),
            ("0.1.2.3", C::Unspecified),
            ("::", C::Unspecified),
            ("127.0.0.1", C::Loopback),
            ("127.255.255.255", C::Loopback),
            ("::1", C::Loopback),
            ("10.0.0.1", C::Private),
            ("172.31.255.255", C::Private),
            ("192.168.0.1", C::Private),
            ("100.64.0.1", C::Private),
            ("100.127.255.255", C::Private),
            ("fc00::1", C::Private),
            ("fdff::1", C::Private),
            ("fec0::1", C::Private),
            ("169.254.1.1", C::LinkLocal),
            ("fe80::1", C::LinkLocal),
            ("169.254.169.254", C::Metadata),
            ("169.254.170.2", C::Metadata),
            ("fd00:ec2::254", C::Metadata),
            ("100.100.100.200", C::Metadata),
            ("168.63.129.16", C::Metadata),
            ("224.0.0.1", C::Multicast),
            ("ff02::1", C::Multicast),
            ("255.255.255.255", C::Broadcast),
            ("240.0.0.1", C::Reserved),
            ("192.0.0.8", C::Reserved),
            ("100::1", C::Reserved),
            ("2001:10::1", C::Reserved),
            ("2001:20::1", C::Reserved),
            ("4000::1", C::Reserved),
            ("198.18.0.1", C::Benchmarking),
            ("198.19.255.255", C::Benchmarking),
            ("2001:2::1", C::Benchmarking),
            ("::ffff:8.8.8.8", C::Mapped),
            ("::8.8.8.8", C::Mapped),
            ("64:ff9b::8.8.8.8", C::Translated),
            ("64:ff9b:1::1", C::Translated),
            ("2002:808:808::1", C::Translated),
            ("2001::1", C::Translated),
            ("192.88.99.1", C::Translated),
        ] {
            assert_eq!(class(address), expected, "{address}");
        }
    }

    #[test]
    fn public_and_documentation_addresses_are_public() {
        for address in [
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.32.0.1",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "2001:db8::1",
            "2606:4700::1111",
            "198.20.0.1",
        ] {
            assert_eq!(class(address), AddressClass::Public, "{address}");
        }
    }

    #[test]
    fn an_address_within_an_address_is_found() {
        let inside = |text: &str| embedded_ipv4(text.parse().unwrap_or_else(|e| panic!("{e}")));
        let ten = Some(Ipv4Addr::new(10, 0, 0, 1));
        for address in [
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "2002:a00:1::",
            "2001:0:1:2:3:4:f5ff:fffe",
        ] {
            assert_eq!(inside(address), ten, "{address}");
        }
        assert_eq!(inside("2001:db8::1"), None);
        assert_eq!(inside("10.0.0.1"), None);
    }
}
