//! Secrets that the skill never sees. Its variable holds a placeholder; on the way out, to the
//! hosts that the secret is bound to, the placeholder is replaced. Anywhere else a placeholder or
//! the secret itself is a leak.

use super::base64;
use crate::scan::{Hider, Scanner, TooLong, Verdict};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use skillcell_core::{Host, HostPattern};
use std::fmt;

/// What stands for a secret inside the cell: letters and digits only, so that no encoding of a URL,
/// a header or JSON changes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Placeholder(String);

impl Placeholder {
    /// From sixteen random bytes.
    pub fn new(random: [u8; 16]) -> Placeholder {
        let hex: String = random.iter().map(|b| format!("{b:02x}")).collect();
        Placeholder(format!("skillcellsecret{hex}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where in a request a secret may be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Header,
    Query,
}

pub struct Secret {
    pub placeholder: Placeholder,
    pub value: String,
    pub hosts: Vec<HostPattern>,
    pub places: Vec<Place>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

/// A secret, or what stands for it, on its way to where it doesn't belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leak;

#[derive(Debug)]
pub(crate) struct Secrets {
    all: Vec<Secret>,
    /// For everything that leaves; made once, since it knows every spelling of every secret.
    scanner: Option<Scanner>,
    /// For everything that comes back from whom a secret may be told.
    hider: Option<Hider>,
}

impl Secrets {
    pub(crate) fn new(all: Vec<Secret>) -> Secrets {
        let needles: Vec<Vec<u8>> = all
            .iter()
            .flat_map(|s| {
                [
                    s.placeholder.0.as_bytes().to_vec(),
                    s.value.as_bytes().to_vec(),
                ]
            })
            .collect();
        Secrets {
            scanner: (!all.is_empty()).then(|| Scanner::new(&needles)),
            hider: (!all.is_empty()).then(|| {
                Hider::new(
                    all.iter()
                        .map(|s| (s.value.as_bytes(), s.placeholder.0.as_bytes())),
                )
            }),
            all,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Looks at one stream of bytes; `None` where there is nothing to look for.
    pub(crate) fn scanner(&self) -> Option<Scanner> {
        self.scanner.as_ref().map(Scanner::restarted)
    }

    /// Whether every secret of the call may go to this host.
    pub(crate) fn all_bound_to(&self, host: &Host) -> bool {
        [Place::Header, Place::Query]
            .iter()
            .any(|place| self.bound(host, *place).count() == self.all.len())
    }

    fn bound(&self, host: &Host, place: Place) -> impl Iterator<Item = &Secret> {
        let host = match host {
            Host::Name(name) => HostPattern::parse(name.as_str()).ok(),
            Host::Addr(_) => None,
        };
        self.all.iter().filter(move |secret| {
            secret.places.contains(&place)
                && host
                    .as_ref()
                    .is_some_and(|h| secret.hosts.iter().any(|pattern| pattern.covers(h)))
        })
    }

    /// Puts placeholders back into what a host says that was told a secret; `None` for others.
    pub(crate) fn hider(&self, host: &Host) -> Option<Hider> {
        let told = [Place::Header, Place::Query]
            .iter()
            .any(|place| self.bound(host, *place).next().is_some());
        self.hider.as_ref().filter(|_| told).map(Hider::restarted)
    }

    /// A name of a host: what is cut into labels is whole for who wants it whole.
    pub(crate) fn clean_name(&self, name: &str) -> Result<(), Leak> {
        self.clean(name.as_bytes())?;
        self.clean(name.replace('.', "").as_bytes())
    }

    pub(crate) fn clean(&self, bytes: &[u8]) -> Result<(), Leak> {
        match self.scanner().map(|mut s| s.scan(bytes)) {
            Some(Verdict::Hit) => Err(Leak),
            Some(Verdict::Clean { .. }) | None => Ok(()),
        }
    }

    /// The path as it is, and the query with what belongs there put in; `host` is `None` where
    /// nothing may be put in, because everybody on the way could read it.
    pub(crate) fn target(
        &self,
        host: Option<&Host>,
        path: &str,
        query: Option<&str>,
    ) -> Result<String, Leak> {
        self.clean(path.as_bytes())?;
        let Some(query) = query else {
            return Ok(path.to_owned());
        };
        // Looked at with the placeholders that may be here taken out.
        let (mut rest, mut put) = (query.to_owned(), query.to_owned());
        for secret in host.into_iter().flat_map(|h| self.bound(h, Place::Query)) {
            rest = rest.replace(secret.placeholder.as_str(), "");
            put = put.replace(secret.placeholder.as_str(), &percent_encoded(&secret.value));
        }
        self.clean(rest.as_bytes())?;
        Ok(format!("{path}?{put}"))
    }

    /// Puts secrets into headers, and looks at everything else in them.
    pub(crate) fn headers(&self, host: Option<&Host>, headers: &mut HeaderMap) -> Result<(), Leak> {
        let Some(host) = host else {
            return self.foreign(headers);
        };
        if self.is_empty() {
            return Ok(());
        }
        for (name, value) in headers.iter_mut() {
            self.clean(name.as_str().as_bytes())?;
            let (mut rest, mut put) = (value.as_bytes().to_vec(), value.as_bytes().to_vec());
            for secret in self.bound(host, Place::Header) {
                let marker = secret.placeholder.as_str().as_bytes();
                rest = replaced(&rest, marker, b"");
                put = replaced(&put, marker, secret.value.as_bytes());
            }
            if let Some(basic) = self.basic(host, &put) {
                put = basic;
                rest.clear();
            }
            self.clean(&rest)?;
            if put != value.as_bytes() {
                let mut new = HeaderValue::from_bytes(&put).map_err(|_| Leak)?;
                new.set_sensitive(true);
                *value = new;
            }
        }
        Ok(())
    }

    /// Looks at headers that nothing may be put into.
    pub(crate) fn foreign(&self, headers: &HeaderMap) -> Result<(), Leak> {
        for (name, value) in headers {
            self.clean(name.as_str().as_bytes())?;
            self.clean(value.as_bytes())?;
        }
        Ok(())
    }

    /// `Basic` credentials that hold a placeholder of this host.
    fn basic(&self, host: &Host, value: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(value).ok()?;
        let (scheme, encoded) = text.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = base64::decode(encoded.trim())?;
        let mut put = decoded.clone();
        let mut rest = decoded.clone();
        for secret in self.bound(host, Place::Header) {
            let marker = secret.placeholder.as_str().as_bytes();
            put = replaced(&put, marker, secret.value.as_bytes());
            rest = replaced(&rest, marker, b"");
        }
        if put == decoded || self.clean(&rest).is_err() {
            return None;
        }
        Some(format!("{scheme} {}", base64::encode(&put)).into_bytes())
    }
}

/// Puts placeholders back into headers that came from a server.
pub(crate) fn hide(hider: &Hider, headers: &mut HeaderMap) -> Result<(), TooLong> {
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        // A name can't be changed for one that the client would know.
        if hider.hidden(name.as_str().as_bytes())? != name.as_str().as_bytes() {
            headers.remove(&name);
        }
    }
    for value in headers.values_mut() {
        let hidden = hider.hidden(value.as_bytes())?;
        if hidden != value.as_bytes() {
            *value = HeaderValue::from_bytes(&hidden).map_err(|_| TooLong)?;
        }
    }
    Ok(())
}

fn replaced(text: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(what) {
            out.extend_from_slice(with);
            at += what.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

fn percent_encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "s3cret/value+1";

    fn secrets(places: &[Place]) -> (Secrets, String) {
        let placeholder = Placeholder::new([7; 16]);
        let text = placeholder.as_str().to_owned();
        let secret = Secret {
            placeholder,
            value: VALUE.to_owned(),
            hosts: vec![HostPattern::parse("api.example.com").expect("a pattern")],
            places: places.to_vec(),
        };
        (Secrets::new(vec![secret]), text)
    }

    fn host(text: &str) -> Host {
        Host::parse(text).expect("a host")
    }

    #[test]
    fn a_bound_host_gets_the_secret_and_another_gets_nothing() {
        let (secrets, marker) = secrets(&[Place::Header, Place::Query]);
        let query = format!("key={marker}&x=1");
        assert_eq!(
            secrets.target(Some(&host("api.example.com")), "/v1", Some(&query)),
            Ok("/v1?key=s3cret%2Fvalue%2B1&x=1".to_owned())
        );
        assert_eq!(
            secrets.target(Some(&host("other.example.com")), "/v1", Some(&query)),
            Err(Leak)
        );
        assert_eq!(
            secrets.target(Some(&host("api.example.com")), &format!("/{marker}"), None),
            Err(Leak)
        );

        let mut headers = HeaderMap::new();
        headers.insert(
            "authorization",
            format!("Bearer {marker}").parse().expect("a value"),
        );
        let mut elsewhere = headers.clone();
        assert_eq!(
            secrets.headers(Some(&host("api.example.com")), &mut headers),
            Ok(())
        );
        assert_eq!(headers["authorization"], format!("Bearer {VALUE}"));
        assert_eq!(
            secrets.headers(Some(&host("other.example.com")), &mut elsewhere),
            Err(Leak)
        );
    }

    #[test]
    fn a_place_that_was_not_named_is_a_leak() {
        let (secrets, marker) = secrets(&[Place::Header]);
        assert_eq!(
            secrets.target(
                Some(&host("api.example.com")),
                "/",
                Some(&format!("k={marker}"))
            ),
            Err(Leak)
        );
    }

    #[test]
    fn basic_credentials_are_opened_and_closed_again() {
        let (secrets, marker) = secrets(&[Place::Header]);
        let mut headers = HeaderMap::new();
        let value = format!(
            "Basic {}",
            base64::encode(format!("me:{marker}").as_bytes())
        );
        headers.insert("authorization", value.parse().expect("a value"));
        assert_eq!(
            secrets.headers(Some(&host("api.example.com")), &mut headers),
            Ok(())
        );
        let text = headers["authorization"].to_str().expect("text");
        let decoded = base64::decode(&text["Basic ".len()..]).expect("base64");
        assert_eq!(decoded, format!("me:{VALUE}").as_bytes());
    }

    #[test]
    fn the_secret_itself_is_a_leak_as_well() {
        let (secrets, _) = secrets(&[Place::Header, Place::Query]);
        let mut headers = HeaderMap::new();
        headers.insert("x", VALUE.parse().expect("a value"));
        assert_eq!(
            secrets.headers(Some(&host("api.example.com")), &mut headers),
            Err(Leak)
        );
    }

    #[test]
    fn in_the_clear_nothing_is_put_in() {
        let (secrets, marker) = secrets(&[Place::Header, Place::Query]);
        assert_eq!(
            secrets.target(None, "/", Some(&format!("k={marker}"))),
            Err(Leak)
        );
        let mut headers = HeaderMap::new();
        headers.insert("x", marker.parse().expect("a value"));
        assert_eq!(secrets.headers(None, &mut headers), Err(Leak));
    }

    #[test]
    fn a_secret_in_a_name_is_found_whatever_its_case_and_its_dots() {
        let secret = Secret {
            placeholder: Placeholder::new([7; 16]),
            value: "SeCreT-Value".to_owned(),
            hosts: vec![HostPattern::parse("api.example.com").expect("a pattern")],
            places: vec![Place::Header],
        };
        let secrets = Secrets::new(vec![secret]);
        // The last one is base32, as tunnels have it.
        for name in [
            "secret-value.example.com",
            "sec.ret-va.lue.example.com",
            "knsug4tfkqwvmylmovsq.example.com",
        ] {
            assert_eq!(secrets.clean_name(name), Err(Leak), "{name}");
        }
        assert_eq!(secrets.clean_name("secret.example.com"), Ok(()));
    }

    #[test]
    fn what_comes_back_has_placeholders_again() {
        let (secrets, marker) = secrets(&[Place::Header]);
        assert!(secrets.hider(&host("other.example.com")).is_none());
        let hider = secrets.hider(&host("api.example.com")).expect("bound");
        let mut headers = HeaderMap::new();
        let location = "/v1/?key=s3cret%2Fvalue%2B1&x=1";
        headers.insert("location", location.parse().expect("a value"));
        headers.insert("x-said", VALUE.parse().expect("a value"));
        assert_eq!(hide(&hider, &mut headers), Ok(()));
        assert_eq!(headers["location"], format!("/v1/?key={marker}&x=1"));
        assert_eq!(headers["x-said"], marker);
    }

    #[test]
    fn nothing_of_a_secret_is_shown_by_debug() {
        let (secrets, marker) = secrets(&[Place::Header]);
        let text = format!("{secrets:?}");
        assert!(!text.contains(VALUE) && !text.contains(&marker));
    }
}
