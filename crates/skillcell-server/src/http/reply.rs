use crate::api::{ApiCode, ApiError};
use std::borrow::Cow;
use std::io::Write;

pub(crate) const JSON: &str = "application/json";

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    kind: &'static str,
    body: Cow<'static, [u8]>,
    /// Further header lines, each with its end.
    extra: String,
}

impl Reply {
    pub(crate) fn json(body: impl Into<Cow<'static, [u8]>>) -> Reply {
        Reply {
            status: 200,
            kind: JSON,
            body: body.into(),
            extra: String::new(),
        }
    }

    pub(crate) fn text(kind: &'static str, body: String) -> Reply {
        Reply {
            kind,
            ..Reply::json(body.into_bytes())
        }
    }

    pub(crate) fn error(error: &ApiError) -> Reply {
        let body = serde_json::json!({ "error": error }).to_string();
        let extra = match error.code {
            ApiCode::Busy | ApiCode::Draining => "Retry-After: 1\r\n".to_owned(),
            ApiCode::Unauthorized => "WWW-Authenticate: Bearer\r\n".to_owned(),
            _ => String::new(),
        };
        Reply {
            status: error.code.http(),
            extra,
            ..Reply::json(body.into_bytes())
        }
    }

    pub(crate) fn not_allowed(allowed: &'static str) -> Reply {
        let error = ApiError::new(
            ApiCode::MethodNotAllowed,
            format!("this path takes {allowed} only"),
        );
        Reply {
            extra: format!("Allow: {allowed}\r\n"),
            ..Reply::error(&error)
        }
    }

    pub(crate) fn without_body(self) -> Reply {
        Reply {
            body: Cow::Borrowed(&[]),
            ..self
        }
    }

    /// As it goes over the wire, in one piece.
    pub(crate) fn bytes(&self, keep_alive: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.body.len());
        let connection = if keep_alive {
            ""
        } else {
            "Connection: close\r\n"
        };
        // Writing to a Vec can't fail.
        write!(
            out,
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{connection}{}\r\n",
            self.status,
            phrase(self.status),
            self.kind,
            self.body.len(),
            self.extra,
        )
        .unwrap_or_default();
        out.extend_from_slice(&self.body);
        out
    }
}

/// The head of an answer that comes in pieces.
pub(crate) fn stream_head(kind: &str, keep_alive: bool) -> Vec<u8> {
    let connection = if keep_alive {
        ""
    } else {
        "Connection: close\r\n"
    };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n{connection}\r\n"
    )
    .into_bytes()
}

pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

pub(crate) fn chunk_end() -> &'static [u8] {
    b"0\r\n\r\n"
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
