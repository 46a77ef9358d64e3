//! Text in forms that several rooms read or write: shell patterns.

mod glob;

pub use glob::matches as glob_matches;
