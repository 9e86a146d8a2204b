use super::*;
use proptest::prelude::*;

fn host(text: &str) -> String {
    Host::parse(text)
        .unwrap_or_else(|e| panic!("{text:?}: {e}"))
        .to_string()
}

#[test]
fn one_host_has_one_spelling() {
    for (text, canonical) in [
        ("API.Example.COM", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ.com", "example.com"),
        ("example。com", "example.com"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("r3---sn-x.example.com", "r3---sn-x.example.com"),
        ("localhost", "localhost"),
        ("203.0.113.7", "203.0.113.7"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("2001:db8:0:0::1", "2001:db8::1"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("::ffff:a00:1", "10.0.0.1"),
        ("1e100.net", "1e100.net"),
        ("0x7f.example", "0x7f.example"),
    ] {
        assert_eq!(host(text), canonical, "{text}");
    }
}

#[test]
fn odd_spellings_of_ipv4_are_rejected() {
    for odd in [
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "0x7f.0.0.0x1",
        "2130706433",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.01",
        "1.2.3.4.5",
        "256.0.0.1",
        "1.2.3.4.",
        "127.0.0.1.",
        "0",
        "0x",
        "a.0x",
        "example.1",
        "１２７.1",
        "１２７.0.0.1",
        "①27.0.0.1",
        "1.2.3.0X4",
    ] {
        assert!(
            matches!(Host::parse(odd), Err(HostError::OddAddress(_))),
            "{odd}: {:?}",
            Host::parse(odd)
        );
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_rejected() {
    for bad in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a.com..",
        "-a.com",
        "a-.com",
        "a\0.com",
        "a.com\0.evil.example",
        "a\n.com",
        "a b.com",
        " a.com",
        "user@a.com",
        "a.com@evil.example",
        "a.com/x",
        "a.com:80",
        "a%2ecom",
        "a.com\\x",
        "a.com?x",
        "a.com#x",
        "*.a.com",
        "a\u{200b}.com",
        "a\u{ad}.com",
        "a\u{202e}.com",
        "a＠b.com",
        "a／b.com",
        "a％2e.com",
        "[::1",
        "::1]",
        "[::1]x",
        "[::1%eth0]",
        "fe80::1%lo",
        "fe80::1%25lo",
        "[1.2.3.4]",
        "[a.com]",
        "1::2::3",
        "xn--a.com",
        "xn--zzzzzzzzz-.com",
        "a,b.com",
        "a.c_m!",
        "http://a.com",
    ] {
        assert!(Host::parse(bad).is_err(), "{bad:?}: {:?}", Host::parse(bad));
    }
}

#[test]
fn names_and_labels_have_the_length_that_dns_has() {
    let label = "a".repeat(63);
    assert!(Host::parse(&format!("{label}.com")).is_ok());
    assert!(Host::parse(&format!("{label}a.com")).is_err());
    let name = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(name.len(), 253);
    assert!(Host::parse(&name).is_ok());
    assert!(Host::parse(&format!("{name}.")).is_ok());
    assert!(Host::parse(&format!("{name}b")).is_err());
    assert!(Host::parse(&"a.".repeat(100_000)).is_err());
    assert!(Host::parse(&format!("{}.com", "ü".repeat(60))).is_err());
}

#[test]
fn messages_about_hosts_can_not_drive_a_terminal() {
    for bad in ["a\x1b[2J.com", "a\u{202e}.com", "a\u{0}.com", "a\u{9b}b"] {
        let message = Host::parse(bad).expect_err("refused").to_string();
        assert!(
            !message.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{message:?}"
        );
    }
}

#[test]
fn a_domain_name_is_never_an_address() {
    assert!(DomainName::parse("1.2.3.4").is_err());
    assert!(DomainName::parse("::1").is_err());
    assert!(DomainName::parse("Example.COM").is_ok_and(|n| n.as_str() == "example.com"));
}

proptest! {
    #[test]
    fn parsing_never_panics_and_is_idempotent(text in "\\PC{0,40}|[a-z0-9.xX:\\[\\]%_-]{0,40}|[0-9a-fx.]{1,20}") {
        if let Ok(host) = Host::parse(&text) {
            let again = Host::parse(&host.to_string());
            prop_assert_eq!(again.as_ref(), Ok(&host));
            if let Host::Name(name) = &host {
                prop_assert!(name.as_str().len() <= MAX_NAME && name.as_str().is_ascii());
                prop_assert!(!name.as_str().bytes().any(|b| b.is_ascii_uppercase()));
                prop_assert!(name.as_str().parse::<IpAddr>().is_err());
            }
        }
    }

    #[test]
    fn every_address_is_its_own_spelling(address in any::<IpAddr>()) {
        let host = Host::parse(&address.to_string());
        prop_assert_eq!(host, Ok(Host::from(address)));
    }
}
