//! The README and the pages in docs/, and the code in them.

use std::fs;

use crate::{listed_commands, project_dir, tracebridge};

/// The title of the commands that need the kernel's tracefs, in the program's help.
const DEVICE_COMMANDS: &str = "Commands that record this machine itself";

/// The directories of pages: those for people, and those for assistants.
const DIRECTORIES: [&str; 3] = ["docs", "agents/tracebridge", "agents/tracebridge/references"];

/// The names of the README and of the pages in docs/ and agents/.
pub fn pages() -> Vec<String> {
    let in_directory = |directory: &'static str| {
        let entries = fs::read_dir(project_dir().join(directory)).unwrap();
        entries.map(move |entry| format!("{directory}/{}", entry.unwrap().file_name().display()))
    };
    let mut pages: Vec<String> =
        DIRECTORIES.into_iter().flat_map(in_directory).filter(|name| name.ends_with(".md")).collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

/// A piece of code of a page.
pub struct CodeBlock {
    /// The language that its fence names; empty where an indent or backticks mark the code.
    pub language: String,
    /// Whether it stands between backticks in a sentence.
    pub is_inline: bool,
    pub lines: Vec<String>,
}

/// The code of a page: in fences, indented, or between backticks. A line that ends with `\` goes on in the
/// next one.
pub fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let joined = page.replace("\\\n", " ");
    let mut found: Vec<CodeBlock> = Vec::new();
    let block =
        |language: &str, is_inline, lines| CodeBlock { language: language.to_owned(), is_inline, lines };
    let mut is_fenced = false;
    let mut is_indented = false;
    for line in joined.lines() {
        let fence = line.trim_start().strip_prefix("```");
        let was_indented = std::mem::take(&mut is_indented);
        match fence {
            Some(language) => {
                if !is_fenced {
                    let language = if language.is_empty() { "text" } else { language };
                    found.push(block(language, false, Vec::new()));
                }
                is_fenced = !is_fenced;
            }
            None if is_fenced || (was_indented && line.starts_with("    ")) => {
                is_indented = !is_fenced;
                found.last_mut().expect("a block has begun").lines.push(line.to_owned());
            }
            None if line.starts_with("    ") => {
                is_indented = true;
                found.push(block("", false, vec![line.to_owned()]));
            }
            None => {
                let pieces = line.split('`').skip(1).step_by(2);
                found.extend(pieces.map(|piece| block("", true, vec![piece.to_owned()])));
            }
        }
    }
    found
}

/// The commands that need the kernel's tracefs, as the program's help lists them.
pub fn device_commands() -> Vec<String> {
    let help = tracebridge().arg("--help").run().exited(0).stdout;
    let list = &help[help.find(DEVICE_COMMANDS).expect("a list of commands")..];
    listed_commands(list).into_iter().map(str::to_owned).collect()
}

/// Whether a line runs one of the commands that need the kernel's tracefs.
pub fn is_of_device(line: &str, device_commands: &[String]) -> bool {
    device_commands.iter().any(|name| {
        line.contains(&format!("tracebridge {name} "))
            || line.trim_end().ends_with(&format!("tracebridge {name}"))
    })
}
