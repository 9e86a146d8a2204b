#![no_main]
//! A packet is a query or an error, and every answer repeats the question and fits a datagram.

use std::net::Ipv6Addr;

use skillcell_egress::dns::{Answer, Query, complaint};

libfuzzer_sys::fuzz_target!(|packet: &[u8]| {
    if let Some(bytes) = complaint(packet) {
        assert!(bytes.len() == 12 && bytes[..2] == packet[..2]);
        // An answer to an answer would be the beginning of a long talk.
        assert_eq!(complaint(&bytes), None);
    }
    let Ok(query) = Query::parse(packet) else { return };
    // Names end on a terminal and in the log.
    assert!(query.name().bytes().all(|byte| (0x20..0x7f).contains(&byte)));
    for answer in [
        Answer::Address(Ipv6Addr::LOCALHOST.into()),
        Answer::NoData,
        Answer::NxDomain,
        Answer::Refused,
    ] {
        let bytes = query.answer(answer);
        assert!(bytes.len() <= 512 && bytes[..2] == packet[..2]);
        assert!(Query::parse(&bytes).is_err());
    }
});
