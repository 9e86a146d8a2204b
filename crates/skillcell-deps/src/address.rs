//! Where an index, a page of links or a proxy is. Read strictly: what is allowed is what the
//! installer dials, so a text with two readings is refused.

use crate::output::{printable, without_credentials};
use skillcell_core::Host;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
    Socks,
}

impl Scheme {
    fn parse(text: &str) -> Option<Scheme> {
        match text.to_ascii_lowercase().as_str() {
            "http" => Some(Scheme::Http),
            "https" => Some(Scheme::Https),
            "socks4" | "socks4a" | "socks5" | "socks5h" => Some(Scheme::Socks),
            _ => None,
        }
    }

    fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Socks => 1080,
        }
    }
}

impl Address {
    /// Of an index, possibly with a name before it (`mine=https://…`); `None` for what lies on disk.
    pub(crate) fn of_index(text: &str) -> Result<Option<Address>, String> {
        let Some((before, rest)) = text.split_once("://") else {
            return Ok(None);
        };
        let scheme = before.rsplit('=').next().unwrap_or(before).trim();
        if scheme.eq_ignore_ascii_case("file") {
            return Ok(None);
        }
        match Scheme::parse(scheme) {
            Some(scheme @ (Scheme::Http | Scheme::Https)) => authority(scheme, rest).map(Some),
            _ => Err(format!("`{}` is not http or https", shown(scheme))),
        }
    }

    /// Of a proxy; without a scheme it is one for HTTP.
    pub(crate) fn of_proxy(text: &str) -> Result<Address, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        match Scheme::parse(scheme) {
            Some(scheme) => authority(scheme, rest),
            None => Err(format!("`{}` is no kind of proxy", shown(scheme))),
        }
    }
}

fn authority(scheme: Scheme, rest: &str) -> Result<Address, String> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('\\') || authority.contains(char::is_whitespace) {
        return Err("it can be read in two ways".to_owned());
    }
    let authority = authority.rsplit_once('@').map_or(authority, |(_, a)| a);
    // The colon of a port stands after the bracket of an IPv6 address.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match port {
        None | Some("") => scheme.port(),
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port| *port != 0 && digits.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| format!("`{}` is not a port", shown(digits)))?,
    };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    let host = match Host::parse(host) {
        Ok(host) if bracketed || !host.address().is_some_and(|a| a.is_ipv6()) => host,
        Ok(_) => return Err("an IPv6 address stands in brackets".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    Ok(Address { scheme, host, port })
}

/// For messages.
pub(crate) fn shown(text: &str) -> String {
    printable(&without_credentials(text))
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(String, u16)> {
        Address::of_index(text)
            .unwrap()
            .map(|a| (a.host.to_string(), a.port))
    }

    #[test]
    fn an_index_is_read_with_its_port_and_without_its_credentials() {
        for (text, host, port) in [
            ("https://index.example/simple", "index.example", 443),
            ("HTTP://Index.Example", "index.example", 80),
            ("http://index.example:8080/a:b@c", "index.example", 8080),
            ("https://me:p@ss@index.example:1/x", "index.example", 1),
            ("https://[::1]:8443/", "::1", 8443),
            ("https://192.0.2.1/?a=b://c", "192.0.2.1", 443),
            ("mine=https://index.example/", "index.example", 443),
        ] {
            assert_eq!(of(text), Some((host.to_owned(), port)), "{text}");
        }
    }

    #[test]
    fn what_lies_on_disk_has_no_address() {
        for text in [
            "/srv/wheels",
            "wheels",
            "file:///srv/wheels",
            "mine=FILE:///x",
            "",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for text in [
            "https://",
            "https://a.example:0",
            "https://a.example:70000",
            "https://a.example:+1",
            "https://a%2eexample/",
            "https://a.example\\@b.example/",
            "https://0177.0.0.1/",
            "https://::1/",
            "ftp://a.example/",
            "git+https://a.example/",
        ] {
            assert!(Address::of_index(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_proxy_needs_no_scheme() {
        let of = |text: &str| Address::of_proxy(text).map(|a| (a.host.to_string(), a.port));
        assert_eq!(of("proxy.example:3128"), Ok(("proxy.example".into(), 3128)));
        assert_eq!(of("me:pw@proxy.example"), Ok(("proxy.example".into(), 80)));
        assert_eq!(
            of("socks5h://proxy.example"),
            Ok(("proxy.example".into(), 1080))
        );
        assert!(of("ftp://proxy.example").is_err());
    }
}
