//! `completions`: what a shell needs to complete the command line.

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;

use crate::cli::Exit;
use crate::console::say;

/// Print the completions of a shell: bash, zsh, fish, powershell, elvish
#[derive(Debug, Args)]
#[command(after_help = "\
A release has the same in its directory completions/.

  source <(tracebridge completions bash)
  tracebridge completions fish > tracebridge.fish

docs/install.md says where each shell looks for them.")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `completions`.
pub fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command_line(), "tracebridge", &mut script);
    let script = String::from_utf8(script).context("the completions are no text")?;
    say(format_args!("{script}"));
    Ok(Exit::Complete)
}
