//! A destination as it is typed.

use skillcell_core::{Host, NormalPath, PathError};
use std::fmt;

/// A host, a port, and the request that a URL stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
    /// `None` for host:port, which is not about a request.
    pub(super) request: Option<WebRequest>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebRequest {
    pub(super) method: String,
    /// As it was typed.
    pub(super) written: String,
    /// What rules match. A path with two readings has none; it passes where any request does.
    pub(super) path: Result<NormalPath, PathError>,
}

impl Target {
    pub(super) fn parse(text: &str, method: &str) -> Result<Self, String> {
        if let Some(problem) = skillcell_manifest::method_problem(method) {
            return Err(problem);
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let implied = match scheme.as_deref() {
            Some("http" | "ws") => Some(80),
            Some("https" | "wss") | None => Some(443),
            Some(_) => None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let (host, port) = split_port(authority)?;
        let host = Host::parse(host).map_err(|error| error.to_string())?;
        let port = match (port, implied) {
            (Some(port), _) | (None, Some(port)) => port,
            (None, None) => return Err("the port is missing".to_owned()),
        };
        let web = matches!(scheme.as_deref(), Some("http" | "https" | "ws" | "wss"));
        if scheme.is_none() && !path.is_empty() {
            return Err("a path needs a scheme in front, such as https://".to_owned());
        }
        let request = if web {
            let path = if path.is_empty() { "/" } else { path };
            if !path.bytes().all(can_be_sent) {
                return Err(PathError::Character.to_string());
            }
            Some(WebRequest {
                method: method.to_owned(),
                written: path.to_owned(),
                path: NormalPath::parse(path),
            })
        } else {
            None
        };
        Ok(Target {
            host,
            port,
            request,
        })
    }
}

/// Whether a byte may stand in the path of a request.
fn can_be_sent(byte: u8) -> bool {
    byte.is_ascii_graphic() && !br#"<>"{}|\^`"#.contains(&byte)
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.rsplit_once(':') {
        // `::1` and `[::1]` have colons but no port.
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => (authority, None),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let port = match port {
        None => None,
        Some(text) => {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            match text.parse::<u16>() {
                Ok(port) if digits && port > 0 => Some(port),
                _ => return Err("the port is not a number from 1 to 65535".to_owned()),
            }
        }
    };
    Ok((host, port))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(request) = &self.request {
            write!(f, "{} ", request.method)?;
        }
        match &self.host {
            Host::Addr(std::net::IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port)?,
            host => write!(f, "{host}:{}", self.port)?,
        }
        match &self.request {
            Some(request) => match &request.path {
                Ok(path) => write!(f, "{path}"),
                Err(_) => write!(f, "{}", request.written),
            },
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_authorities_become_one_host_and_port() {
        for (text, shown) in [
            ("https://API.example.com", "GET api.example.com:443/"),
            ("http://a.com/x/../y?z#w", "GET a.com:80/y"),
            ("https://a.com:8443?x", "GET a.com:8443/"),
            ("a.com:5432", "a.com:5432"),
            ("a.com", "a.com:443"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("2001:db8::1", "[2001:db8::1]:443"),
            ("https://[2001:db8::1]/", "GET [2001:db8::1]:443/"),
            ("https://a.com/a%2fb", "GET a.com:443/a%2fb"),
            ("postgres://db.example.com:5432/x", "db.example.com:5432"),
        ] {
            let target = Target::parse(text, "GET").unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(target.to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_destination_is_an_error() {
        for text in [
            "",
            "https://",
            "https:///x",
            "a.com:",
            "a.com:0",
            "a.com:70000",
            "a.com:+1",
            "a.com/x",
            "https://user@a.com/",
            "https://127.1/",
            "ftp://a.com/",
            "https://a.com/<",
            "[::1",
        ] {
            assert!(Target::parse(text, "GET").is_err(), "{text}");
        }
        assert!(Target::parse("a.com", "get").is_err());
    }
}
