//! The manual pages and the shell completions that tools/manuals.rs writes: `man` and the shells load
//! them.

use std::fs;
use std::path::Path;

use support::{Command, Ran, listed_commands, tracebridge};

/// Runs a program on a file, which must succeed. `None`, loudly, where the program is not installed.
fn load(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    load_in("C.UTF-8", program, arguments, file)
}

fn load_in(locale: &str, program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).arg(file).env("MANWIDTH", "80").env("LC_ALL", locale);
    let Ok(out) = command.output() else {
        support::skip(program, &format!("{program} is not installed"));
        return None;
    };
    Some(Ran::new(format!("{command:?}"), out).exited(0).said())
}

/// The command lines that `--help` of a command has as examples.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().filter(|line| line.starts_with("  tracebridge "));
    lines.map(|line| line.trim_start().to_owned()).collect()
}

/// The commands and those in them, each as its words, with its help. That of `atrace` is AOSP's.
fn all_commands() -> Vec<(Vec<String>, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    let mut left = vec![Vec::new()];
    while let Some(words) = left.pop() {
        let help = tracebridge().args(&words).arg("--help").run().exited(0).stdout;
        let inner = listed_commands(&help).into_iter().filter(|name| *name != "help");
        left.extend(inner.map(|name| [&words[..], &[name.to_owned()]].concat()));
        found.push((words, help));
    }
    found
}

#[test]
fn man_and_the_shells_load_what_the_build_writes() {
    let dir = support::tempdir();
    // Cargo builds the examples together with the tests, beside the program.
    let manuals = support::binary().with_file_name("examples").join("manuals");
    Command::new(&manuals).arg(dir.path()).run().exited(0);

    // Every command that --help lists has a page, which says what --help says.
    let commands = all_commands();
    assert!(commands.len() > 25 && commands.iter().any(|(words, _)| words == &["adb", "record"]));
    let mut count = 0;
    for (words, help) in &commands {
        let name = [&["tracebridge".to_owned()], &words[..]].concat().join("-");
        let page = dir.path().join(format!("man1/{name}.1"));
        assert!(page.is_file(), "no page for {name}");
        for locale in ["C", "C.UTF-8"] {
            let Some(text) = load_in(locale, "man", &["--warnings", "-l"], &page) else { continue };
            assert!(text.contains("OPTIONS") && !text.contains("warning:"), "{name} in {locale}: {text}");
            // The help of the program itself begins with commands that its page leaves to the other pages.
            for example in examples(help).into_iter().filter(|_| !words.is_empty()) {
                assert!(text.contains(&example), "{name} in {locale}: not as it is: {example}: {text}");
                count += 1;
            }
        }
    }
    assert!(count == 0 || count > 2 * 20, "only {count} examples");
    if let Some(text) = load("man", &["-l"], &dir.path().join("man1/tracebridge-profile.1")) {
        assert!(text.contains("by method, class, package or thread"), "{text}");
    }

    let completions = dir.path().join("completions");
    // The program prints the same itself.
    for (shell, file) in [
        ("bash", "tracebridge.bash"),
        ("zsh", "_tracebridge"),
        ("fish", "tracebridge.fish"),
        ("powershell", "_tracebridge.ps1"),
    ] {
        let printed = tracebridge().args(["completions", shell]).run().exited(0).stdout;
        assert!(printed == fs::read_to_string(completions.join(file)).unwrap(), "{shell}");
    }
    let bash = "source \"$1\"; COMP_WORDS=(tracebridge prof); COMP_CWORD=1; \
                _tracebridge tracebridge prof tracebridge; echo \"${COMPREPLY[@]}\"";
    let said = load("bash", &["-c", bash, "bash"], &completions.join("tracebridge.bash"));
    assert!(said.is_none_or(|said| said.trim() == "profile"));
    let fish = "source $argv[1]; complete -C 'tracebridge prof'";
    let said = load("fish", &["--no-config", "-c", fish], &completions.join("tracebridge.fish"));
    assert!(said.is_none_or(|said| said.starts_with("profile")));
    let zsh = "autoload -U compinit; compinit -D -u; source \"$1\"; whence -w _tracebridge";
    let said = load("zsh", &["-f", "-c", zsh, "zsh"], &completions.join("_tracebridge"));
    assert!(said.is_none_or(|said| said.contains("_tracebridge: function")));
    let pwsh = "param($f) . $f; (TabExpansion2 'tracebridge prof').CompletionMatches.CompletionText";
    let said = load(
        "pwsh",
        &["-NoProfile", "-Command", &format!("& {{{pwsh}}}")],
        &completions.join("_tracebridge.ps1"),
    );
    assert!(said.is_none_or(|said| said.trim() == "profile"));
}
