//! The network door of a cell. What a skill sends is read here, by parsers that do no input or
//! output themselves: they take bytes and give back a value, a wish for more, or a refusal. All of
//! it is hostile: sizes are bounded, nothing is indexed unchecked, and what two readers could
//! understand differently is refused.
//!
//! The [`Broker`] puts them to work: it serves one call's door from outside the cell.

mod broker;
pub mod dns;
pub mod http;
mod progress;
mod reader;
pub mod scan;
pub mod sniff;
pub mod socks5;
pub mod tls;

pub use broker::{
    AllowLine, AuthorityError, Broker, BrokerError, Budget, Closed, Doors, Entry, Journal,
    Loopback, Names, NoJournal, Place, Placeholder, Report, Secret, Terms, Unwritten, hint,
};
pub use dns::{Question, refuse};
pub use progress::Progress;
