//! The servers that are measured against. They run on threads of this process, in the world.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context as _, Result};

use super::network::{Network, SERVER};

/// Gives each byte back.
pub(super) const ECHO: u16 = 7000;
/// Reads how many bytes are wanted, as 64 bits, and sends them.
pub(super) const RAW: u16 = 7001;
/// Waits for the benchmark.
pub(super) const CHECKPOINT: u16 = 7002;
/// Answers `GET /N` with N bytes.
pub(super) const HTTP: u16 = 80;

/// Connections to the checkpoint. Who connects waits until it is answered.
pub(super) struct Servers {
    pub(super) checkpoints: Receiver<TcpStream>,
}

impl Servers {
    /// They end with this process.
    pub(super) fn start(network: &Network) -> Result<Self> {
        let listen = |port: u16| {
            network.in_world(|| {
                TcpListener::bind((SERVER, port))
                    .with_context(|| format!("could not listen on port {port}"))
            })
        };
        let echoes = listen(ECHO)?;
        // One that still waits for the end of a connection must not hold up the next.
        for _ in 0..4 {
            let listener = echoes.try_clone()?;
            std::thread::spawn(move || serve(&listener, echo));
        }
        for (port, answer) in [(RAW, raw as Answer), (HTTP, http)] {
            let listener = listen(port)?;
            std::thread::spawn(move || serve(&listener, answer));
        }
        let listener = listen(CHECKPOINT)?;
        let (sender, checkpoints) = channel();
        std::thread::spawn(move || hand_over(&listener, &sender));
        Ok(Self { checkpoints })
    }
}

type Answer = fn(TcpStream) -> io::Result<()>;

fn serve(listener: &TcpListener, answer: Answer) {
    for stream in listener.incoming().flatten() {
        // A client that breaks off fails its own measurement.
        answer(stream).unwrap_or(());
    }
}

fn hand_over(listener: &TcpListener, to: &Sender<TcpStream>) {
    for stream in listener.incoming().flatten() {
        if to.send(stream).is_err() {
            return;
        }
    }
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut byte = [0];
    while stream.read(&mut byte)? > 0 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

fn raw(mut stream: TcpStream) -> io::Result<()> {
    let mut wanted = [0; 8];
    stream.read_exact(&mut wanted)?;
    send(&mut stream, u64::from_be_bytes(wanted))
}

fn http(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut more = [0; 1024];
        match stream.read(&mut more)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&more[..length]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let wanted: u64 = path
        .trim_start_matches('/')
        .parse()
        .map_err(io::Error::other)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {wanted}\r\nConnection: close\r\n\r\n"
    )?;
    send(&mut stream, wanted)
}

fn send(stream: &mut TcpStream, mut wanted: u64) -> io::Result<()> {
    let buffer = vec![0x5a; 256 << 10];
    while wanted > 0 {
        let length = wanted.min(buffer.len() as u64) as usize;
        stream.write_all(&buffer[..length])?;
        wanted -= length as u64;
    }
    Ok(())
}
