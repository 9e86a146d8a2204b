//! One small file out of a wheel, which is a zip archive. Bounded everywhere: the wheel is the
//! interpreter's own, but nothing here needs to believe its numbers.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const MOST: usize = 64 << 10;
/// The end of an archive: its directory, and a comment.
const TAIL: u64 = 4 << 20;
const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";

/// The text of `name`; `None` where it isn't there or can't be read.
pub(crate) fn read(wheel: &Path, name: &str) -> Option<String> {
    let mut file = File::open(wheel).ok()?;
    let size = file.metadata().ok()?.len();
    let start = size.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut tail = Vec::new();
    (&mut file).take(TAIL).read_to_end(&mut tail).ok()?;
    let end = tail.windows(END.len()).rposition(|w| w == END)?;
    let directory = u64::from(u32_at(&tail, end + 16)?).checked_sub(start)?;
    let mut at = usize::try_from(directory).ok()?;
    loop {
        let entry = tail.get(at..at.checked_add(46)?)?;
        if !entry.starts_with(ENTRY) {
            return None;
        }
        let lengths = [28, 30, 32].map(|place| u16_at(entry, place).map(usize::from));
        let [Some(name_length), Some(extra), Some(comment)] = lengths else {
            return None;
        };
        let found = tail.get(at + 46..at + 46 + name_length)?;
        if found == name.as_bytes() {
            let (method, packed) = (u16_at(entry, 10)?, u32_at(entry, 20)?);
            return content(&mut file, u32_at(entry, 42)?, method, packed);
        }
        at += 46 + name_length + extra + comment;
    }
}

fn content(file: &mut File, at: u32, method: u16, packed: u32) -> Option<String> {
    const STORED: u16 = 0;
    const DEFLATED: u16 = 8;
    let packed = usize::try_from(packed).ok().filter(|size| *size <= MOST)?;
    file.seek(SeekFrom::Start(at.into())).ok()?;
    let mut header = [0; 30];
    file.read_exact(&mut header).ok()?;
    if !header.starts_with(LOCAL) {
        return None;
    }
    let skipped = i64::from(u16_at(&header, 26)?) + i64::from(u16_at(&header, 28)?);
    file.seek(SeekFrom::Current(skipped)).ok()?;
    let mut bytes = vec![0; packed];
    file.read_exact(&mut bytes).ok()?;
    let bytes = match method {
        STORED => bytes,
        DEFLATED => miniz_oxide::inflate::decompress_to_vec_with_limit(&bytes, MOST).ok()?,
        _ => return None,
    };
    String::from_utf8(bytes).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const MAKE: &str = "import sys, zipfile\n\
        z = zipfile.ZipFile(sys.argv[1], 'w', int(sys.argv[2]))\n\
        z.writestr('other.py', 'x' * 999)\n\
        z.writestr('a/b.py', 'text = 1\\n' * 50)\n\
        z.writestr('bomb.py', 'x' * 10_000_000)\n\
        z.close()\n";

    #[test]
    fn a_file_is_found_packed_or_stored_and_a_bomb_is_not_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        for method in ["0", "8"] {
            let wheel = folder.path().join(method);
            let made = Command::new("python3")
                .args(["-c", MAKE])
                .arg(&wheel)
                .arg(method)
                .status();
            assert!(made.unwrap().success());
            assert_eq!(read(&wheel, "a/b.py"), Some("text = 1\n".repeat(50)));
            assert_eq!(read(&wheel, "bomb.py"), None);
            assert_eq!(read(&wheel, "missing.py"), None);
            // Cut anywhere, it is no archive, and nothing panics.
            let whole = std::fs::read(&wheel).unwrap();
            for cut in (0..whole.len()).step_by(whole.len() / 50 + 1) {
                std::fs::write(folder.path().join("cut"), &whole[..cut]).unwrap();
                read(&folder.path().join("cut"), "a/b.py");
            }
        }
        assert_eq!(read(Path::new("/nonexistent"), "a"), None);
    }
}
