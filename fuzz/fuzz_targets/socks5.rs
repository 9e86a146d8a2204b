#![no_main]
//! A handshake has the same end whatever the cuts, and never takes bytes behind it.

use skillcell_egress::socks5::{Handshake, Step, Target};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reply = Vec::new();
    let (used, step) = Handshake::new().feed(bytes, &mut reply);
    assert!(used <= bytes.len() && used <= 257 + 262);

    let (mut handshake, mut parts, mut count, mut last) =
        (Handshake::new(), Vec::new(), 0, Step::NeedMore);
    for byte in bytes.chunks(1) {
        let (more, now) = handshake.feed(byte, &mut parts);
        count += more;
        last = now;
    }
    assert_eq!((used, &step, reply), (count, &last, parts));
    if let Step::Connect { target: Target::Name(name), .. } = step {
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()));
    }
});
