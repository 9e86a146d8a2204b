//! Arguments of a waiting call as people read them. For the record only: memory may change before
//! the kernel reads it.

use super::calls::layout;
use skillcell_audit::{Redactor, Text};
use skillcell_linux::seccomp::{Listener, Notification};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest path and the longest argument that the kernel takes.
const MAX_PATH: usize = 4096;
const MAX_ARGUMENT: usize = (128 << 10) + 1;
/// Arguments of a program that are recorded.
const MAX_ARGV: usize = 64;
const AT_FDCWD: i32 = -100;

/// Reads what the arguments of one call point at.
pub(super) struct Reader<'a> {
    pub(super) listener: &'a Listener,
    pub(super) redactor: &'a Redactor,
}

impl Reader<'_> {
    /// All arguments, in the manner of the call.
    pub(super) fn args(&self, call: &Notification, name: &str) -> Vec<Text> {
        let (_, letters) = layout(name);
        letters
            .chars()
            .zip(call.args)
            .enumerate()
            .map(|(at, (letter, value))| self.arg(call, letter, value, at))
            .collect()
    }

    fn arg(&self, call: &Notification, letter: char, value: u64, at: usize) -> Text {
        let plain = Text::of_ours;
        match letter {
            'i' => plain((value as i32).to_string()),
            'u' => plain(value.to_string()),
            'd' if value as i32 == AT_FDCWD => plain("AT_FDCWD".into()),
            'd' => plain((value as i32).to_string()),
            'm' => plain(format!("{:#o}", value as u32)),
            'o' => plain(open_flags(value as u32)),
            'c' => plain(clone_flags(value)),
            'f' => plain(family(value as u32)),
            't' => plain(socket_type(value as u32)),
            'p' => match self.path(call, value) {
                Some(path) => self.redactor.text(&path),
                None => plain(format!("{value:#x}")),
            },
            'a' => {
                let length = call.args.get(at + 1).copied().unwrap_or(0);
                match self.address(call, value, length) {
                    Some(address) => self.redactor.text(&address),
                    None => plain(format!("{value:#x}")),
                }
            }
            'v' => plain(format!("[{} arguments]", self.argv(call, value).1)),
            _ => plain(format!("{value:#x}")),
        }
    }

    pub(super) fn path(&self, call: &Notification, address: u64) -> Option<Vec<u8>> {
        self.listener.read_string(call, address, MAX_PATH)
    }

    /// The first arguments of a program, and how many there are, as far as they can be counted.
    pub(super) fn argv(&self, call: &Notification, address: u64) -> (Vec<Text>, u64) {
        let (mut argv, mut count) = (Vec::new(), 0);
        let mut at = address;
        // In pages of pointers; a list without an end stops where its mapping does.
        while let Some(block) = self.listener.read_some(call, at, 8 * MAX_ARGV) {
            let pointers = block.chunks_exact(8);
            let whole = pointers.len() == MAX_ARGV;
            for pointer in pointers {
                let pointer = u64::from_ne_bytes(pointer.try_into().unwrap_or_default());
                if pointer == 0 {
                    return (argv, count);
                }
                count += 1;
                if argv.len() < MAX_ARGV {
                    let bytes = self.listener.read_string(call, pointer, MAX_ARGUMENT);
                    argv.push(self.redactor.text(&bytes.unwrap_or_else(|| b"?".to_vec())));
                }
            }
            if !whole || count > 100_000 {
                break;
            }
            at += 8 * MAX_ARGV as u64;
        }
        (argv, count)
    }

    /// Addresses and lengths of the names in a `sendmsg` or `sendmmsg`, where there are any.
    pub(super) fn destinations(&self, call: &Notification, name: &str) -> Vec<(u64, u64)> {
        /// `struct msghdr` begins with them; `struct mmsghdr` is one and a count.
        const NAME: usize = 12;
        const STEP: u64 = 64;
        /// The kernel takes no more at once.
        const MOST: u64 = 1024;
        let count = if name == "sendmmsg" {
            u64::from(call.args[2] as u32).min(MOST)
        } else {
            1
        };
        (0..count)
            .map_while(|n| {
                let at = call.args[1].checked_add(n * STEP)?;
                let bytes = self.listener.read_bytes(call, at, NAME)?;
                let address = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
                let length = u32::from_ne_bytes(bytes.get(8..)?.try_into().ok()?);
                Some((address, length.into()))
            })
            .filter(|(address, length)| *address != 0 && *length != 0)
            .collect()
    }

    /// `127.0.0.1:80`, `[::1]:80`, `unix:/path`, `unix:@abstract`.
    pub(super) fn address(&self, call: &Notification, at: u64, length: u64) -> Option<Vec<u8>> {
        let length = usize::try_from(length).ok()?.min(128);
        let bytes = self.listener.read_bytes(call, at, length)?;
        let family = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]);
        if family != 1 {
            return match internet(&bytes) {
                Some(address) => Some(address.to_string().into_bytes()),
                None => Some(format!("family {family}").into_bytes()),
            };
        }
        let path = &bytes[2..];
        let mut text = b"unix:".to_vec();
        match path {
            [] => {}
            [0, name @ ..] => {
                text.push(b'@');
                text.extend_from_slice(name);
            }
            path => {
                let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
                text.extend_from_slice(&path[..end]);
            }
        }
        Some(text)
    }
}

