//! The `tracebridge` executable: everything is in the library's [`tracebridge::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    tracebridge::cli::main()
}
