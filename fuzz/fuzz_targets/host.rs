#![no_main]
//! A host has one spelling, an address never passes as a name, and a decision needs no luck.

use skillcell_core::{AddressClass, DenyPattern, Host, HostPattern, NormalPath};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Host::parse(text) {
        Ok(host) => {
            let shown = host.to_string();
            assert_eq!(Host::parse(&shown), Ok(host.clone()));
            match &host {
                Host::Name(name) => {
                    assert!(name.as_str().len() <= 253);
                    assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
                    assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)));
                }
                Host::Addr(address) => {
                    assert_eq!(address.to_canonical(), *address);
                    AddressClass::of(*address);
                }
            }
        }
        // Messages end on a terminal.
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
    if let Ok(pattern) = HostPattern::parse(text) {
        assert_eq!(HostPattern::parse(pattern.as_str()).as_ref(), Ok(&pattern));
        assert!(DenyPattern::parse(text).is_ok());
    }
    if let Ok(path) = NormalPath::parse(text) {
        assert_eq!(NormalPath::parse(path.as_str()).as_ref(), Ok(&path));
    }
});
