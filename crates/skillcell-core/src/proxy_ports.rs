/// Where a client that is configured for an HTTP proxy finds one on a cell's loopback.
pub const HTTP_PROXY_PORT: u16 = 3128;
/// The same for SOCKS5.
pub const SOCKS_PORT: u16 = 1080;
