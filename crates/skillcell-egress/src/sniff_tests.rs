use proptest::prelude::*;

use super::*;

#[track_caller]
fn is(expected: Sniff, inputs: &[&[u8]]) {
    for input in inputs {
        assert_eq!(sniff(input), expected, "{}", input.escape_ascii());
    }
}

#[track_caller]
fn is_refused(inputs: &[&[u8]]) {
    for input in inputs {
        let found = sniff(input);
        assert!(
            matches!(found, Sniff::Refused(_)),
            "{}: {found:?}",
            input.escape_ascii()
        );
    }
}

#[test]
fn protocols_are_known_by_their_first_bytes() {
    is(Sniff::Tls, &[b"\x16\x03", b"\x16\x03\x01\x02\x00\x01"]);
    is(
        Sniff::Http1,
        &[
            b"GET / HTTP/1.1\r\n",
            b"POST http://example.com/a?b HTTP/1.0\r\nHost: example.com\r\n",
            b"get / HTTP/1.1\r\n",
            b"X-ODD * HTTP/1.9\r\n",
            b"CONNECT example.com:443 HTTP/1.1\r\n",
        ],
    );
    is(
        Sniff::Http2,
        &[PREFACE, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"],
    );
}

#[test]
fn a_plausible_beginning_needs_more() {
    is(
        Sniff::NeedMore,
        &[
            b"",
            b"\x16",
            b"G",
            b"GET",
            b"GET ",
            b"GET /",
            b"GET / HTTP/1.1\r",
            b"PRI * HT",
            b"PRI * HTTP/2.0\r\n\r\nSM",
            b"\x80",
            b"\x80\x2e\x01\x03",
        ],
    );
}

#[test]
fn what_no_server_takes_for_http_is_opaque() {
    is(
        Sniff::Opaque,
        &[
            b"\0\0\0\x08\x04\xd2\x16\x2f", // PostgreSQL
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"EHLO example.com\r\n",
            b"NICK skill\nUSER skill\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"<stream:stream",
            b"{\"id\":1}",
            b"\x80\x00\x00",
            b"ABC \0",
            b"\xff\0\0",
        ],
    );
}

#[test]
fn what_a_lenient_server_takes_for_http_is_refused() {
    is_refused(&[
        b"\x16\x02\x03\x01",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\rHost: other.example.com\r\r",
        b"\r\nGET / HTTP/1.1\r\n",
        b"\nGET / HTTP/1.1\r\n",
        b" GET / HTTP/1.1\r\n",
        b"\tGET / HTTP/1.1\r\n",
        b"GET /\r\n",
        b"GET /\n",
        b"get /\r\n",
        b"GET\r\n",
        b"GET / HTTP/1.1\n",
        b"GET / http/1.1\r\n",
        b"GET / Http/1.1\r\n",
        b"GET  / HTTP/1.1\r\n",
        b"GET\t/ HTTP/1.1\r\n",
        b"ODD\t/ HTTP/1.1\r\n",
        b"ODD\x0b/ HTTP/1.1\r\n",
        b"GET / HTTP/1.1 \r\n",
        b"GET /a b HTTP/1.1\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\n",
        b"ODD /\xc3\xa9 HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\r\n",
        b"GET / HTTP/2.0\r\n",
        b"GET / HTTP/3\r\n",
        b"GET / HTTP/1.10\r\n",
        b"GET /\0 HTTP/1.1\r\n",
        b"GET\0/ HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"PRI * HTTP/1.1 x\r\n",
        b"\x80\x2e\x01\x00\x02",
        b"\x80\x2e\x01\x03\x01",
    ]);
}

#[test]
fn a_first_line_without_an_end_is_refused() {
    let mut line = b"FOO /".to_vec();
    line.resize(MAX_LINE - 1, b'a');
    assert_eq!(sniff(&line), Sniff::NeedMore);
    line.push(b'a');
    is_refused(&[&line]);
    line.extend_from_slice(b" HTTP/1.1\r\n");
    is_refused(&[&line]);
    is_refused(&[&vec![b'A'; MAX_LINE]]);
}

fn first_bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        &b"GET"[..],
        b"PRI",
        b"ODD",
        b" ",
        b"/",
        b"*",
        b"HTTP/1.1",
        b"HTTP/2.0",
        b"http/",
        b"\r\n",
        b"\n",
        b"\r",
        b"\t",
        b"\0",
        b"\xc3\xa9",
        b"\x80\x01\x01\x03",
        b"SM",
        b"\x16",
        b"\x03",
    ]);
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64),
        proptest::collection::vec(word, 0..12).prop_map(|words| words.concat()),
    ]
}

proptest! {
    #[test]
    fn more_bytes_change_only_a_wish_for_more(bytes in first_bytes()) {
        let mut decided = None;
        for end in 0..=bytes.len() {
            let now = sniff(&bytes[..end]);
            if let Some(before) = decided {
                prop_assert_eq!(before, now);
            } else if now != Sniff::NeedMore {
                decided = Some(now);
            }
        }
    }

    #[test]
    fn what_has_a_line_of_http_in_front_is_never_opaque(
        bytes in "[A-Za-z]{1,8}[ \t\u{b}\u{c}]{1,3}[ -~]{0,20} (HTTP|http|hTTp)/[0-9.]{1,4}\r?\n"
    ) {
        prop_assert_ne!(sniff(bytes.as_bytes()), Sniff::Opaque);
    }
}

/// Everything that was ever shown, one byte after the other.
fn in_crumbs(input: &[u8]) -> Sniff {
    let mut sniffer = Sniffer::default();
    let ends = (0..=input.len()).map(|end| sniffer.sniff(&input[..end]));
    ends.filter(|found| *found != Sniff::NeedMore)
        .chain([Sniff::NeedMore])
        .next()
        .unwrap_or(Sniff::NeedMore)
}

#[test]
fn a_line_in_crumbs_is_what_it_is_whole() {
    for input in [
        &b"GET / HTTP/1.1\r\n"[..],
        PREFACE,
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"GET /\rHTTP/1.1\r\n",
        b"ODD a\rb HTTP/1.1\r\n",
        b"ODD HTTP",
        b"EHLO example.com\r\n",
        b"\x80\x2e\x01\x03\x01",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"GET\0",
    ] {
        assert_eq!(in_crumbs(input), sniff(input), "{}", input.escape_ascii());
    }
}

proptest! {
    #[test]
    fn crumbs_never_change_what_a_beginning_is(
        input in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(&b"GEThttp/1. \r\n\t:\0\x16\x03\x80A"[..]).prop_map(|b| vec![b]),
                Just(b"HTTP/1.1".to_vec()),
                Just(b"GET ".to_vec()),
            ],
            0..24,
        )
    ) {
        let input = input.concat();
        prop_assert_eq!(in_crumbs(&input), sniff(&input));
    }
}

#[test]
fn the_longest_line_in_crumbs_is_looked_at_once() {
    let mut input = b"ODD ".to_vec();
    input.resize(MAX_LINE - 1, b'\r');
    let mut sniffer = Sniffer::default();
    for end in 1..=input.len() {
        assert_eq!(sniffer.sniff(&input[..end]), Sniff::NeedMore);
        assert!(
            end < 5 || sniffer.at == end,
            "nothing is left for the next time"
        );
    }
}
