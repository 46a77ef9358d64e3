//! Writes the manual pages and the shell completions of `tracebridge`, from the definitions that `--help`
//! prints.
//!
//! usage: `cargo run --example manuals [DIRECTORY] [--host-commands-only]` (default: `out/manuals`)
//!
//! With `--host-commands-only` those of the program for Windows and macOS.
//!
//! `DIRECTORY/man1` gets `tracebridge.1` and a page for each command (`tracebridge-profile.1`);
//! `DIRECTORY/completions` gets a file for each of bash, zsh, fish and PowerShell.
#![allow(missing_docs)]

use std::fs;
use std::io;
use std::path::PathBuf;

use clap_complete::Shell;
use tracebridge::internals::{command_line, host_command_line};

/// A page as `man` shows it so that its examples can be copied: text is not stretched to both margins, words
/// are not divided, and indented lines stay as they are.
fn for_man(page: &str) -> String {
    // In a locale without UTF-8, man leaves out the one character that no ASCII terminal has. A period at the
    // start of a line would be a command to it.
    let page = page.replace('…', r"\&...");
    let mut out = String::new();
    let mut is_filled = true;
    for line in page.lines() {
        let is_example = line.starts_with("  ");
        if is_example == is_filled {
            out += if is_example { ".nf\n" } else { ".fi\n" };
            is_filled = !is_example;
        }
        out += line;
        out.push('\n');
        if line.starts_with(".TH ") {
            out += ".ad l\n.nh\n";
        }
    }
    out
}

fn main() -> io::Result<()> {
    let (options, directories): (Vec<_>, Vec<_>) =
        std::env::args_os().skip(1).partition(|word| word == "--host-commands-only");
    let definition = if options.is_empty() { command_line } else { host_command_line };
    let root = PathBuf::from(directories.into_iter().next().unwrap_or_else(|| "out/manuals".into()));
    let pages = root.join("man1");
    let completions = root.join("completions");
    fs::create_dir_all(&pages)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(definition(), &pages)?;
    for page in fs::read_dir(&pages)? {
        let page = page?.path();
        fs::write(&page, for_man(&fs::read_to_string(&page)?))?;
    }
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        clap_complete::generate_to(shell, &mut definition(), "tracebridge", &completions)?;
    }
    Ok(())
}
