//! A request's body on its way out, looked at for secrets as it streams. What may be the beginning
//! of one waits until it is clear that it isn't.

use super::exchange::Exchange;
use crate::scan::{Scanner, Verdict};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("a secret was on its way to a host that it isn't bound to")]
struct Leaked;

pub(super) struct Outgoing {
    body: Incoming,
    /// `None`: there is nothing to look for.
    scanner: Option<Scanner>,
    held: BytesMut,
    trailers: Option<Frame<Bytes>>,
    exchange: Arc<Exchange>,
    done: bool,
}

impl Outgoing {
    pub(super) fn new(body: Incoming, exchange: Arc<Exchange>) -> Self {
        Outgoing {
            scanner: exchange.call.secrets.scanner(),
            body,
            held: BytesMut::new(),
            trailers: None,
            exchange,
            done: false,
        }
    }

    fn leaked(&mut self) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.done = true;
        self.exchange.leaked();
        Poll::Ready(Some(Err(Leaked.into())))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            if this.done {
                return Poll::Ready(None);
            }
            if let Some(trailers) = this.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            let frame = match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => {
                    this.done = true;
                    return if this.held.is_empty() {
                        Poll::Ready(None)
                    } else {
                        // A beginning that never became a secret.
                        Poll::Ready(Some(Ok(Frame::data(this.held.split().freeze()))))
                    };
                }
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            let Some(scanner) = &mut this.scanner else {
                return Poll::Ready(Some(Ok(frame)));
            };
            match frame.into_data() {
                Ok(data) => {
                    this.held.extend_from_slice(&data);
                    match scanner.scan(&data) {
                        Verdict::Hit => return this.leaked(),
                        Verdict::Clean { safe: 0 } => {}
                        Verdict::Clean { safe } => {
                            let safe = safe.min(this.held.len());
                            let ready = this.held.split_to(safe).freeze();
                            return Poll::Ready(Some(Ok(Frame::data(ready))));
                        }
                    }
                }
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else {
                        continue;
                    };
                    let exchange = Arc::clone(&this.exchange);
                    // Trailers are no place that a secret can be bound to.
                    if exchange.call.secrets.foreign(&trailers).is_err() {
                        return this.leaked();
                    }
                    this.trailers = Some(Frame::trailers(trailers));
                    if !this.held.is_empty() {
                        let rest = this.held.split().freeze();
                        return Poll::Ready(Some(Ok(Frame::data(rest))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.done || (self.body.is_end_stream() && self.held.is_empty() && self.trailers.is_none())
    }

    fn size_hint(&self) -> SizeHint {
        // Nothing is added and nothing is taken away.
        let held = self.held.len() as u64;
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + held);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}
