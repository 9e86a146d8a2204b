//! Moves bytes both ways. What nobody needs to look at goes from socket to socket through a pipe,
//! without passing through this process; only after the first bytes, because most connections are
//! too short to be worth a pipe.

use super::meter::{Direction, Meter, Spent, Traffic};
use super::sieve::{self, Sieve};
use crate::scan::Scanner;
use rustix::fd::AsFd;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags};
use std::io;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

const BUFFER: usize = 16 << 10;
/// Bytes that are copied before a pipe is made.
const BEFORE_PIPE: u64 = 256 << 10;
const PIPE: usize = 256 << 10;

/// Why a relay ended before its time.
#[derive(Debug)]
pub(crate) enum Cut {
    /// One of the two ends broke off.
    Broken,
    Spent(Spent),
    /// A secret was about to leave.
    Leak,
}

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Cut {
        Cut::Broken
    }
}

impl From<rustix::io::Errno> for Cut {
    fn from(_: rustix::io::Errno) -> Cut {
        Cut::Broken
    }
}

/// Both directions until both are done. `first` was read from the client already.
pub(crate) async fn relay(
    meter: &Meter,
    traffic: &Traffic,
    client: &TcpStream,
    server: &TcpStream,
    first: &[u8],
    scanner: Option<Scanner>,
) -> Result<(), Cut> {
    let out = async {
        let mut sieve = Sieve::new(scanner);
        let ready = sieve.push(first).map_err(|_| Cut::Leak)?;
        send(meter, traffic, Direction::Out, server, &ready).await?;
        outwards(meter, traffic, client, server, sieve).await
    };
    let into = pump(meter, traffic, Direction::In, server, client);
    tokio::try_join!(out, into).map(|_| ())
}

/// One direction to its end, which is passed on.
pub(crate) async fn pump(
    meter: &Meter,
    traffic: &Traffic,
    way: Direction,
    from: &TcpStream,
    to: &TcpStream,
) -> Result<(), Cut> {
    let mut buffer = vec![0; BUFFER];
    let mut copied = 0;
    while copied < BEFORE_PIPE {
        tokio::task::coop::consume_budget().await;
        match read(from, &mut buffer).await? {
            0 => return finish(to),
            n => {
                send(meter, traffic, way, to, &buffer[..n]).await?;
                copied += n as u64;
            }
        }
    }
    drop(buffer);
    spliced(meter, traffic, way, from, to).await
}

pub(super) async fn read(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

/// Counts before it sends: what a budget forbids is not sent.
pub(super) async fn send(
    meter: &Meter,
    traffic: &Traffic,
    way: Direction,
    to: &TcpStream,
    mut bytes: &[u8],
) -> Result<(), Cut> {
    if bytes.is_empty() {
        return Ok(());
    }
    meter
        .moved(way, bytes.len() as u64, traffic)
        .map_err(Cut::Spent)?;
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn spliced(
    meter: &Meter,
    traffic: &Traffic,
    way: Direction,
    from: &TcpStream,
    to: &TcpStream,
) -> Result<(), Cut> {
    let (pipe_out, pipe_in) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // A larger pipe means fewer turns; a user who has used up the pages for it gets the usual one.
    let size = rustix::pipe::fcntl_setpipe_size(&pipe_in, PIPE).unwrap_or(64 << 10);
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    loop {
        // A stream that is never empty must not keep the others waiting.
        tokio::task::coop::consume_budget().await;
        // One byte over the budget is enough to know that it is passed.
        let room = meter.room(way).saturating_add(1).min(size as u64) as usize;
        let mut held = step(from, Interest::READABLE, || {
            rustix::pipe::splice(from.as_fd(), None, &pipe_in, None, room, flags)
        })
        .await?;
        if held == 0 {
            return finish(to);
        }
        meter.moved(way, held as u64, traffic).map_err(Cut::Spent)?;
        while held > 0 {
            held -= step(to, Interest::WRITABLE, || {
                rustix::pipe::splice(&pipe_out, None, to.as_fd(), None, held, flags)
            })
            .await?;
        }
    }
}

async fn step(
    socket: &TcpStream,
    interest: Interest,
    mut splice: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    loop {
        socket.ready(interest).await?;
        match socket.try_io(interest, || splice().map_err(io::Error::from)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

/// Towards the server to the end, with a look at every byte where there is something to look for.
pub(super) async fn outwards(
    meter: &Meter,
    traffic: &Traffic,
    client: &TcpStream,
    server: &TcpStream,
    mut sieve: Sieve,
) -> Result<(), Cut> {
    if !sieve.looks() {
        return pump(meter, traffic, Direction::Out, client, server).await;
    }
    let mut chunk = vec![0; BUFFER];
    loop {
        let length = next(meter, traffic, client, server, &mut sieve, &mut chunk).await?;
        if length == 0 {
            send(meter, traffic, Direction::Out, server, &sieve.finish()).await?;
            return finish(server);
        }
        let ready = sieve.push(&chunk[..length]).map_err(|_| Cut::Leak)?;
        send(meter, traffic, Direction::Out, server, &ready).await?;
    }
}

/// What the client says next. What has waited in the sieve for long enough goes on meanwhile.
pub(super) async fn next(
    meter: &Meter,
    traffic: &Traffic,
    client: &TcpStream,
    server: &TcpStream,
    sieve: &mut Sieve,
    chunk: &mut [u8],
) -> Result<usize, Cut> {
    if sieve.waits() {
        match timeout(sieve::IDLE, read(client, chunk)).await {
            Ok(length) => return Ok(length?),
            Err(_) => send(meter, traffic, Direction::Out, server, &sieve.idle()).await?,
        }
    }
    Ok(read(client, chunk).await?)
}

fn finish(to: &TcpStream) -> Result<(), Cut> {
    match rustix::net::shutdown(to, Shutdown::Write) {
        // The other side was faster.
        Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
