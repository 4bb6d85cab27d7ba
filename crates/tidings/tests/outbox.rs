//! Events through the public door, on both databases: recorded once, fanned out
//! once, and what each became can be read.
#![allow(clippy::duplicate_mod, reason = "one file, one test per store")]
#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

#[path = "outbox/fixture.rs"]
mod fixture;

macro_rules! on_both {
    ($module:ident, $open:path) => {
        #[path = "."]
        mod $module {
            use $open as open;
            #[path = "outbox/fans_out.rs"]
            mod fans_out;
            #[path = "outbox/routing.rs"]
            mod routing;
        }
    };
}
on_both!(on_sqlite, crate::fixture::sqlite);
on_both!(on_postgres, crate::fixture::postgres);
