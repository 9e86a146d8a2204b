/// Why a stream of requests is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFault {
    BareCr,
    BareLf,
    TooLong,
    TooManyHeaders,
    RequestLine,
    Target,
    Version,
    HeaderName,
    FoldedHeader,
    HeaderValue,
    NoHost,
    SeveralHosts,
    Host,
    ContentLength,
    SeveralContentLengths,
    LengthAndEncoding,
    TransferEncoding,
    EncodingInHttp10,
    ConnectionHeader,
    Connect,
    ConnectBody,
    ChunkSize,
    ChunkExtension,
    ChunkEnd,
    Trailer,
    TooMuchBeforeTunnel,
    AfterRefusal,
}

impl HttpFault {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BareCr => "a carriage return that does not end a line",
            Self::BareLf => "a line that ends without a carriage return",
            Self::TooLong => "a head or line that is too long",
            Self::TooManyHeaders => "too many headers",
            Self::RequestLine => "a malformed request line",
            Self::Target => "a malformed request target",
            Self::Version => "an HTTP version other than 1.0 and 1.1",
            Self::HeaderName => "a malformed header name, or white space around it",
            Self::FoldedHeader => "a header that goes on in the next line",
            Self::HeaderValue => "control characters in a header",
            Self::NoHost => "no Host header",
            Self::SeveralHosts => "more than one Host header",
            Self::Host => "a malformed Host header",
            Self::ContentLength => "a malformed Content-Length",
            Self::SeveralContentLengths => "more than one Content-Length",
            Self::LengthAndEncoding => "both Content-Length and Transfer-Encoding",
            Self::TransferEncoding => "a Transfer-Encoding other than chunked",
            Self::EncodingInHttp10 => "a Transfer-Encoding in HTTP/1.0",
            Self::ConnectionHeader => {
                "a Connection header that would remove the host or the length"
            }
            Self::Connect => "a CONNECT where no proxy is",
            Self::ConnectBody => "a CONNECT with a body",
            Self::ChunkSize => "a malformed chunk size",
            Self::ChunkExtension => "control characters in a chunk extension",
            Self::ChunkEnd => "a chunk that does not end where it should",
            Self::Trailer => "a trailer that belongs in the head",
            Self::TooMuchBeforeTunnel => "too much data before the tunnel was open",
            Self::AfterRefusal => "a request after one that was refused",
        }
    }
}

impl std::fmt::Display for HttpFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for HttpFault {}
