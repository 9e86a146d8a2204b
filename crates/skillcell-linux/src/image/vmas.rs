//! The memory map of another process, from `/proc/PID/smaps`.

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Vma {
    pub(super) start: u64,
    pub(super) end: u64,
    /// `PROT_*`.
    pub(super) protection: i32,
    pub(super) shared: bool,
    pub(super) offset: u64,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    pub(super) name: Vec<u8>,
    /// The kernel gives forks zeros here: what is in it must not exist twice.
    pub(super) wiped: bool,
}

impl Vma {
    /// The kernel's own pages: the clock and its code.
    pub(super) fn is_vdso(&self) -> bool {
        self.name.starts_with(b"[vdso") || self.name.starts_with(b"[vvar")
    }

    pub(super) fn is_vsyscall(&self) -> bool {
        self.name == b"[vsyscall]"
    }

    pub(super) fn is_stack(&self) -> bool {
        self.name == b"[stack]"
    }

    pub(super) fn is_file(&self) -> bool {
        self.inode != 0
    }
}

/// Reads `maps` or `smaps`; `None` where a line isn't as the kernel writes it.
pub(super) fn parse(text: &[u8]) -> Option<Vec<Vma>> {
    let mut found: Vec<Vma> = Vec::new();
    for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let first = line.split(|b| *b == b' ').next()?;
        if first.ends_with(b":") {
            // `VmFlags: rd wr mr mw me wf`: wipe on fork, and droppable.
            if first == b"VmFlags:" {
                let mut flags = line.split(|b| *b == b' ').skip(1);
                found.last_mut()?.wiped = flags.any(|f| f == b"wf" || f == b"dp");
            }
            continue;
        }
        found.push(head(line)?);
    }
    Some(found)
}

fn head(line: &[u8]) -> Option<Vma> {
    let mut rest = line;
    let mut field = || {
        let from = rest.iter().position(|b| *b != b' ')?;
        let to = rest[from..].iter().position(|b| *b == b' ');
        let to = to.map_or(rest.len(), |n| from + n);
        let (field, after) = (&rest[from..to], &rest[to..]);
        rest = after;
        Some(field)
    };
    let (range, flags, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let name = rest.iter().position(|b| *b != b' ').map(|n| &rest[n..]);
    let (start, end) = pair(range, b'-')?;
    let (major, minor) = pair(device, b':')?;
    let mut protection = 0;
    for (flag, bit) in [
        (b'r', libc::PROT_READ),
        (b'w', libc::PROT_WRITE),
        (b'x', libc::PROT_EXEC),
    ] {
        if flags.contains(&flag) {
            protection |= bit;
        }
    }
    Some(Vma {
        start,
        end,
        protection,
        shared: flags.get(3)? == &b's',
        offset: hex(offset)?,
        device: (major as u32, minor as u32),
        inode: std::str::from_utf8(inode).ok()?.parse().ok()?,
        name: name.unwrap_or_default().to_vec(),
        wiped: false,
    })
}

fn pair(text: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|b| *b == between)?;
    Some((hex(&text[..at])?, hex(&text[at + 1..])?))
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read_whole() {
        let text = b"00400000-00420000 r-xp 00001000 fe:01 1234                               /usr/bin/a name\n\
            Size:                128 kB\nVmFlags: rd ex mr mw me\n\
            7ffc1000-7ffc3000 rw-s 00000000 00:00 0 \nVmFlags: rd wr sh wf\n\
            7ffd0000-7ffd2000 r-xp 00000000 00:00 0                                  [vdso]\n";
        let vmas = parse(text).unwrap();
        assert_eq!(vmas.len(), 3);
        assert_eq!(vmas[0].protection, libc::PROT_READ | libc::PROT_EXEC);
        assert_eq!((vmas[0].device, vmas[0].inode), ((0xfe, 1), 1234));
        assert_eq!(vmas[0].name, b"/usr/bin/a name");
        assert!(!vmas[0].wiped && !vmas[0].shared && vmas[0].is_file());
        assert!(vmas[1].wiped && vmas[1].shared && !vmas[1].is_file());
        assert!(vmas[2].is_vdso() && vmas[2].name == b"[vdso]");
    }

    #[test]
    fn a_broken_line_is_no_map() {
        assert_eq!(parse(b"zzzz rw-p\n"), None);
        assert_eq!(parse(b"VmFlags: rd\n"), None);
    }
}
