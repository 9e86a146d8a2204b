use proptest::prelude::*;

use super::*;

const SECRET: &[u8] = b"s3cr3t/+ \"key\"\xc3\xa9";

fn finds(needle: &[u8], haystack: &[u8]) -> bool {
    Scanner::new(&[needle.to_vec()]).scan(haystack) == Verdict::Hit
}

#[test]
fn a_secret_is_found_in_every_common_spelling() {
    for spelling in [
        &b"s3cr3t/+ \"key\"\xc3\xa9"[..],
        b"s3cr3t%2F%2B%20%22key%22%C3%A9",
        b"s3cr3t%2f%2b%20%22key%22%c3%a9",
        b"s3cr3t%2F%2B+%22key%22%C3%A9",
        b"%73%33%63%72%33%74%2F%2B%20%22%6B%65%79%22%C3%A9",
        b"7333637233742f2b20226b657922c3a9",
        b"7333637233742F2B20226B657922C3A9",
        b"s3cr3t/+ \\\"key\\\"\xc3\xa9",
        b"s3cr3t\\/+ \\\"key\\\"\\u00e9",
        b"s3cr3t/+ \\\"key\\\"\\u00E9",
        b"czNjcjN0LysgImtleSLDqQ==",
        b"eHMzY3IzdC8rICJrZXkiw6k=",
        b"eHhzM2NyM3QvKyAia2V5IsOp",
    ] {
        let stream = [b"before ", spelling, b" after"].concat();
        assert!(finds(SECRET, &stream), "{}", spelling.escape_ascii());
    }
    assert!(!finds(SECRET, b"s3cr3t/+ \"kez\""));
    assert!(finds(b"\xff\xef\xfe\xff\xef\xfe", b"x_-_-_-_-x"));
}

#[test]
fn a_short_needle_is_found_as_it_is_only() {
    assert!(finds(b"abc/d", b"xabc/dx"));
    assert!(!finds(b"abc/d", b"xabc%2Fdx"));
}

#[test]
fn empty_needles_match_nothing() {
    let mut scanner = Scanner::new(&[vec![]]);
    assert_eq!(scanner.scan(b"anything"), Verdict::Clean { safe: 8 });
}

#[test]
fn a_long_needle_is_found_by_its_beginning() {
    let needle = vec![b'k'; 5000];
    assert!(finds(&needle, &needle[..MAX_NEEDLE]));
    assert!(!finds(&needle, &needle[..MAX_NEEDLE - 1]));
}

#[test]
fn only_a_possible_beginning_is_held_back() {
    let mut scanner = Scanner::new(&[b"abcab".to_vec()]);
    assert_eq!(scanner.scan(b"xxabc"), Verdict::Clean { safe: 2 });
    assert_eq!(scanner.scan(b"a"), Verdict::Clean { safe: 0 });
    assert_eq!(scanner.scan(b"c"), Verdict::Clean { safe: 5 });
    assert_eq!(scanner.scan(b"ab"), Verdict::Clean { safe: 0 });
    assert_eq!(scanner.finish(), Verdict::Clean { safe: 2 });
    assert_eq!(scanner.scan(b"abcab"), Verdict::Hit);
    assert_eq!(scanner.scan(b"x"), Verdict::Hit);
    assert_eq!(scanner.scan(b""), Verdict::Hit);
    assert_eq!(scanner.finish(), Verdict::Hit);
    assert_eq!(scanner.restarted().scan(b"x"), Verdict::Clean { safe: 1 });
}

#[test]
fn a_scanner_does_not_print_its_needles() {
    let printed = format!("{:?}", Scanner::new(&[b"hunter2hunter2".to_vec()]));
    assert_eq!(printed, "Scanner { held: 0, .. }");
}

fn encode(alphabet: &[u8; 64], bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .fold(0_u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - group.len()));
        for index in 0..=group.len() {
            out.push(alphabet[(word >> (18 - 6 * index)) as usize & 63]);
        }
    }
    out
}

proptest! {
    #[test]
    fn base64_is_found_at_every_alignment(
        before in proptest::collection::vec(any::<u8>(), 0..7),
        secret in proptest::collection::vec(any::<u8>(), 6..40),
        after in proptest::collection::vec(any::<u8>(), 0..7),
        url in any::<bool>(),
    ) {
        let alphabet = if url { spellings::URL } else { spellings::STANDARD };
        let stream = encode(alphabet, &[&before[..], &secret, &after].concat());
        prop_assert!(finds(&secret, &stream));
    }

    #[test]
    fn in_any_split_a_needle_is_found_and_never_released_whole(
        needles in proptest::collection::vec("[ab]{1,5}", 1..4),
        chunks in proptest::collection::vec("[abc]{0,6}", 0..12),
    ) {
        let whole = chunks.concat();
        let mut scanner = Scanner::new(&needles.iter().map(|n| n.as_bytes().to_vec()).collect::<Vec<_>>());
        let (mut released, mut fed) = (0, 0);
        let mut hit = false;
        for chunk in &chunks {
            match scanner.scan(chunk.as_bytes()) {
                Verdict::Hit => { hit = true; break }
                Verdict::Clean { safe } => { released += safe; fed += chunk.len() }
            }
            prop_assert!(released <= fed);
            // What is held is exactly the longest end that begins a needle.
            let longest = (0..=fed)
                .find(|start| needles.iter().any(|n| n.starts_with(&whole[*start..fed])));
            prop_assert_eq!(Some(released), longest);
        }
        prop_assert_eq!(hit, needles.iter().any(|n| whole.contains(n.as_str())));
        prop_assert!(needles.iter().all(|n| !whole[..released].contains(n.as_str())));
        if !hit {
            prop_assert_eq!(scanner.finish(), Verdict::Clean { safe: whole.len() - released });
        }
    }
}
