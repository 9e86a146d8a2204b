//! Reads one DNS query and makes its answer. Compression, which a question has no use for, is not
//! followed. A query is one question, and at most the OPT record that resolvers add to it: other
//! records could carry data in a packet whose name looks harmless.

use std::net::IpAddr;

use crate::reader::Reader;

pub const TYPE_A: u16 = 1;
pub const TYPE_AAAA: u16 = 28;

const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;
const MAX_LABEL: usize = 63;
/// On the wire: with the length of each label and the closing zero.
const MAX_NAME: usize = 255;
/// What fits everywhere without fragments; we never send more than a few hundred bytes.
const UDP_PAYLOAD: u16 = 1232;
/// Addresses are made up for a call: nobody shall keep them.
const TTL: u32 = 1;
/// A pointer to the name in the question, which always begins right behind the header.
const NAME_OF_QUESTION: [u8; 2] = [0xc0, 12];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    #[error("the DNS message is cut off")]
    Truncated,
    #[error("the DNS message is not a query")]
    NotAQuery,
    #[error("the DNS message does not have exactly one question")]
    NotOneQuestion,
    #[error("the DNS question has a label longer than 63 bytes, or a compressed one")]
    Label,
    #[error("the DNS question has a name longer than 255 bytes")]
    NameTooLong,
    #[error("the DNS question is not about the Internet class")]
    Class,
    #[error("the DNS query carries records beside its question")]
    ExtraRecords,
    #[error("the DNS query has bytes behind its end")]
    TrailingBytes,
}

/// One well-formed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    id: u16,
    recursion_desired: bool,
    edns: bool,
    /// The question as it came: an answer repeats it with the client's upper and lower case.
    question: Vec<u8>,
    name: String,
    kind: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// An A or AAAA record; to a question about anything else it is `NoData`.
    Address(IpAddr),
    NoData,
    NxDomain,
    /// Nobody could say: asking again may help.
    ServFail,
    Refused,
}

impl Query {
    pub fn parse(packet: &[u8]) -> Result<Self, DnsError> {
        let mut reader = Reader::new(packet);
        let mut field = || reader.u16().ok_or(DnsError::Truncated);
        let (id, flags) = (field()?, field()?);
        let (questions, answers, authorities, additional) =
            (field()?, field()?, field()?, field()?);
        // A response, an operation other than a query, or a truncated message.
        if flags & 0xfa00 != 0 {
            return Err(DnsError::NotAQuery);
        }
        if questions != 1 {
            return Err(DnsError::NotOneQuestion);
        }
        if answers != 0 || authorities != 0 || additional > 1 {
            return Err(DnsError::ExtraRecords);
        }

        let mut question = Vec::new();
        let name = read_name(&mut reader, &mut question)?;
        let kind = reader.u16().ok_or(DnsError::Truncated)?;
        let class = reader.u16().ok_or(DnsError::Truncated)?;
        if class != CLASS_IN {
            return Err(DnsError::Class);
        }
        question.extend_from_slice(&kind.to_be_bytes());
        question.extend_from_slice(&class.to_be_bytes());

        let edns = additional == 1;
        if edns {
            skip_opt(&mut reader)?;
        }
        if !reader.is_empty() {
            return Err(DnsError::TrailingBytes);
        }
        Ok(Self {
            id,
            recursion_desired: flags & 0x0100 != 0,
            edns,
            question,
            name,
            kind,
        })
    }

