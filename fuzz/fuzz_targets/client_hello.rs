#![no_main]
//! However much of it has come: once something is known of a connection's first bytes, more of
//! them don't change it.

use skillcell_egress::sniff::{Sniff, sniff};
use skillcell_egress::{Progress, tls::client_hello};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let whole = client_hello::read(bytes);
    let kind = sniff(bytes);
    for end in 0..bytes.len().min(512) {
        let part = client_hello::read(&bytes[..end]);
        assert!(part == Progress::NeedMore || part == whole);
        let part = sniff(&bytes[..end]);
        assert!(part == Sniff::NeedMore || part == kind);
    }
    if let Progress::Done(hello) = whole {
        assert_eq!(kind, Sniff::Tls);
        assert!(hello.server_name.is_none_or(|name| name.bytes().all(|b| b.is_ascii_graphic())));
    }
});
