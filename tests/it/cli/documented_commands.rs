//! Every `tracebridge …` command line of the README and of the pages in docs/ names commands and options
//! that the program's own `--help` has, and docs/commands.md has an example of every command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use support::pages::{code_blocks, pages};
use support::{listed_commands, project_dir, tracebridge};

/// So many command lines are found at least: fewer, and this test would have gone blind.
const MIN_COMMAND_LINES: usize = 100;

/// Options that may stand before the word `atrace`, where AOSP's has no place for them. No help lists them.
const BEFORE_ATRACE: [&str; 4] = ["--tracefs", "DIR", "--state-dir", "DIR"];

#[test]
fn every_documented_command_line_is_one_that_the_program_takes() {
    let mut helps = Helps::default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(project_dir().join(&page)).unwrap();
        for command in command_lines(&text) {
            count += 1;
            if let Err(fault) = helps.check(&command) {
                wrong.push(format!("{page}: {}: {fault}", command.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "the program does not take these command lines: {wrong:#?}");
    assert!(count >= MIN_COMMAND_LINES, "only {count} command lines were found");
}

#[test]
fn the_page_of_commands_has_an_example_of_every_one() {
    let text = fs::read_to_string(project_dir().join("docs/commands.md")).unwrap();
    let documented: BTreeSet<Vec<String>> = command_lines(&text).into_iter().collect();
    let mut helps = Helps::default();
    let mut missed = Vec::new();
    for parent in [&[][..], &["adb"], &["dataset"]] {
        let parent: Vec<String> = parent.iter().map(|word| (*word).to_owned()).collect();
        for name in helps.help(&parent).commands.clone() {
            let path = [&parent[..], &[name]].concat();
            if path.last().unwrap() != "help" && !documented.iter().any(|words| words.starts_with(&path)) {
                missed.push(path.join(" "));
            }
        }
    }
    assert!(missed.is_empty(), "docs/commands.md has no example of {missed:?}");
}

#[test]
fn a_command_or_an_option_that_does_not_exist_is_found() {
    let page = "Text with `tracebridge nonsense` in it, and tracebridge nonsense that is no code.\n\n\
        ```sh\n\
        adb devices; tracebridge adb nonsense | tracebridge adb launch --nonsense=3   # tracebridge comment\n\
        adb shell /data/local/tmp/tracebridge record -t 10 -Y \\\n    --no-such-option sched\n\
        tracebridge wrap sched -- make --of-another-program && ! tracebridge mark -\n\
        adb push out/tracebridge /data/local/tmp; echo 'tracebridge quoted'\n\
        ```\n\n    FILE=x tracebridge info --what\n";
    let commands = command_lines(page);
    let mut helps = Helps::default();
    let checked: Vec<(String, Result<(), String>)> =
        commands.iter().map(|words| (words.join(" "), helps.check(words))).collect();
    let no = |fault: &str| Err(fault.to_owned());
    assert_eq!(
        checked,
        [
            ("nonsense".to_owned(), no("there is no command `tracebridge nonsense`")),
            ("adb nonsense".to_owned(), no("there is no command `tracebridge adb nonsense`")),
            ("adb launch --nonsense=3".to_owned(), no("`tracebridge adb launch` has no option --nonsense")),
            (
                "record -t 10 -Y --no-such-option sched".to_owned(),
                no("`tracebridge record` has no option -Y")
            ),
            ("wrap sched -- make --of-another-program".to_owned(), Ok(())),
            ("mark -".to_owned(), Ok(())),
            ("info --what".to_owned(), no("`tracebridge info` has no option --what")),
        ]
    );
}

/// The commands and options that `--help` of a command names.
struct Help {
    commands: BTreeSet<String>,
    /// With their dashes.
    options: BTreeSet<String>,
}

impl Help {
    fn parse(text: &str) -> Help {
        let commands = listed_commands(text).into_iter().map(str::to_owned).collect();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let words = text.split(|c| !is_name(c)).filter(|word| word.starts_with('-'));
        Help { commands, options: words.map(str::to_owned).collect() }
    }
}

/// The `--help` of each command that was asked for, by the command's words.
#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, Help>);

impl Helps {
    fn help(&mut self, command: &[String]) -> &Help {
        self.0.entry(command.to_owned()).or_insert_with(|| {
            // atrace prints its help on standard error, as AOSP's does.
            Help::parse(&tracebridge().args(command).arg("--help").run().exited(0).said())
        })
    }

    /// Whether the words behind `tracebridge` begin with a command, and its help has their options.
    fn check(&mut self, words: &[String]) -> Result<(), String> {
        let words = words.strip_prefix(&BEFORE_ATRACE.map(str::to_owned)[..]).unwrap_or(words);
        let mut length = 0;
        while words.get(length).is_some_and(|word| self.help(&words[..length]).commands.contains(word)) {
            length += 1;
        }
        let command = &words[..length];
        let help = self.help(command);
        let name = [&["tracebridge".to_owned()], command].concat().join(" ");
        let is_placeholder = |word: &String| word.starts_with(char::is_uppercase) || word == "…";
        if let Some(next) = words.get(length)
            && !help.commands.is_empty()
            && !next.starts_with('-')
            && !is_placeholder(next)
        {
            return Err(format!("there is no command `{name} {next}`"));
        }
        for word in words[length..].iter().take_while(|word| *word != "--") {
            let option = match word.strip_prefix("--") {
                Some(_) => word.split('=').next().unwrap_or(word),
                // A value may follow the letter of an option at once.
                None if word.starts_with('-') => word.get(..2).unwrap_or("-"),
                None => continue,
            };
            let is_letter = option.chars().nth(1).is_some_and(|c| c.is_ascii_alphabetic());
            let is_option = option == "--help" || help.options.contains(option);
            if (option.len() > 2 || is_letter) && !is_option {
                return Err(format!("`{name}` has no option {option}"));
            }
        }
        Ok(())
    }
}

/// The words behind `tracebridge` of each command line in the code of a page.
fn command_lines(page: &str) -> Vec<Vec<String>> {
    let commands = code(page).iter().flat_map(|line| simple_commands(line)).collect::<Vec<_>>();
    commands
        .iter()
        .filter_map(|words| words_behind_the_program(words))
        .filter(|words| !words.is_empty())
        .collect()
}

/// The lines of shell code of a page.
fn code(page: &str) -> Vec<String> {
    let blocks = code_blocks(page).into_iter();
    blocks
        .filter(|block| ["", "sh", "yaml"].contains(&block.language.as_str()))
        .flat_map(|b| b.lines)
        .collect()
}

/// The commands of a line of shell code, each as its words without quotes. A comment is left out.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == '#' && word.is_none() => break,
            None if c.is_whitespace() || ";|&()".contains(c) => {
                commands.last_mut().expect("never empty").extend(word.take());
                if !c.is_whitespace() {
                    commands.push(Vec::new());
                }
            }
            None => word.get_or_insert_default().push(c),
        }
    }
    commands
}

/// The words behind `tracebridge`, where the command runs it: here, or on a device with `adb shell`.
fn words_behind_the_program(words: &[String]) -> Option<Vec<String>> {
    let is_before =
        |word: &String| ["sudo", "!", "{", "do", "then", "if"].contains(&word.as_str()) || word.contains('=');
    let mut words = &words[words.iter().take_while(|word| is_before(word)).count()..];
    if words.first().is_some_and(|word| word == "adb") {
        let shell = words.iter().position(|word| word == "shell" || word == "exec-out")?;
        words = &words[shell + 1..];
    }
    let (program, rest) = words.split_first()?;
    (program == "tracebridge" || program.ends_with("/tracebridge")).then(|| rest.to_vec())
}
