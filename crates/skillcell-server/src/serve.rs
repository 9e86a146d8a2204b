//! The life of a daemon: it listens, answers on a thread per connection, and drains.

use crate::api::{ApiCode, ApiError};
use crate::auth::Tokens;
use crate::caller::Caller;
use crate::cancel::{Cancel, EndAll};
use crate::cold::Workers;
use crate::engine::Engine;
use crate::http::{Connection, Deadlines, Head, Next, Reply, Stream};
use crate::listen::{TcpListen, UnixListen};
use crate::metrics::Metrics;
use crate::routes::{After, answer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a client may take for one request, from its first byte to its last.
const REQUEST: Duration = Duration::from_secs(30);
/// How long a connection over TCP may say nothing. Those on the unix socket are of this host.
const IDLE: Duration = Duration::from_secs(120);
/// How long calls that are ended may take to clear up.
const LAST_GRACE: Duration = Duration::from_secs(15);

pub struct Settings {
    pub unix: Option<UnixListen>,
    pub tcp: Option<TcpListen>,
    pub engine: Arc<dyn Engine>,
    /// For what is asked beside calls.
    pub workers: Arc<Workers>,
    /// How long calls may go on once the daemon is to end.
    pub drain_timeout: Duration,
    pub max_connections: usize,
    pub max_body: u64,
}

/// What the connections share.
pub(crate) struct Daemon {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) metrics: Metrics,
    pub(crate) drain: EndAll,
    end: EndAll,
    pub(crate) max_body: u64,
    /// Connections of owners, and of everybody else: who is let in can't keep the owner out.
    open: [AtomicUsize; 2],
    max_connections: usize,
}

impl Daemon {
    fn connections(&self) -> usize {
        self.open.iter().map(|n| n.load(Ordering::Acquire)).sum()
    }
}

/// What ends a daemon in order.
pub struct Ends<'a> {
    /// Readable when it is to drain, and again when it is to end at once.
    pub signals: BorrowedFd<'a>,
    /// Whose end of file drains it too.
    pub parent: Option<BorrowedFd<'a>>,
}

/// Who is at the other end of a connection.
enum Peer {
    Known(Caller),
    Stranger,
    Bearer(Arc<Tokens>),
}

/// Serves until it is told to end, and all calls have ended.
pub fn serve(settings: Settings, ends: &Ends<'_>) -> io::Result<()> {
    let daemon = Arc::new(Daemon {
        engine: settings.engine,
        workers: settings.workers,
        metrics: Metrics::default(),
        drain: EndAll::new()?,
        end: EndAll::new()?,
        max_body: settings.max_body,
        open: Default::default(),
        max_connections: settings.max_connections,
    });
    listen(&daemon, settings.unix.as_ref(), settings.tcp.as_ref(), ends)?;
    daemon.drain.now()?;
    // Nobody gets in any more; what is at work goes on.
    let unbound = settings.unix.map_or(Ok(()), UnixListen::close);
    drop(settings.tcp);
    daemon.engine.drain();
    let in_time = emptied(&daemon, settings.drain_timeout, Some(ends.signals))?;
    if !in_time {
        daemon.end.now()?;
        emptied(&daemon, LAST_GRACE, None)?;
    }
    unbound
}

