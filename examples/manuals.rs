//! Writes the manual pages and the shell completions of `tracebridge`, from the definitions that `--help`
//! prints.
//!
//! usage: `cargo run --example manuals [DIRECTORY]` (default: `out/manuals`)
//!
//! `DIRECTORY/man1` gets `tracebridge.1` and a page for each command (`tracebridge-profile.1`);
//! `DIRECTORY/completions` gets a file for each of bash, zsh, fish and PowerShell.
#![allow(missing_docs)]

use std::fs;
use std::io;
use std::path::PathBuf;

use clap_complete::Shell;
use tracebridge::internals::command_line;

fn main() -> io::Result<()> {
    let root = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "out/manuals".into()));
    let (pages, completions) = (root.join("man1"), root.join("completions"));
    fs::create_dir_all(&pages)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(command_line(), &pages)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        clap_complete::generate_to(shell, &mut command_line(), "tracebridge", &completions)?;
    }
    Ok(())
}
