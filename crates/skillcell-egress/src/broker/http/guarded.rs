//! The client's side of an HTTP/1 connection behind the strict reader: the parser that serves it
//! sees only bytes that every server reads the same way.

use super::exchange::Exchange;
use crate::http::{Guard, HttpFault};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const BUFFER: usize = 16 << 10;

/// Turned when the server has agreed to another protocol.
#[derive(Clone, Default)]
pub(super) struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(super) fn turn(&self) {
        self.0.store(true, Ordering::Release);
    }
}

pub(super) struct Guarded<S> {
    stream: S,
    guard: Guard,
    switch: Switch,
    switched: bool,
    exchange: Arc<Exchange>,
    /// Checked, and not yet taken.
    passed: Vec<u8>,
    at: usize,
    faulty: bool,
}

impl<S> Guarded<S> {
    pub(super) fn new(stream: S, exchange: Arc<Exchange>) -> (Self, Switch) {
        let switch = Switch::default();
        let guarded = Guarded {
            stream,
            guard: Guard::new(),
            switch: switch.clone(),
            switched: false,
            exchange,
            passed: Vec::new(),
            at: 0,
            faulty: false,
        };
        (guarded, switch)
    }

    fn check(&mut self, bytes: &[u8]) -> Result<(), HttpFault> {
        if !self.switched && self.switch.0.load(Ordering::Acquire) {
            self.switched = true;
            self.guard.upgraded();
        }
        self.guard.feed(bytes, &mut self.passed)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let ready = this.passed.get(this.at..).unwrap_or_default();
            if !ready.is_empty() {
                let taken = ready.len().min(out.remaining());
                out.put_slice(&ready[..taken]);
                this.at += taken;
                return Poll::Ready(Ok(()));
            }
            if this.faulty {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            this.passed.clear();
            this.at = 0;
            let mut space = [0u8; BUFFER];
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut this.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
            if let Err(fault) = this.check(buffer.filled()) {
                // What passed before the fault is whole; the fault itself ends the connection.
                this.exchange.malformed(fault);
                this.faulty = true;
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
