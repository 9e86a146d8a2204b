//! One claim, four tests: both levels, both users.

/// `claim! { fn name(cell) { … } }` makes `name::{sandbox,process}_as_{caller,ordinary_user}`.
#[macro_export]
macro_rules! claim {
    ($(#[$doc:meta])* fn $name:ident($cell:ident) $body:block) => {
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            fn check($cell: &$crate::Cell) $body
            $crate::claim_at!(check, sandbox_as_caller, Sandbox, Caller);
            $crate::claim_at!(check, sandbox_as_ordinary_user, Sandbox, Ordinary);
            $crate::claim_at!(check, process_as_caller, Process, Caller);
            $crate::claim_at!(check, process_as_ordinary_user, Process, Ordinary);
        }
    };
}

/// A claim that `process` doesn't make. The reason is one of the list that SECURITY.md repeats.
#[macro_export]
macro_rules! sandbox_claim {
    (because $reason:path; $(#[$doc:meta])* fn $name:ident($cell:ident) $body:block) => {
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            const _: &str = $reason;
            fn check($cell: &$crate::Cell) $body
            $crate::claim_at!(check, sandbox_as_caller, Sandbox, Caller);
            $crate::claim_at!(check, sandbox_as_ordinary_user, Sandbox, Ordinary);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! claim_at {
    ($check:ident, $name:ident, $level:ident, $user:ident) => {
        #[test]
        fn $name() {
            let _shared = $crate::shared();
            $check(&$crate::Cell::new(
                $crate::Level::$level,
                $crate::User::$user,
            ));
        }
    };
}