/// The internet address in a sockaddr.
pub(super) fn internet(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]);
    let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
    match family {
        2 => {
            let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv4Addr::from(octets).into(), port))
        }
        10 => {
            let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv6Addr::from(octets).into(), port))
        }
        _ => None,
    }
}

pub(super) fn family(family: u32) -> String {
    match family {
        1 => "AF_UNIX".to_owned(),
        2 => "AF_INET".to_owned(),
        10 => "AF_INET6".to_owned(),
        16 => "AF_NETLINK".to_owned(),
        17 => "AF_PACKET".to_owned(),
        38 => "AF_ALG".to_owned(),
        40 => "AF_VSOCK".to_owned(),
        other => format!("family {other}"),
    }
}

pub(super) fn socket_type(kind: u32) -> String {
    match kind & 0xf {
        1 => "SOCK_STREAM".to_owned(),
        2 => "SOCK_DGRAM".to_owned(),
        3 => "SOCK_RAW".to_owned(),
        5 => "SOCK_SEQPACKET".to_owned(),
        other => format!("type {other}"),
    }
}

/// `O_WRONLY|O_CREAT`; unknown bits as a number.
pub(super) fn open_flags(flags: u32) -> String {
    const NAMES: &[(u32, &str)] = &[
        (0o100, "O_CREAT"),
        (0o200, "O_EXCL"),
        (0o400, "O_NOCTTY"),
        (0o1000, "O_TRUNC"),
        (0o2000, "O_APPEND"),
        (0o4000, "O_NONBLOCK"),
        (0o200_000, "O_DIRECTORY"),
        (0o400_000, "O_NOFOLLOW"),
        (0o2_000_000, "O_CLOEXEC"),
        (0o10_000_000, "O_PATH"),
    ];
    let access = match flags & 3 {
        0 => "O_RDONLY",
        1 => "O_WRONLY",
        2 => "O_RDWR",
        _ => "O_ACCMODE",
    };
    named(access, flags & !3, NAMES)
}

fn clone_flags(flags: u64) -> String {
    const NAMES: &[(u32, &str)] = &[
        (0x100, "CLONE_VM"),
        (0x200, "CLONE_FS"),
        (0x400, "CLONE_FILES"),
        (0x800, "CLONE_SIGHAND"),
        (0x4000, "CLONE_VFORK"),
        (0x1_0000, "CLONE_THREAD"),
        (0x2_0000, "CLONE_NEWNS"),
        (0x200_0000, "CLONE_NEWCGROUP"),
        (0x400_0000, "CLONE_NEWUTS"),
        (0x800_0000, "CLONE_NEWIPC"),
        (0x1000_0000, "CLONE_NEWUSER"),
        (0x2000_0000, "CLONE_NEWPID"),
        (0x4000_0000, "CLONE_NEWNET"),
    ];
    let signal = flags & 0xff;
    let first = match signal {
        17 => "SIGCHLD".to_owned(),
        other => other.to_string(),
    };
    named(&first, (flags & !0xff) as u32, NAMES)
}

fn named(first: &str, mut bits: u32, names: &[(u32, &str)]) -> String {
    let mut text = first.to_owned();
    for (bit, name) in names {
        if bits & bit != 0 {
            text.push('|');
            text.push_str(name);
            bits &= !bit;
        }
    }
    if bits != 0 {
        text.push_str(&format!("|{bits:#x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named_and_unknown_bits_kept() {
        assert_eq!(open_flags(0o101), "O_WRONLY|O_CREAT");
        assert_eq!(open_flags(0o2_000_000), "O_RDONLY|O_CLOEXEC");
        assert_eq!(open_flags(0x4000_0000), "O_RDONLY|0x40000000");
        assert_eq!(
            clone_flags(0x1200_0011),
            "SIGCHLD|CLONE_NEWCGROUP|CLONE_NEWUSER"
        );
    }

    #[test]
    fn internet_addresses_are_read_from_memory() {
        let mut four = vec![2, 0, 1, 187, 192, 0, 2, 1];
        four.extend([0; 8]);
        assert_eq!(
            internet(&four).map(|a| a.to_string()),
            Some("192.0.2.1:443".into())
        );
        assert_eq!(internet(&[1, 0, 0, 0]), None);
        assert_eq!(internet(&[2]), None);
    }
}
