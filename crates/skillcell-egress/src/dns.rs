//! Reads one DNS question and makes the answer "no such name". The packet is hostile: every byte
//! is bounds-checked, and compression, which a question has no use for, is not followed.

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Lower case, without a trailing dot; bytes outside of printable ASCII are escaped.
    pub name: String,
    pub kind: u16,
}

const HEADER: usize = 12;
const NXDOMAIN: u8 = 3;
const MAX_NAME: usize = 255;

/// The question and the refusing answer; `None` for what isn't one well-formed query.
pub fn refuse(packet: &[u8]) -> Option<(Question, Vec<u8>)> {
    let header = packet.get(..HEADER)?;
    let is_response = header[2] & 0x80 != 0;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    if is_response || questions != 1 {
        return None;
    }
    let mut name = String::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        if length > 63 || at + length - HEADER > MAX_NAME {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        for byte in packet.get(at..at + length)? {
            name.extend(byte.to_ascii_lowercase().escape_ascii().map(char::from));
        }
        at += length;
    }
    let kind = u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]);
    let end = at + 4;
    packet.get(at + 2..end)?;

    let mut answer = packet[..end].to_vec();
    answer[2] = 0x80 | (header[2] & 0x79); // a response; opcode and "recursion desired" as asked
    answer[3] = 0x80 | NXDOMAIN; // recursion available
    answer[6..12].fill(0); // no answers, authorities or additions
    Some((Question { name, kind }, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(labels: &[&[u8]]) -> Vec<u8> {
        let mut packet = vec![0xab, 0xcd, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1];
        for label in labels {
            packet.push(label.len() as u8);
            packet.extend_from_slice(label);
        }
        packet.extend_from_slice(&[0, 0, 1, 0, 1]);
        packet
    }

    #[test]
    fn a_name_is_answered_with_no_such_name() {
        let (question, answer) = refuse(&query(&[b"API", b"example", b"com"])).expect("a query");
        assert_eq!(
            question,
            Question {
                name: "api.example.com".into(),
                kind: 1
            }
        );
        assert_eq!(&answer[..2], &[0xab, 0xcd]);
        assert_eq!(answer[2] & 0x80, 0x80);
        assert_eq!(answer[3] & 0x0f, NXDOMAIN);
        assert_eq!(&answer[6..12], &[0; 6]);
    }

    #[test]
    fn names_with_odd_bytes_are_escaped() {
        let (question, _) = refuse(&query(&[b"a\nb\x1b", b"\xff"])).expect("a query");
        assert_eq!(question.name, "a\\nb\\x1b.\\xff");
    }

    #[test]
    fn broken_packets_are_dropped() {
        let good = query(&[b"example", b"com"]);
        for end in 0..good.len() {
            assert_eq!(refuse(&good[..end]), None, "{end}");
        }
        let mut pointer = good.clone();
        pointer[12] = 0xc0;
        assert_eq!(refuse(&pointer), None);
        assert_eq!(refuse(&query(&[&[b'a'; 63][..]; 5])), None);
    }
}
