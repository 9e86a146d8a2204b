//! The head of a request, judged strictly.

use crate::api::{ApiCode, ApiError};

const MOST_HEADERS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: bool,
    pub(crate) length: u64,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
    pub(crate) json: bool,
    pub(crate) accept: Accept,
    pub(crate) bearer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    Json,
    Lines,
    Events,
}

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(ApiCode::BadRequest, message)
}

impl Head {
    /// The head and its length in bytes; `None` while there isn't all of it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, ApiError> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let size = match request.parse(bytes) {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(ApiError::new(
                    ApiCode::HeadersTooLarge,
                    format!("more than {MOST_HEADERS} header fields"),
                ));
            }
            Err(httparse::Error::Version) => {
                return Err(ApiError::new(
                    ApiCode::VersionNotSupported,
                    "this is not HTTP/1.1",
                ));
            }
            Err(error) => return Err(bad(format!("the request's head is no HTTP: {error}"))),
        };
        if request.version != Some(1) {
            return Err(ApiError::new(
                ApiCode::VersionNotSupported,
                "HTTP/1.0 is not spoken here",
            ));
        }
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut head = Head {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: !query.is_empty(),
            length: 0,
            keep_alive: true,
            expects_continue: false,
            json: false,
            accept: Accept::Json,
            bearer: None,
        };
        head.fields(request.headers)?;
        Ok(Some((head, size)))
    }

    fn fields(&mut self, headers: &[httparse::Header<'_>]) -> Result<(), ApiError> {
        let (mut hosts, mut lengths, mut types, mut tokens) = (0, 0, 0, 0);
        for header in headers {
            let name = header.name;
            let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
            let value = || {
                std::str::from_utf8(header.value)
                    .map(str::trim)
                    .map_err(|_| bad(format!("the header field {name} is no text")))
            };
            if is("content-length") {
                lengths += 1;
                self.length = length(value()?)?;
            } else if is("transfer-encoding") {
                return Err(ApiError::new(
                    ApiCode::LengthRequired,
                    "Transfer-Encoding is not read here; send Content-Length",
                ));
            } else if is("host") {
                hosts += 1;
            } else if is("connection") {
                let value = value()?;
                if value
                    .split(',')
                    .any(|w| w.trim().eq_ignore_ascii_case("close"))
                {
                    self.keep_alive = false;
                }
            } else if is("content-type") {
                types += 1;
                let kind = value()?.split(';').next().unwrap_or_default();
                self.json = kind.trim().eq_ignore_ascii_case("application/json");
            } else if is("accept") {
                self.accept = accept(value()?);
            } else if is("authorization") {
                tokens += 1;
                self.bearer = bearer(value()?);
            } else if is("expect") {
                if !value()?.eq_ignore_ascii_case("100-continue") {
                    return Err(bad("Expect takes 100-continue only"));
                }
                self.expects_continue = true;
            }
        }
        if hosts != 1 {
            return Err(bad("a request has one Host field"));
        }
        if lengths > 1 || types > 1 || tokens > 1 {
            return Err(bad(
                "Content-Length, Content-Type and Authorization stand once at most",
            ));
        }
        Ok(())
    }
}

fn length(text: &str) -> Result<u64, ApiError> {
    // `parse` would take a sign.
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad("Content-Length is no number"));
    }
    text.parse()
        .map_err(|_| bad("Content-Length is no number of bytes"))
}

fn bearer(value: &str) -> Option<String> {
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim().to_owned())
}

/// What a client names is what it gets, by the first kind that is known.
fn accept(value: &str) -> Accept {
    for part in value.split(',') {
        match part.split(';').next().unwrap_or_default().trim() {
            "application/x-ndjson" => return Accept::Lines,
            "text/event-stream" => return Accept::Events,
            "application/json" => return Accept::Json,
            _ => {}
        }
    }
    Accept::Json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<(Head, usize)>, ApiCode> {
        Head::parse(text.as_bytes()).map_err(|e| e.code)
    }

    #[test]
    fn a_head_is_read() {
        let text = "POST /v1/run HTTP/1.1\r\nHost: x\r\ncontent-type: application/json; charset=utf-8\r\nContent-Length: 12\r\nAccept: text/html, application/x-ndjson\r\nAuthorization: bearer abc\r\n\r\n{}";
        let (head, size) = parse(text).unwrap().unwrap();
        assert_eq!(size, text.len() - 2);
        assert_eq!(
            (head.method.as_str(), head.path.as_str()),
            ("POST", "/v1/run")
        );
        assert_eq!((head.length, head.json, head.keep_alive), (12, true, true));
        assert_eq!(
            (head.accept, head.bearer.as_deref()),
            (Accept::Lines, Some("abc"))
        );
        assert_eq!(parse(&text[..40]), Ok(None));
    }

    #[test]
    fn what_two_readers_could_read_in_two_ways_is_refused() {
        for (fields, code) in [
            (
                "Content-Length: 1\r\nContent-Length: 2\r\n",
                ApiCode::BadRequest,
            ),
            (
                "Content-Length: 1\r\nContent-Length: 1\r\n",
                ApiCode::BadRequest,
            ),
            ("Content-Length: +1\r\n", ApiCode::BadRequest),
            ("Content-Length: 1, 1\r\n", ApiCode::BadRequest),
            (
                "Content-Length: 99999999999999999999\r\n",
                ApiCode::BadRequest,
            ),
            ("Transfer-Encoding: chunked\r\n", ApiCode::LengthRequired),
            (
                "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                ApiCode::LengthRequired,
            ),
            ("Host: y\r\n", ApiCode::BadRequest),
            (" folded: x\r\n", ApiCode::BadRequest),
            ("a b: x\r\n", ApiCode::BadRequest),
            ("Content-Length : 1\r\n", ApiCode::BadRequest),
            ("Expect: tea\r\n", ApiCode::BadRequest),
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
            assert_eq!(parse(&text), Err(code), "{fields}");
        }
        assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Err(ApiCode::BadRequest));
        assert_eq!(
            parse("GET / HTTP/1.0\r\nHost: x\r\n\r\n"),
            Err(ApiCode::VersionNotSupported)
        );
        let many = "a: b\r\n".repeat(MOST_HEADERS + 1);
        assert_eq!(
            parse(&format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n")),
            Err(ApiCode::HeadersTooLarge)
        );
    }
}
