//! Where the daemon is reached, and by whom.

mod place;
mod tcp;
mod tls;
mod unix;

pub use place::{PlaceError, default_socket};
pub use tcp::{TcpError, TcpListen};
pub use tls::{TlsError, TlsFiles};
pub use unix::{SocketError, UnixListen};
