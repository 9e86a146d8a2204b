//! A skill talks only to whom its policy names, whatever it talks with. Every denial has its
//! counter-proof: the same attempt, made outside of a cell in the same network, gets what it wants.

mod agreement;
mod budgets;
mod bypass;
mod clients;
mod hoarding;
mod http_rules;
mod index;
mod network;
mod rules;
mod secret_ways;
mod secrets;
mod streams;
mod trial;
mod wallet;

/// `claim! { fn name(cell) { … } }` makes `name::{as_caller,as_ordinary_user}`.
macro_rules! claim {
    ($(#[$doc:meta])* fn $name:ident($cell:ident) $body:block) => {
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            fn check($cell: &skillcell_tests::Cell) $body
            #[test]
            fn as_caller() {
                let _shared = skillcell_tests::shared();
                check(&$crate::network::cell(skillcell_tests::User::Caller));
            }
            #[test]
            fn as_ordinary_user() {
                let _shared = skillcell_tests::shared();
                check(&$crate::network::cell(skillcell_tests::User::Ordinary));
            }
        }
    };
}
use claim;
