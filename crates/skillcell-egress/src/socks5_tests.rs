use proptest::prelude::*;

use super::*;

fn run(input: &[u8]) -> (usize, Step, Vec<u8>) {
    let mut reply = Vec::new();
    let (used, step) = Handshake::new().feed(input, &mut reply);
    (used, step, reply)
}

#[test]
fn a_name_is_asked_for_and_what_follows_is_not_touched() {
    let (used, step, reply) = run(b"\x05\x02\x00\x02\x05\x01\x00\x03\x0bexample.com\x01\xbbGET /");
    assert_eq!(used, 22);
    assert_eq!(reply, [5, 0]);
    assert_eq!(
        step,
        Step::Connect {
            target: Target::Name("example.com".into()),
            port: 443
        }
    );
}

#[test]
fn addresses_of_both_families_are_asked_for() {
    let (_, step, _) = run(b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50");
    let target = Target::Address("192.0.2.1".parse().expect("an address"));
    assert_eq!(step, Step::Connect { target, port: 80 });
    let mut v6 = b"\x05\x01\x00\x05\x01\x00\x04".to_vec();
    v6.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
    v6.extend_from_slice(&[0, 22]);
    let target = Target::Address(Ipv6Addr::LOCALHOST.into());
    assert_eq!(run(&v6).1, Step::Connect { target, port: 22 });
}

#[test]
fn what_is_not_a_plain_connect_fails_with_the_right_reply() {
    let code = |request: &[u8]| {
        let (_, step, reply) = run(&[b"\x05\x01\x00", request].concat());
        assert!(matches!(step, Step::Failed(_)), "{step:?}");
        reply.get(3).copied()
    };
    assert_eq!(code(b"\x05\x02"), Some(7), "bind");
    assert_eq!(code(b"\x05\x03"), Some(7), "datagrams");
    assert_eq!(code(b"\x05\x01\x01"), Some(1), "reserved");
    assert_eq!(code(b"\x05\x01\x00\x02"), Some(8), "address type");
    assert_eq!(code(b"\x05\x01\x00\x03\x03a\0b"), Some(2), "NUL");
    assert_eq!(code(b"\x05\x01\x00\x03\x03a b"), Some(2), "space");
    assert_eq!(code(b"\x05\x01\x00\x03\x02\xc3\xa9"), Some(2), "not ASCII");
    assert_eq!(code(b"\x05\x01\x00\x03\x00"), Some(2), "empty");
    assert_eq!(code(b"\x04"), None, "another version");
}

#[test]
fn a_client_that_wants_authentication_is_sent_away() {
    assert_eq!(run(b"\x05\x01\x02").2, [5, 0xff]);
    assert_eq!(run(b"\x05\x00").2, [5, 0xff]);
    let (used, step, reply) = run(b"\x04\x01\x00\x50\xc0\x00\x02\x01\x00");
    assert!(matches!(step, Step::Failed(_)));
    assert_eq!((used, reply), (1, vec![]));
}

#[test]
fn a_reply_names_no_address() {
    assert_eq!(Reply::NotAllowed.bytes(), [5, 2, 0, 1, 0, 0, 0, 0, 0, 0]);
}

proptest! {
    #[test]
    fn any_split_gives_the_same_answer(
        tail in proptest::collection::vec(any::<u8>(), 0..300),
        kind in 0..6_u8,
        length in 0..20_usize,
        cuts in proptest::collection::vec(0..330_usize, 0..8),
    ) {
        let prefixes: [&[u8]; 4] = [b"", b"\x05\x01\x00", b"\x05\x01\x00\x05\x01\x00\x03\x05", b"\x05\x01\x00\x05\x01\x00"];
        let mut input = prefixes[length % 4].to_vec();
        input.push(kind);
        input.extend(tail);
        let whole = run(&input);

        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let (mut handshake, mut reply, mut used) = (Handshake::new(), Vec::new(), 0);
        let mut step = Step::NeedMore;
        for pair in cuts.windows(2) {
            let (more, now) = handshake.feed(&input[pair[0]..pair[1]], &mut reply);
            used += more;
            step = now;
            prop_assert!(handshake.held.len() <= 262);
        }
        prop_assert_eq!(whole, (used, step, reply));
    }
}