    /// Lower case, without a trailing dot. Bytes outside of printable ASCII are escaped, and so is
    /// a dot within a label: it must not pass for one between labels.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> u16 {
        self.kind
    }

    pub fn id(&self) -> u16 {
        self.id
    }

    pub fn answer(&self, answer: Answer) -> Vec<u8> {
        let data = match (answer, self.kind) {
            (Answer::Address(IpAddr::V4(address)), TYPE_A) => Some(address.octets().to_vec()),
            (Answer::Address(IpAddr::V6(address)), TYPE_AAAA) => Some(address.octets().to_vec()),
            _ => None,
        };
        let code: u16 = match answer {
            Answer::Address(_) | Answer::NoData => 0,
            Answer::ServFail => 2,
            Answer::NxDomain => 3,
            Answer::Refused => 5,
        };
        let flags = 0x8080 | (u16::from(self.recursion_desired) << 8) | code;

        let mut packet = Vec::with_capacity(64 + self.question.len());
        for field in [
            self.id,
            flags,
            1,
            u16::from(data.is_some()),
            0,
            u16::from(self.edns),
        ] {
            packet.extend_from_slice(&field.to_be_bytes());
        }
        packet.extend_from_slice(&self.question);
        if let Some(data) = data {
            packet.extend_from_slice(&NAME_OF_QUESTION);
            packet.extend_from_slice(&self.kind.to_be_bytes());
            packet.extend_from_slice(&CLASS_IN.to_be_bytes());
            packet.extend_from_slice(&TTL.to_be_bytes());
            packet.extend_from_slice(&[0, if data.len() == 4 { 4 } else { 16 }]);
            packet.extend_from_slice(&data);
        }
        if self.edns {
            packet.push(0);
            packet.extend_from_slice(&TYPE_OPT.to_be_bytes());
            packet.extend_from_slice(&UDP_PAYLOAD.to_be_bytes());
            packet.extend_from_slice(&[0; 6]);
        }
        packet
    }
}

/// The answer to what isn't one well-formed query: an error, so that nobody waits for more. `None` for
/// what is no question at all.
pub fn complaint(packet: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let mut reader = Reader::new(packet.get(..HEADER)?);
    let (id, flags) = (reader.u16()?, reader.u16()?);
    if flags & 0x8000 != 0 {
        return None;
    }
    let operation = flags & 0x7800;
    let code = if operation == 0 { 1 } else { 4 };
    let mut answer = Vec::with_capacity(HEADER);
    for field in [id, 0x8080 | operation | flags & 0x0100 | code, 0, 0, 0, 0] {
        answer.extend_from_slice(&field.to_be_bytes());
    }
    Some(answer)
}

fn read_name(reader: &mut Reader<'_>, wire: &mut Vec<u8>) -> Result<String, DnsError> {
    let mut name = String::new();
    loop {
        let length = reader.byte().ok_or(DnsError::Truncated)?;
        wire.push(length);
        if length == 0 {
            return Ok(name);
        }
        if usize::from(length) > MAX_LABEL {
            return Err(DnsError::Label);
        }
        // The closing zero has to fit, too.
        if wire.len() + usize::from(length) >= MAX_NAME {
            return Err(DnsError::NameTooLong);
        }
        let label = reader.take(length.into()).ok_or(DnsError::Truncated)?;
        wire.extend_from_slice(label);
        if !name.is_empty() {
            name.push('.');
        }
        for byte in label {
            match byte {
                b'.' => name.push_str("\\x2e"),
                _ => name.extend(byte.to_ascii_lowercase().escape_ascii().map(char::from)),
            }
        }
    }
}

fn skip_opt(reader: &mut Reader<'_>) -> Result<(), DnsError> {
    let owner = reader.byte().ok_or(DnsError::Truncated)?;
    let kind = reader.u16().ok_or(DnsError::Truncated)?;
    if owner != 0 || kind != TYPE_OPT {
        return Err(DnsError::ExtraRecords);
    }
    reader.take(6).ok_or(DnsError::Truncated)?;
    reader.vector().ok_or(DnsError::Truncated)?;
    Ok(())
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// As [`Query::name`].
    pub name: String,
    pub kind: u16,
}

/// The question and the answer "no such name"; `None` for what isn't one well-formed query.
pub fn refuse(packet: &[u8]) -> Option<(Question, Vec<u8>)> {
    let query = Query::parse(packet).ok()?;
    let answer = query.answer(Answer::NxDomain);
    let Query { name, kind, .. } = query;
    Some((Question { name, kind }, answer))
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
