//! The command line of `policy`.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

const POLICY_EXAMPLES: &str = "\
Examples:
  skillcell policy test finance/wallet_screening https://api.etherscan.io/v2/api";

#[derive(Debug, Args)]
#[command(after_help = POLICY_EXAMPLES)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say whether a skill may reach a destination, and why; nothing runs and nothing is resolved
    Test(PolicyTestArgs),
}

const TEST_EXAMPLES: &str = "\
Examples:
  skillcell policy test finance/wallet_screening https://api.etherscan.io/v2/api
  skillcell policy test ./my-skill https://api.github.com/repos/a/b --method POST
  skillcell policy test ./my-skill db.example.com:5432 --policy team-policy.yaml --json

Exit code 0 when it is allowed, 3 when it is denied, 2 for what is no destination. An allowed name
can still be denied when it is dialled, if it resolves to a private or otherwise special address.";

#[derive(Debug, Args)]
#[command(after_help = TEST_EXAMPLES)]
pub(crate) struct PolicyTestArgs {
    /// A skill's folder, or its id (category/name)
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) skill: String,

    /// A URL, or host:port; without a port it is the scheme's, or 443
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// The method of the request, in upper case
    #[arg(long, default_value = "GET")]
    pub(crate) method: String,

    /// An operator policy, before the user's and the system's (may be given several times)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Vec<PathBuf>,

    /// Print the decision and its reasons as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
