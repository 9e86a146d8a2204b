use proptest::prelude::*;

use super::*;

fn vector(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector(data)].concat()
}

fn sni(name: &[u8]) -> Vec<u8> {
    extension(0, &vector(&[&[0][..], &vector(name)].concat()))
}

/// The message, with its header and whatever extensions.
fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend_from_slice(&[7; 32]);
    body.push(0);
    body.extend_from_slice(&[0, 2, 0x13, 1, 1, 0]);
    body.extend(vector(&extensions.concat()));
    with_header(&body)
}

fn with_header(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[CLIENT_HELLO], &length[1..], body].concat()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &vector(part)].concat();
    message.chunks(size).flat_map(record).collect()
}

fn name_of(message: &[u8]) -> Result<Option<String>, &'static str> {
    match read(&records(message, 16384)) {
        Progress::Done(hello) => Ok(hello.server_name),
        Progress::Malformed(reason) => Err(reason),
        Progress::NeedMore => panic!("the message is complete"),
    }
}

#[test]
fn real_clients_are_understood() {
    macro_rules! hello {
        ($file:literal) => {
            match read(include_bytes!(concat!("../../fixtures/hello/", $file))) {
                Progress::Done(hello) => hello,
                other => panic!("{}: {other:?}", $file),
            }
        };
    }
    let h2 = [b"h2".to_vec(), b"http/1.1".to_vec()];
    for (hello, alpn) in [
        (hello!("python.bin"), &[][..]),
        (hello!("python-alpn.bin"), &h2),
        (hello!("python-tls12.bin"), &[]),
        (hello!("curl.bin"), &h2),
        (hello!("openssl.bin"), &h2[..1]),
        (hello!("node.bin"), &[]),
        (hello!("java.bin"), &[]),
    ] {
        assert_eq!(hello.server_name.as_deref(), Some("api.example.com"));
        assert_eq!(hello.alpn, alpn);
        assert!(!hello.encrypted);
    }
    assert_eq!(hello!("python-no-name.bin").server_name, None);
}

#[test]
fn a_hello_is_put_together_from_any_records() {
    let message = message(&[sni(b"example.com")]);
    for size in 1..=message.len() {
        let stream = records(&message, size);
        let Progress::Done(hello) = read(&stream) else {
            panic!("records of {size} bytes");
        };
        assert_eq!(hello.server_name.as_deref(), Some("example.com"));
        for end in 0..stream.len() {
            assert_eq!(read(&stream[..end]), Progress::NeedMore, "{size} {end}");
        }
    }
}

#[test]
fn a_second_name_is_malformed_wherever_it_stands() {
    let twice = message(&[sni(b"good.example"), sni(b"evil.example")]);
    assert!(name_of(&twice).is_err());
    let entry = |kind: u8, name: &[u8]| [&[kind][..], &vector(name)].concat();
    let list = |entries: &[Vec<u8>]| message(&[extension(0, &vector(&entries.concat()))]);
    assert!(name_of(&list(&[entry(0, b"a.example")])).is_ok());
    for bad in [
        list(&[entry(0, b"a.example"), entry(0, b"b.example")]),
        list(&[entry(0, b"a.example"), entry(1, b"b.example")]),
        list(&[entry(1, b"a.example")]),
        list(&[entry(0, b"")]),
        list(&[]),
        list(&[entry(0, b"a\0b")]),
        list(&[entry(0, b"a b")]),
        list(&[entry(0, b"\xc3\xa9")]),
        message(&[extension(0, b"")]),
        message(&[extension(0, &[&vector(&entry(0, b"a"))[..], b"x"].concat())]),
        message(&[extension(5, b""), extension(5, b"")]),
    ] {
        assert!(name_of(&bad).is_err(), "{}", bad.escape_ascii());
    }
}

