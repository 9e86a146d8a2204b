//! HTTP/1.1 as far as this daemon needs it, on blocking threads.
//!
//! A connection has a thread, and a call runs on it: nothing is handed over between the request and
//! its answer, which is most of what a warm call would wait for. Heads are read by `httparse`; what
//! two readers could read in two ways is refused.

mod connection;
mod head;
mod reply;
mod stream;

pub(crate) use connection::{Connection, Deadlines, Next};
pub(crate) use head::{Accept, Head};
pub(crate) use reply::{Reply, chunk, chunk_end, stream_head};
pub(crate) use stream::Stream;
