//! The daemon.

mod notify;
mod worker;

use crate::args_serve::{ServeArgs, ServeCommand, TokenArgs};
use crate::output;
use rustix::fd::{AsFd, BorrowedFd};
use skillcell_core::Status;
use skillcell_server::{
    ColdEngine, Ends, Engine, PlaceError, Settings, SocketError, TcpError, TcpListen, TlsFiles,
    TokenError, Tokens, UnixListen, WarmEngine, Workers, default_socket,
};
use skillcell_supervisor::{FirstCall, Pool, PoolTerms};
use std::process::ExitCode;
use std::sync::Arc;

/// What keeps a daemon from beginning.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Tcp(#[from] TcpError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("{0}: there is no token in it, so nobody could call")]
    NoTokens(std::path::PathBuf),
    #[error("the daemon can't begin: {0}")]
    Begin(std::io::Error),
    #[error("the daemon can't go on: {0}")]
    Run(std::io::Error),
}

pub(crate) fn serve(args: ServeArgs) -> ExitCode {
    let done = match args.command {
        Some(ServeCommand::Worker) => return worker::work(),
        Some(ServeCommand::Token(args)) => token(&args),
        None => daemon(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error_line(&error.to_string(), error.hint());
            ExitCode::from(error.status().exit_code())
        }
    }
}

fn token(args: &TokenArgs) -> Result<(), ServeError> {
    let token = skillcell_server::make_token(&args.token_file, &args.name)?;
    output::line(&token);
    Ok(())
}

fn daemon(args: &ServeArgs) -> Result<(), ServeError> {
    raise_descriptors();
    // Before any thread is started, so that all have these signals blocked.
    let signals = skillcell_linux::termination_signals()
        .map_err(|e| ServeError::Begin(std::io::Error::other(e)))?;
    let tcp = args.listen.map(|address| tcp(args, address)).transpose()?;
    let path = args.socket.clone().unwrap_or_else(default_socket);
    let unix = UnixListen::bind(&path, args.allow_uid.iter().copied().collect())?;
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let running = args.max_running.map_or((2 * cpus).max(4), usize::from);
    let workers =
        Workers::new(running, args.max_waiting.into()).map_err(|e| ServeError::Begin(e.into()))?;
    let workers = Arc::new(workers);
    let mut said = vec![format!("listening on unix:{}", path.display())];
    if let Some(tcp) = &tcp {
        let address = tcp.address().map_err(ServeError::Begin)?;
        said.push(format!("listening on {}://{address}", tcp.scheme()));
    }
    said.push("ready".to_owned());
    let settings = Settings {
        unix: Some(unix),
        tcp,
        engine: engine(args, &workers)?,
        workers,
        drain_timeout: args.drain_timeout.duration(),
        max_connections: args.max_connections.into(),
        max_body: args.max_body.bytes(),
    };
    for line in said {
        output::line(&output::printable(&line));
    }
    notify::say("READY=1");
    let stdin = std::io::stdin();
    let ends = Ends {
        signals: signals.as_fd(),
        parent: args
            .stop_with_stdin
            .then(|| -> BorrowedFd<'_> { stdin.as_fd() }),
    };
    let done = skillcell_server::serve(settings, &ends).map_err(ServeError::Run);
    notify::say("STOPPING=1");
    done
}

/// Each waiting cell takes a dozen. Where more can't be had, fewer cells wait.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, raised).unwrap_or(());
}

/// Cells wait for calls, unless nobody wants them to.
fn engine(args: &ServeArgs, workers: &Arc<Workers>) -> Result<Arc<dyn Engine>, ServeError> {
    let cold = ColdEngine::new(Arc::clone(workers));
    if args.max_templates == 0 {
        return Ok(Arc::new(cold));
    }
    let terms = PoolTerms {
        templates: args.max_templates.into(),
        waiting: args.max_ahead.get().into(),
        image_bytes: args.max_image_memory.bytes(),
        first_call: match args.load_first {
            true => FirstCall::Waits,
            false => FirstCall::Cold,
        },
        ..PoolTerms::default()
    };
    let pool = Pool::new(terms, skillcell_linux::probe::quick()).map_err(ServeError::Begin)?;
    Ok(Arc::new(WarmEngine::new(pool, cold)))
}

fn tcp(args: &ServeArgs, address: std::net::SocketAddr) -> Result<TcpListen, ServeError> {
    // clap sees to it that they are there together.
    let file = args.token_file.clone().unwrap_or_default();
    let tokens = Tokens::read(&file)?;
    if tokens.is_empty() {
        return Err(ServeError::NoTokens(file));
    }
    let files = args.tls_cert.clone().zip(args.tls_key.clone());
    let files = files.map(|(cert, key)| TlsFiles { cert, key });
    Ok(TcpListen::bind(address, tokens, files.as_ref())?)
}

impl ServeError {
    fn status(&self) -> Status {
        match self {
            ServeError::Token(TokenError::Random(_)) => Status::Refused,
            ServeError::Token(_)
            | ServeError::NoTokens(_)
            | ServeError::Tcp(TcpError::PlainAbroad(_) | TcpError::Tls(_)) => Status::InvalidInput,
            ServeError::Socket(_) | ServeError::Tcp(_) | ServeError::Begin(_) => Status::Refused,
            ServeError::Run(_) => Status::InternalError,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            ServeError::Socket(SocketError::Taken { .. }) => {
                Some("use that one, end it first, or name another place with --socket")
            }
            ServeError::Socket(SocketError::Place(
                PlaceError::Owner { .. } | PlaceError::Writable { .. },
            )) => Some("name a socket in a folder that only you can write to: --socket PATH"),
            ServeError::Socket(SocketError::Place(PlaceError::Folder { .. })) => {
                Some("make its folder, or name another place with --socket PATH")
            }
            ServeError::Tcp(TcpError::PlainAbroad(_)) => {
                Some("add --tls-cert and --tls-key, or listen on 127.0.0.1")
            }
            ServeError::NoTokens(_) => {
                Some("make one: `skillcell serve token NAME --token-file FILE`")
            }
            ServeError::Token(TokenError::Writable { .. }) => Some("chmod 600 it"),
            _ => None,
        }
    }
}
