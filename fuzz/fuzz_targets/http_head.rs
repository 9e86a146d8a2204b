#![no_main]
//! What passes the guard is the beginning of what came, whatever the cuts; and each head that it
//! lets pass has one host and reads the same alone.

use skillcell_egress::http::{Guard, Head, HttpFault, parse_head};
use skillcell_egress::Progress;

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (cut, stream) = input;
    let mut whole = Vec::new();
    let mut heads: Vec<Head> = Vec::new();
    let result = Guard::new().feed_with(stream, &mut whole, |head| {
        assert!(head.host.is_some());
        heads.push(head.clone());
        Ok::<(), HttpFault>(())
    });
    assert!(stream.starts_with(&whole));
    if let Some(first) = heads.into_iter().next() {
        assert_eq!(parse_head(&stream[..first.length]), Progress::Done(first));
    }

    let (mut guard, mut parts, mut last) = (Guard::new(), Vec::new(), Ok(()));
    for part in stream.chunks(usize::from(cut).max(1)) {
        last = guard.feed(part, &mut parts);
    }
    assert_eq!((result, whole), (last, parts));
});
