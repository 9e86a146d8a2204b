use proptest::prelude::*;

use super::*;
use crate::Progress;

fn run(input: &[u8]) -> (Result<(), HttpFault>, Vec<u8>) {
    let mut out = Vec::new();
    let result = Guard::new().feed(input, &mut out);
    (result, out)
}

#[track_caller]
fn passes(input: &str) {
    assert_eq!(run(input.as_bytes()), (Ok(()), input.into()), "{input:?}");
}

/// And that no byte of it gets through.
#[track_caller]
fn is_held(fault: HttpFault, input: &str) {
    assert_eq!(run(input.as_bytes()), (Err(fault), vec![]), "{input:?}");
}

/// A head with these lines behind a good beginning.
fn head(lines: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n")
}

#[test]
fn plain_requests_pass_as_they_are() {
    passes("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    passes("GET /a?b=c HTTP/1.0\r\nhost:a.example:80\r\nX: \t y\u{e9} \r\nEmpty:\r\n\r\n");
    passes("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
    passes("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n");
    passes(&(head("Content-Length: 5\r\n") + "12345" + &head("Content-Length: 0\r\n")));
    passes(
        &(head("Transfer-Encoding: Chunked\r\n")
            + "5\r\nhello\r\n0B;x=\"y\"\r\n\r\n\n\r67890\r\r\r\n0\r\nX-Sum: 1\r\n\r\n"
            + &head("")),
    );
}

#[test]
fn an_unfinished_head_is_held_back() {
    let (mut guard, mut out) = (Guard::new(), Vec::new());
    let text = head("");
    let (first, last) = text.split_at(text.len() - 1);
    assert!(guard.is_idle());
    assert_eq!(guard.feed(first.as_bytes(), &mut out), Ok(()));
    assert!(out.is_empty() && !guard.is_idle());
    assert_eq!(guard.feed(last.as_bytes(), &mut out), Ok(()));
    assert_eq!(out, text.as_bytes());
    assert!(guard.is_idle());
}

#[test]
fn line_ends_other_than_crlf_are_faults() {
    is_held(HttpFault::BareLf, "GET / HTTP/1.1\nHost: a.example\r\n\r\n");
    is_held(HttpFault::BareLf, &head("X: y\n"));
    is_held(HttpFault::BareLf, "GET / HTTP/1.1\r\nHost: a\r\n\n");
    is_held(HttpFault::BareCr, &head("X: y\rz\r\n"));
    is_held(HttpFault::BareCr, &head("X: y\r\r\n"));
    is_held(HttpFault::RequestLine, "\r\nGET / HTTP/1.1\r\n");
}

#[test]
fn malformed_request_lines_are_faults() {
    for line in [
        "GET /",
        "GET  / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "G(T / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "connect a:1 HTTP/1.1",
    ] {
        is_held(HttpFault::RequestLine, &format!("{line}\r\n"));
    }
    for version in [
        "HTTP/1.2",
        "HTTP/2.0",
        "http/1.1",
        "HTTP/1.1\0",
        "HTTP/01.1",
    ] {
        is_held(HttpFault::Version, &format!("GET / {version}\r\n"));
    }
    for target in [
        "",
        "a",
        "*",
        "a.example:80",
        "/\u{e9}",
        "/a\0",
        "/a\tb",
        "/a#b",
        "ftp://a/",
        "http://",
        "//\u{7f}",
    ] {
        is_held(HttpFault::Target, &format!("GET {target} HTTP/1.1\r\n"));
    }
}

#[test]
fn malformed_headers_are_faults() {
    for line in [
        "X : y",
        "X\t: y",
        ": y",
        "no colon",
        "X(: y",
        "X\0: y",
        "\u{e9}: y",
    ] {
        is_held(HttpFault::HeaderName, &head(&format!("{line}\r\n")));
    }
    is_held(HttpFault::FoldedHeader, &head("X: y\r\n z\r\n"));
    is_held(HttpFault::FoldedHeader, &head("X: y\r\n\tz\r\n"));
    for value in ["\0", "\u{b}", "\u{7f}", "a\u{1b}b"] {
        is_held(HttpFault::HeaderValue, &head(&format!("X: {value}\r\n")));
    }
}

#[test]
fn there_is_exactly_one_host() {
    is_held(HttpFault::NoHost, "GET / HTTP/1.1\r\n\r\n");
    is_held(HttpFault::NoHost, "GET / HTTP/1.0\r\n\r\n");
    is_held(HttpFault::SeveralHosts, &head("HOST: a.example\r\n"));
    is_held(HttpFault::Host, "GET / HTTP/1.1\r\nHost: \r\n\r\n");
    is_held(HttpFault::Host, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
    is_held(HttpFault::Host, "GET / HTTP/1.1\r\nHost: a\u{e9}\r\n\r\n");
    is_held(
        HttpFault::ConnectionHeader,
        &head("Connection: close, Host\r\n"),
    );
}

#[test]
fn a_body_with_two_lengths_is_a_fault() {
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    is_held(HttpFault::LengthAndEncoding, &head(both));
    let twice = "Content-Length: 5\r\ncontent-length: 5\r\n";
    is_held(HttpFault::SeveralContentLengths, &head(twice));
    for length in [
        "+5",
        "-5",
        "5,5",
        "5, 5",
        "0x5",
        "",
        "5 5",
        "05",
        "00",
        "1e3",
        "5;",
        "99999999999999999999",
    ] {
        is_held(
            HttpFault::ContentLength,
            &head(&format!("Content-Length: {length}\r\n")),
        );
    }
    for encoding in [
        "identity",
        "gzip, chunked",
        "chunked, chunked",
        "chunked;x",
        "\"chunked\"",
        "xchunked",
        "",
        "chunked,",
    ] {
        is_held(
            HttpFault::TransferEncoding,
            &head(&format!("Transfer-Encoding: {encoding}\r\n")),
        );
    }
    let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
    is_held(HttpFault::TransferEncoding, &head(twice));
    is_held(
        HttpFault::EncodingInHttp10,
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
}

#[test]
fn malformed_chunks_are_faults_and_stay_behind() {
    let good = head("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n";
    for (fault, bad) in [
        (HttpFault::ChunkSize, "\r\n"),
        (HttpFault::ChunkSize, "+3\r\n"),
        (HttpFault::ChunkSize, "0x3\r\n"),
        (HttpFault::ChunkSize, " 3\r\n"),
        (HttpFault::ChunkSize, "3 \r\n"),
        (HttpFault::ChunkSize, "3 ;x\r\n"),
        (HttpFault::ChunkSize, "00000000000000003\r\n"),
        (HttpFault::ChunkSize, "g\r\n"),
        (HttpFault::ChunkExtension, "3;a\0\r\n"),
        (HttpFault::BareLf, "3\nabc"),
        (HttpFault::BareLf, "3;a\nb"),
        (HttpFault::BareCr, "3;a\rb"),
        (HttpFault::Trailer, "0\r\nHost: b\r\n\r\n"),
        (HttpFault::Trailer, "0\r\nContent-Length: 5\r\n\r\n"),
        (
            HttpFault::Trailer,
            "0\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
        ),
        (HttpFault::HeaderName, "0\r\nGET / HTTP/1.1\r\n\r\n"),
        (HttpFault::BareLf, "0\r\n\n"),
    ] {
        let (result, out) = run((good.clone() + bad).as_bytes());
        assert_eq!(result, Err(fault), "{bad:?}");
        let last = if bad.starts_with("0\r\n") {
            "0\r\n"
        } else {
            ""
        };
        assert_eq!(out, (good.clone() + last).as_bytes(), "{bad:?}");
    }
    for bad in ["abcd\r\n", "abc\n", "abc\rx", "abc0\r\n"] {
        let start = head("Transfer-Encoding: chunked\r\n") + "3\r\n";
        let (result, out) = run((start.clone() + bad).as_bytes());
        assert_eq!(result, Err(HttpFault::ChunkEnd), "{bad:?}");
        assert_eq!(out, (start + "abc").as_bytes());
    }
    let size = head("Transfer-Encoding: chunked\r\n") + "ffffffffffffffff\r\nabc";
    passes(&size);
}

#[test]
fn a_head_is_bounded_in_size_and_number() {
    passes(&head(&"X: y\r\n".repeat(MAX_HEADERS - 1)));
    is_held(
        HttpFault::TooManyHeaders,
        &head(&"X: y\r\n".repeat(MAX_HEADERS)),
    );
    let rest = MAX_HEAD - head("X: \r\n").len();
    passes(&head(&format!("X: {}\r\n", "y".repeat(rest))));
    is_held(
        HttpFault::TooLong,
        &head(&format!("X: {}\r\n", "y".repeat(rest + 1))),
    );
    let line = head("Transfer-Encoding: chunked\r\n") + "3;" + &"x".repeat(MAX_CHUNK_LINE);
    assert_eq!(run(line.as_bytes()).0, Err(HttpFault::TooLong));
    let trailers = head("Transfer-Encoding: chunked\r\n") + "0\r\n" + &"X: y\r\n".repeat(201);
    assert_eq!(run(trailers.as_bytes()).0, Err(HttpFault::TooManyHeaders));
}

#[test]
fn a_fault_lasts() {
    let (mut guard, mut out) = (Guard::new(), Vec::new());
    assert_eq!(guard.feed(b"\n", &mut out), Err(HttpFault::BareLf));
    guard.upgraded();
    assert_eq!(
        guard.feed(head("").as_bytes(), &mut out),
        Err(HttpFault::BareLf)
    );
    assert_eq!(guard.feed(b"", &mut out), Err(HttpFault::BareLf));
    assert!(out.is_empty());
}

#[test]
fn each_head_is_asked_about_and_a_refused_one_stays_behind() {
    let good = head("Content-Length: 3\r\n") + "abc";
    let bad = "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let (mut guard, mut out, mut seen) = (Guard::new(), Vec::new(), Vec::new());
    let result = guard.feed_with((good.clone() + bad + &good).as_bytes(), &mut out, |head| {
        seen.push((head.host.clone(), head.length));
        match head.host.as_deref() {
            Some("a.example") => Ok(()),
            _ => Err(Box::<dyn std::error::Error>::from("another host")),
        }
    });
    assert_eq!(result.expect_err("refused").to_string(), "another host");
    assert_eq!(out, good.as_bytes());
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1], (Some("b.example".into()), bad.len()));
    assert_eq!(
        guard.feed(good.as_bytes(), &mut out),
        Err(HttpFault::AfterRefusal)
    );
}

#[test]
fn connect_needs_permission_and_its_tunnel_an_answer() {
    let connect = "CONNECT a.example:443 HTTP/1.0\r\n\r\n";
    is_held(HttpFault::Connect, connect);
    let (mut guard, mut out) = (Guard::allow_connect(), Vec::new());
    assert_eq!(
        guard.feed(format!("{connect}\x16\x03").as_bytes(), &mut out),
        Ok(())
    );
    assert_eq!(out, connect.as_bytes());
    guard.upgraded();
    assert_eq!(guard.feed(b"\x01\n", &mut out), Ok(()));
    assert_eq!(out, format!("{connect}\x16\x03\x01\n").as_bytes());

    let body = "CONNECT a:1 HTTP/1.1\r\nContent-Length: 1\r\n\r\n";
    let mut out = Vec::new();
    let result = Guard::allow_connect().feed(body.as_bytes(), &mut out);
    assert_eq!((result, out.len()), (Err(HttpFault::ConnectBody), 0));
    let mut guard = Guard::allow_connect();
    assert_eq!(guard.feed(connect.as_bytes(), &mut out), Ok(()));
    let result = guard.feed(&vec![0; MAX_HELD + 1], &mut out);
    assert_eq!(result, Err(HttpFault::TooMuchBeforeTunnel));
}

#[test]
fn after_an_upgrade_everything_passes() {
    let (mut guard, mut out) = (Guard::new(), Vec::new());
    let request = head("Upgrade: websocket\r\n");
    assert_eq!(
        guard.feed((request.clone() + "\x01\x05").as_bytes(), &mut out),
        Ok(())
    );
    guard.upgraded();
    assert_eq!(guard.feed(b"\n\r\0", &mut out), Ok(()));
    assert_eq!(out, (request + "\x01\x05\n\r\0").as_bytes());
}

#[test]
fn a_head_can_be_read_alone() {
    let text = head("X-A: b\r\nContent-Length: 7\r\n");
    let Progress::Done(found) = parse_head((text.clone() + "more").as_bytes()) else {
        panic!("a good head");
    };
    assert_eq!(
        (found.method.as_str(), found.target.as_str()),
        ("POST", "/")
    );
    assert_eq!(found.version, Version::Http11);
    assert_eq!(found.header("x-a"), Some(&b"b"[..]));
    assert_eq!(found.framing, Framing::Length(7));
    assert_eq!(found.length, text.len());
    assert_eq!(parse_head(b"GET / HT"), Progress::NeedMore);
    assert_eq!(
        parse_head(b"GET /\r\n"),
        Progress::Malformed(HttpFault::RequestLine.as_str())
    );
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let likely = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n",
        "4\r\nabcd\r\n",
        "0\r\n\r\n",
        "0\r\nX: y\r\n\r\n",
    ]);
    let odd = prop::sample::select(vec![
        "GET / HTTP/1.1\r\n",
        "Host: b\r\n",
        "abcd",
        "\r\n",
        "\r",
        "\n",
        " ",
        ":",
        "\0",
        "4;x\r\n",
    ]);
    let part = prop_oneof![3 => likely, 1 => odd];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_answer(
        stream in streams(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let whole = run(&stream);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let (mut guard, mut out, mut result) = (Guard::new(), Vec::new(), Ok(()));
        for pair in cuts.windows(2) {
            result = guard.feed(&stream[pair[0]..pair[1]], &mut out);
        }
        // What passes is the beginning of what came, and the same whatever the cuts.
        prop_assert!(stream.starts_with(&out));
        prop_assert_eq!(whole, (result, out));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_, out) = run(&bytes);
        prop_assert!(bytes.starts_with(&out));
        let _progress = parse_head(&bytes);
    }
}
