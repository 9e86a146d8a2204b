//! The command line of `serve`.

use clap::{Args, Subcommand, ValueHint};
use skillcell_core::{ByteSize, Timeout};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

const SERVE_EXAMPLES: &str = "\
Examples:
  skillcell serve
  skillcell serve --socket /run/skillcell/daemon.sock --allow-uid 1000
  skillcell serve --listen 127.0.0.1:8420 --token-file tokens
  skillcell serve --listen 0.0.0.0:8420 --token-file tokens --tls-cert cert.pem --tls-key key.pem

SIGTERM and SIGINT drain it: calls that run may end, and nothing new begins. A second one ends them.
Exit code 0 after that, 2 for a bad command line or file, 5 when it can't listen.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,

    /// The unix socket; by default SKILLCELL_SOCKET, else a folder of this user's
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,

    /// Let this user call too, with what guests may say (may be given several times)
    #[arg(long, value_name = "UID")]
    pub(crate) allow_uid: Vec<u32>,

    /// Serve over TCP too, for who has a token
    #[arg(long, value_name = "ADDR:PORT", requires = "token_file")]
    pub(crate) listen: Option<SocketAddr>,

    /// Hashes of the tokens that count over TCP
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// The certificate for TLS, as PEM; needed where the address is not loopback
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "listen"], value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Its key
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,

    /// Calls that run at once; by default two for each CPU, and four at least
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_running: Option<u16>,

    /// Calls that may wait for a place; half of them at most for one skill
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) max_waiting: u16,

    /// Skills that are kept loaded, so that their calls don't wait for it; 0 keeps none
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) max_templates: u16,

    /// Let the first call of a skill wait until it is loaded, instead of making it cold meanwhile
    #[arg(long)]
    pub(crate) load_first: bool,

    /// Cells that wait for calls, at most, for each of them
    #[arg(long, value_name = "N", default_value = "16")]
    pub(crate) max_ahead: NonZeroU16,

    /// Memory that loaded skills may take all together
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub(crate) max_image_memory: ByteSize,

    /// Connections that may be open at once: this many of owners, and as many of others
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_connections: u16,

    /// The longest request that is read
    #[arg(long, value_name = "SIZE", default_value = "72MiB")]
    pub(crate) max_body: ByteSize,

    /// How long calls may go on once the daemon is to end
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) drain_timeout: Timeout,

    /// Drain when standard input ends, so that the daemon doesn't outlive who started it
    #[arg(long)]
    pub(crate) stop_with_stdin: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Make a token, print it once, and add its hash to a file
    Token(TokenArgs),
    /// Do what a daemon asks on standard input
    #[command(hide = true)]
    Worker,
}

const TOKEN_EXAMPLES: &str = "\
Examples:
  skillcell serve token ci --token-file tokens

Take its line out of the file, and the token no longer counts, at once.";

#[derive(Debug, Args)]
#[command(after_help = TOKEN_EXAMPLES)]
pub(crate) struct TokenArgs {
    /// Who it is for; calls with it have `token NAME` as their actor
    pub(crate) name: String,

    /// Where the hashes are
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: PathBuf,
}
