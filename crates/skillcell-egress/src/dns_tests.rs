use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn query_of(labels: &[&[u8]], kind: u16, edns: bool) -> Vec<u8> {
    let mut packet = vec![0xab, 0xcd, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, u8::from(edns)];
    for label in labels {
        packet.push(label.len() as u8);
        packet.extend_from_slice(label);
    }
    packet.push(0);
    packet.extend_from_slice(&kind.to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    if edns {
        packet.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 4, 0, 10, 0, 0]);
    }
    packet
}

fn query(labels: &[&[u8]]) -> Vec<u8> {
    query_of(labels, TYPE_A, true)
}

#[test]
fn a_name_is_answered_with_no_such_name() {
    let (question, answer) = refuse(&query(&[b"API", b"example", b"com"])).expect("a query");
    assert_eq!(question.name, "api.example.com");
    assert_eq!(question.kind, TYPE_A);
    assert_eq!(&answer[..2], &[0xab, 0xcd]);
    assert_eq!(answer[2..4], [0x81, 0x83]);
    assert_eq!(answer[4..12], [0, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!(&answer[12..16], b"\x03API");
}

#[test]
fn names_with_odd_bytes_are_escaped() {
    let (question, _) = refuse(&query(&[b"a\nb\x1b", b"\xff"])).expect("a query");
    assert_eq!(question.name, "a\\nb\\x1b.\\xff");
}

#[test]
fn a_dot_in_a_label_does_not_pass_for_one_between_labels() {
    let one = Query::parse(&query(&[b"example.com"])).expect("a query");
    let two = Query::parse(&query(&[b"example", b"com"])).expect("a query");
    let escaped = Query::parse(&query(&[b"example\\x2ecom"])).expect("a query");
    assert_eq!(one.name(), "example\\x2ecom");
    assert_eq!(two.name(), "example.com");
    assert_eq!(escaped.name(), "example\\\\x2ecom");
}

#[test]
fn an_address_is_answered_for_one_second_and_to_its_own_type_only() {
    let v4 = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 7));
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let ask = |kind| Query::parse(&query_of(&[b"a"], kind, false)).expect("a query");

    let answer = ask(TYPE_A).answer(Answer::Address(v4));
    assert_eq!(answer[2..4], [0x81, 0x80]);
    assert_eq!(answer[4..12], [0, 1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(
        answer[19..],
        [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 198, 18, 0, 7]
    );
    let answer = ask(TYPE_AAAA).answer(Answer::Address(v6));
    assert_eq!(answer[19..31], [0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 1, 0, 16]);
    assert_eq!(answer.len(), 47);

    for (kind, address) in [(TYPE_A, v6), (TYPE_AAAA, v4), (16, v4)] {
        let query = ask(kind);
        assert_eq!(
            query.answer(Answer::Address(address)),
            query.answer(Answer::NoData)
        );
    }
    assert_eq!(ask(16).answer(Answer::NoData)[3], 0x80);
    assert_eq!(ask(16).answer(Answer::Refused)[3], 0x85);
}

#[test]
fn broken_packets_are_dropped() {
    let good = query(&[b"example", b"com"]);
    for end in 0..good.len() {
        assert_eq!(refuse(&good[..end]), None, "{end}");
    }
    let mut pointer = good.clone();
    pointer[12] = 0xc0;
    assert_eq!(Query::parse(&pointer), Err(DnsError::Label));
    let mut longer = good;
    longer.push(0);
    assert_eq!(Query::parse(&longer), Err(DnsError::TrailingBytes));
}

#[test]
fn a_name_may_be_255_bytes_long_and_no_more() {
    let full = [&[b'a'; 63][..]; 3];
    let fits = [&full[..], &[&[b'a'; 61]]].concat();
    let too_long = [&full[..], &[&[b'a'; 62]]].concat();
    assert!(Query::parse(&query(&fits)).is_ok());
    assert_eq!(Query::parse(&query(&too_long)), Err(DnsError::NameTooLong));
}

#[test]
fn only_one_plain_question_is_a_query() {
    let good = query_of(&[b"a"], TYPE_A, false);
    let with = |at: usize, value: u8| {
        let mut packet = good.clone();
        packet[at] = value;
        Query::parse(&packet)
    };
    assert_eq!(with(2, 0x81), Err(DnsError::NotAQuery), "a response");
    assert_eq!(with(2, 0x09), Err(DnsError::NotAQuery), "an opcode");
    assert_eq!(with(2, 0x03), Err(DnsError::NotAQuery), "truncated");
    assert_eq!(with(5, 0), Err(DnsError::NotOneQuestion));
    assert_eq!(with(5, 2), Err(DnsError::NotOneQuestion));
    assert_eq!(with(7, 1), Err(DnsError::ExtraRecords));
    assert_eq!(with(9, 1), Err(DnsError::ExtraRecords));
    assert_eq!(with(11, 2), Err(DnsError::ExtraRecords));
    assert_eq!(with(18, 3), Err(DnsError::Class));
    let mut other_record = query(&[b"a"]);
    other_record[21] = 16;
    assert_eq!(Query::parse(&other_record), Err(DnsError::ExtraRecords));
}

proptest! {
    #[test]
    fn no_packet_panics(packet in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _query = Query::parse(&packet);
    }

    #[test]
    fn an_answer_repeats_the_question_and_fits_a_datagram(
        labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..64), 0..6),
        kind in any::<u16>(),
        edns in any::<bool>(),
    ) {
        let labels: Vec<&[u8]> = labels.iter().map(Vec::as_slice).collect();
        let packet = query_of(&labels, kind, edns);
        if let Ok(query) = Query::parse(&packet) {
            prop_assert_eq!(query.kind(), kind);
            prop_assert!(query.name().bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            let answer = query.answer(Answer::Address(Ipv6Addr::LOCALHOST.into()));
            let end = 12 + query.question.len();
            prop_assert_eq!(&answer[12..end], &packet[12..end]);
            prop_assert!(answer.len() <= 512);
        }
    }
}

#[test]
fn what_is_no_single_question_gets_an_error_at_once() {
    let packet = |flags: u16, questions: u16| {
        let mut packet = Vec::new();
        for field in [0x1234, flags, questions, 0, 0, 0] {
            packet.extend_from_slice(&field.to_be_bytes());
        }
        packet
    };
    for (flags, answered) in [(0x0100_u16, 0x8181_u16), (0x2800, 0xa884), (0x0200, 0x8081)] {
        let answer = complaint(&packet(flags, 2)).expect("an answer");
        assert_eq!(answer[..2], [0x12, 0x34]);
        assert_eq!(answer[2..4], answered.to_be_bytes());
        assert_eq!(answer[4..], [0; 8]);
    }
    // An answer to an answer could be the beginning of a long talk.
    assert_eq!(complaint(&packet(0x8000, 1)), None);
    assert_eq!(complaint(b"STUN?"), None);
}