fn listen(
    daemon: &Arc<Daemon>,
    unix: Option<&UnixListen>,
    tcp: Option<&TcpListen>,
    ends: &Ends<'_>,
) -> io::Result<()> {
    loop {
        let mut fds = vec![PollFd::from_borrowed_fd(ends.signals, PollFlags::IN)];
        // A missing one is asked for as the first, so that places stay.
        fds.push(PollFd::from_borrowed_fd(
            ends.parent.unwrap_or(ends.signals),
            PollFlags::IN,
        ));
        fds.extend(unix.map(|l| PollFd::from_borrowed_fd(l.as_fd(), PollFlags::IN)));
        fds.extend(tcp.map(|l| PollFd::from_borrowed_fd(l.as_fd(), PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if ready[0] || (ready[1] && ends.parent.is_none_or(at_end)) {
            take(ends.signals);
            return Ok(());
        }
        if unix.is_some() && ready[2] {
            accept(daemon, || {
                let (stream, caller) = unix.ok_or(io::ErrorKind::NotFound)?.accept()?;
                let peer = caller.map_or(Peer::Stranger, Peer::Known);
                Ok((Stream::Unix(stream), peer))
            });
        }
        if tcp.is_some()
            && ready.last() == Some(&true)
            && ready.len() > 2 + usize::from(unix.is_some())
        {
            accept(daemon, || {
                let tcp = tcp.ok_or(io::ErrorKind::NotFound)?;
                Ok((tcp.accept()?, Peer::Bearer(Arc::clone(&tcp.tokens))))
            });
        }
    }
}

/// Takes one signal away, so that the next one is seen as another.
fn take(signals: BorrowedFd<'_>) {
    let mut info = [0u8; 128];
    rustix::io::read(signals, &mut info)
        .map(|_| ())
        .unwrap_or(());
}

/// Whether whoever started the daemon has gone. Anything that it says is passed over.
fn at_end(parent: BorrowedFd<'_>) -> bool {
    let mut bytes = [0u8; 256];
    !matches!(
        rustix::io::read(parent, &mut bytes),
        Ok(1..) | Err(Errno::INTR | Errno::AGAIN)
    )
}

fn accept(daemon: &Arc<Daemon>, next: impl Fn() -> io::Result<(Stream, Peer)>) {
    let (stream, peer) = match next() {
        Ok(both) => both,
        Err(error) => {
            // Out of descriptors or memory: without a pause this would spin until it isn't.
            if !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted
            ) {
                std::thread::sleep(Duration::from_millis(20));
            }
            return;
        }
    };
    let open = Open::new(daemon, &peer);
    if daemon.open[open.1].load(Ordering::Relaxed) > daemon.max_connections {
        refuse(stream);
        return;
    }
    // A thread that can't be had drops the connection, which the client sees.
    std::thread::Builder::new()
        .name("connection".to_owned())
        .spawn(move || converse(&open.0, stream, &peer))
        .map(|_| ())
        .unwrap_or(());
}

/// Too many connections: says so without waiting for anything.
fn refuse(mut stream: Stream) {
    let error = ApiError::new(
        ApiCode::Busy,
        "the daemon has as many connections as it takes",
    )
    .hint("ask again, or raise --max-connections of `skillcell serve`");
    if !matches!(stream, Stream::Tls(_)) {
        stream
            .write(&Reply::error(&error).bytes(false))
            .map(|_| ())
            .unwrap_or(());
    }
}

/// Counts a connection until its end, whatever that is.
struct Open(Arc<Daemon>, usize);

impl Open {
    fn new(daemon: &Arc<Daemon>, peer: &Peer) -> Open {
        let kind = usize::from(!matches!(peer, Peer::Known(Caller::Owner)));
        daemon.open[kind].fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(daemon), kind)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open[self.1].fetch_sub(1, Ordering::Release);
    }
}

/// A connection, to its end. An error of the connection is its end.
fn converse(daemon: &Daemon, stream: Stream, peer: &Peer) {
    let _counted = daemon.metrics.connection();
    let Ok(cancel) = Cancel::new(Some(stream.fd()), &daemon.end) else {
        return;
    };
    let deadlines = Deadlines {
        idle: match peer {
            Peer::Bearer(_) => Some(IDLE),
            _ => None,
        },
        request: REQUEST,
    };
    let mut connection = Connection::new(stream, deadlines);
    loop {
        match connection.next(daemon.drain.as_fd()) {
            Ok(Next::Request(head)) => {
                let caller = who(peer, &head);
                let caller = caller.as_ref().map_err(Clone::clone);
                match answer(daemon, &mut connection, caller, &cancel, &head) {
                    Ok(After::Next) => {}
                    Ok(After::Close) => return connection.close(),
                    Err(_) => return,
                }
            }
            Ok(Next::Bad(error)) => {
                daemon.metrics.request("other", error.code.http());
                if connection.send(&Reply::error(&error).bytes(false)).is_ok() {
                    connection.close();
                }
                return;
            }
            Ok(Next::End) | Err(_) => return,
        }
    }
}

fn who(peer: &Peer, head: &Head) -> Result<Caller, ApiError> {
    match peer {
        Peer::Known(caller) => Ok(caller.clone()),
        Peer::Stranger => Err(
            ApiError::new(ApiCode::Forbidden, "this daemon is another user's")
                .hint("its user can let you in: `skillcell serve --allow-uid UID`"),
        ),
        Peer::Bearer(tokens) => {
            let unauthorized = |message| {
                ApiError::new(ApiCode::Unauthorized, message)
                    .hint("send Authorization: Bearer TOKEN; `skillcell serve token` makes one")
            };
            let Some(token) = &head.bearer else {
                return Err(unauthorized("there is no token in the request"));
            };
            match tokens.whose(token) {
                Ok(Some(name)) => Ok(Caller::Guest(format!("token {name}"))),
                // Why the file can't be read is for the operator, not for who knocks.
                Ok(None) | Err(_) => Err(unauthorized("this token is not known here")),
            }
        }
    }
}

/// Waits until all connections have ended. False when they haven't in time, or `hurry` has another
/// signal.
fn emptied(daemon: &Daemon, time: Duration, hurry: Option<BorrowedFd<'_>>) -> io::Result<bool> {
    let end = Instant::now() + time;
    let step = Timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    while daemon.connections() > 0 {
        if Instant::now() >= end {
            return Ok(false);
        }
        let mut fds: Vec<PollFd<'_>> = hurry
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .into_iter()
            .collect();
        match poll(&mut fds, Some(&step)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(true)
}
