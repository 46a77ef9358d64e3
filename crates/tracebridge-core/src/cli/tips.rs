//! The tips that stand below an error of the command line.

use clap::error::{ContextKind, ContextValue};

/// The error without clap's advice to put `--` before an argument that a command does not take, which makes a
/// name of it that nobody means.
#[must_use]
pub fn without_escapes(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn nobody_is_told_to_make_a_name_of_a_flag() {
        let command =
            Command::new("record").arg(Arg::new("name").num_args(0..)).arg(Arg::new("json").long("json"));
        for (word, tip) in
            [("--serial", None), ("-3", None), ("--jsn", Some("a similar argument exists: '--json'"))]
        {
            let error = command.clone().try_get_matches_from(["record", word]).unwrap_err();
            assert!(error.to_string().contains("tip: "), "{error}");
            let said = without_escapes(error).to_string();
            assert!(!said.contains("to pass") && tip.is_none_or(|tip| said.contains(tip)), "{said}");
        }
    }
}