#[test]
fn an_encrypted_hello_is_reported_also_when_it_may_be_a_dummy() {
    for kind in [0xfe0d, 0xffce, 0xfe09] {
        let stream = records(&message(&[sni(b"a.example"), extension(kind, b"\0x")]), 999);
        let Progress::Done(hello) = read(&stream) else {
            panic!("{kind:#x}");
        };
        assert!(hello.encrypted);
        assert_eq!(hello.server_name.as_deref(), Some("a.example"));
    }
}

#[test]
fn every_length_must_fit_exactly() {
    let good = message(&[sni(b"example.com"), extension(16, &vector(b"\x02h2"))]);
    assert!(name_of(&good).is_ok());
    // Of the session id, suites, compression, extensions, the first extension, its list, the name.
    for at in [38, 40, 43, 46, 50, 52, 55, good.len() - 4, good.len() - 3] {
        for change in [1, 2, 0xff] {
            let mut bad = good.clone();
            bad[at] = bad[at].wrapping_add(change);
            assert!(name_of(&bad).is_err(), "{at} {change}");
        }
    }
    let mut longer = good[4..].to_vec();
    longer.push(0);
    assert!(name_of(&with_header(&longer)).is_err());
    assert!(name_of(&with_header(&good[4..45])).is_ok_and(|name| name.is_none()));
}

#[test]
fn only_a_hello_alone_in_handshake_records_is_accepted() {
    let stream = records(&message(&[sni(b"example.com")]), 40);
    let with = |at: usize, value: u8| {
        let mut bad = stream.clone();
        bad[at] = value;
        read(&bad)
    };
    let malformed = |progress| matches!(progress, Progress::Malformed(_));
    assert!(malformed(with(0, 0x17)), "the first record's type");
    assert!(malformed(with(1, 2)), "its version");
    assert!(malformed(with(5, 2)), "the message's type");
    assert!(malformed(with(6, 1)), "a message of more than 64 KiB");
    assert!(malformed(with(45, 0x14)), "the second record's type");
    assert!(malformed(with(3, 0xff)), "a record too long");

    let message = message(&[sni(b"example.com")]);
    let followed = [&message[..], b"\x01"].concat();
    assert!(malformed(read(&records(&followed, 16384))));
    let empty = [&records(&message[..20], 20)[..], b"\x16\x03\x01\0\0"].concat();
    assert!(malformed(read(&empty)));
}

#[test]
fn many_small_records_are_too_long_together() {
    let big = message(&[extension(21, &vec![0; 20000])]);
    assert!(matches!(read(&records(&big, 16384)), Progress::Done(_)));
    assert!(matches!(read(&records(&big, 1)), Progress::Malformed(_)));
}

proptest! {
    #[test]
    fn more_bytes_change_only_a_wish_for_more(
        noise in proptest::collection::vec(any::<u8>(), 0..40),
        at in 0..120_usize,
        value in any::<u8>(),
        size in 1..60_usize,
    ) {
        let mut stream = records(&message(&[sni(b"example.com"), extension(0xfe0d, &noise)]), size);
        if let Some(byte) = stream.get_mut(at) {
            *byte = value;
        }
        stream.extend(noise);
        let mut decided = None;
        for end in 0..=stream.len() {
            let now = read(&stream[..end]);
            if let Some(before) = &decided {
                prop_assert_eq!(before, &now);
            } else if now != Progress::NeedMore {
                decided = Some(now);
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _progress = read(&bytes);
        let _progress = read(&records(&with_header(&bytes), 100));
    }
}

#[test]
fn a_hello_in_crumbs_is_what_it_is_whole_and_each_byte_is_taken_once() {
    let message = message(&[extension(0x7777, &[7; 5000]), sni(b"example.com")]);
    for size in [1, 7, 500, 16384] {
        let stream = records(&message, size);
        let mut reader = HelloReader::default();
        for end in 0..stream.len() {
            assert_eq!(reader.read(&stream[..end]), Progress::NeedMore);
            let taken = stream[..end].len() - reader.at;
            assert!(taken < RECORD_HEADER, "only a header waits to be complete");
        }
        assert_eq!(reader.read(&stream), read(&stream));
    }
}
