//! What a server says that was told a secret, with placeholders in the places of secrets: whoever
//! repeats what he was told must not tell the skill.

use super::super::secrets::hide;
use super::body::BoxError;
use super::exchange::Exchange;
use crate::scan::Hider;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

#[derive(Debug, thiserror::Error)]
#[error("the answer holds a secret that can't be taken out of it")]
struct Unhidden;

/// An answer's body, from a server that was told a secret.
pub(super) struct Returned {
    body: Incoming,
    hider: Hider,
    trailers: Option<Frame<Bytes>>,
    exchange: Arc<Exchange>,
    done: bool,
}

impl Returned {
    pub(super) fn new(body: Incoming, hider: Hider, exchange: Arc<Exchange>) -> Self {
        Returned {
            body,
            hider,
            trailers: None,
            exchange,
            done: false,
        }
    }

    fn unhidden(&mut self) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.done = true;
        self.exchange.leaked();
        Poll::Ready(Some(Err(Unhidden.into())))
    }
}

impl Body for Returned {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            if let Some(trailers) = this.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            if this.done {
                return Poll::Ready(None);
            }
            let ready = match std::task::ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => {
                    this.done = true;
                    this.hider.finish()
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.hider.push(&data),
                    Err(frame) => {
                        let Ok(mut trailers) = frame.into_trailers() else {
                            continue;
                        };
                        if hide(&this.hider, &mut trailers).is_err() {
                            return this.unhidden();
                        }
                        this.done = true;
                        this.trailers = Some(Frame::trailers(trailers));
                        this.hider.finish()
                    }
                },
            };
            match ready {
                Ok(ready) if ready.is_empty() => {}
                Ok(ready) => return Poll::Ready(Some(Ok(Frame::data(ready.into())))),
                Err(_) => return this.unhidden(),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.done && self.trailers.is_none()
    }
}
