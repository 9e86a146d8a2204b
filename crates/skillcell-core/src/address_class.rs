//! What an address is for. Only public ones may be reached by name; everything else leads to the
//! host, to its neighbours, to a cloud's control plane, or to one of those by translation.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
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
const V6_OUTSIDE: [Ipv6Net; 3] = [
    v6([0, 0, 0, 0], 3),
    v6([0x4000, 0, 0, 0], 2),
    v6([0x8000, 0, 0, 0], 1),
];
/// How long the prefix of IPv4 addresses written as IPv6 is.
const MAPPED_PREFIX: u8 = 96;
const V6_METADATA: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // AWS
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),  // AWS EKS credentials
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // GCP
];

impl AddressClass {
    /// The class of the address as it stands: a mapped address is `Mapped`, whatever it maps.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address).0,
            IpAddr::V6(address) => of_v6(address).0,
        }
    }

    /// The special block that an address is of; `None` where it is public. Who names all of a block,
    /// or a part of it, means that kind of address; who names more than it means something else.
    pub fn block(address: IpAddr) -> Option<IpNet> {
        match address {
            IpAddr::V4(address) => of_v4(address).1.map(IpNet::V4),
            IpAddr::V6(address) => of_v6(address).1.map(IpNet::V6),
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

/// The class, and for a special one the block that makes it so.
fn of_v4(address: Ipv4Addr) -> (AddressClass, Option<Ipv4Net>) {
    match V4.iter().find(|(net, _)| net.contains(&address)) {
        Some((net, class)) => (*class, Some(*net)),
        None if V4_RESERVED.contains(&address) => (AddressClass::Reserved, Some(V4_RESERVED)),
        None => (AddressClass::Public, None),
    }
}

fn of_v6(address: Ipv6Addr) -> (AddressClass, Option<Ipv6Net>) {
    let alone = Some(Ipv6Net::from(address));
    if V6_METADATA.contains(&address) {
        return (AddressClass::Metadata, alone);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => return (AddressClass::Unspecified, alone),
        [0, 0, 0, 0, 0, 0, 0, 1] => return (AddressClass::Loopback, alone),
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => {
            let block = Ipv6Net::new(address, MAPPED_PREFIX).ok();
            return (AddressClass::Mapped, block.map(|net| net.trunc()).or(alone));
        }
        _ => {}
    }
    match V6.iter().find(|(net, _)| net.contains(&address)) {
        Some((_, AddressClass::Public)) => (AddressClass::Public, None),
        Some((net, class)) => (*class, Some(*net)),
        None if V6_GLOBAL.contains(&address) => (AddressClass::Public, None),
        None => {
            let block = V6_OUTSIDE.iter().find(|net| net.contains(&address));
            (AddressClass::Reserved, block.copied().or(alone))
        }
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
        // Unspecified and loopback, which have the shape but stand for themselves.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
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
    fn a_special_address_knows_its_block_and_a_public_one_has_none() {
        for (address, block) in [
            ("10.1.2.3", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.0/8"),
            ("169.254.1.1", "169.254.0.0/16"),
            ("169.254.169.254", "169.254.169.254/32"),
            ("168.63.129.16", "168.63.129.16/32"),
            ("250.0.0.1", "240.0.0.0/4"),
            ("::1", "::1/128"),
            ("::ffff:8.8.8.8", "::ffff:0.0.0.0/96"),
            ("64:ff9b::a00:1", "64:ff9b::/96"),
            ("fd12::1", "fc00::/7"),
            ("fd00:ec2::254", "fd00:ec2::254/128"),
            ("1::1", "::/3"),
            ("4000::1", "4000::/2"),
            ("9000::1", "8000::/1"),
        ] {
            let address = address.parse().unwrap_or_else(|e| panic!("{address}: {e}"));
            let block: IpNet = block.parse().unwrap_or_else(|e| panic!("{block}: {e}"));
            assert_eq!(AddressClass::block(address), Some(block), "{address}");
        }
        for public in ["198.51.100.1", "2001:db8::1", "2606:4700::1111"] {
            let address = public.parse().unwrap_or_else(|e| panic!("{public}: {e}"));
            assert_eq!(AddressClass::block(address), None, "{public}");
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
        assert_eq!(inside("::1"), None);
    }
}
