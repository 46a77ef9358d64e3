//! `--against OLD…`: the older side of a comparison, the same for every command that compares sets of runs.

use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::UsageError;

const AGAINST: &str = "--against";

/// The older runs.
#[derive(Args)]
pub(super) struct AgainstArgs {
    /// Compare with these older runs of the same program: what got slower or faster, and why
    ///
    /// The newer files stand before it. Files of one directory whose names differ in their endings alone are
    /// one run (launch.dat, launch.trace).
    #[arg(long, alias = "diff", value_name = "OLD", num_args = 1..)]
    against: Vec<PathBuf>,
}

impl AgainstArgs {
    /// The files of the older side; none without a comparison.
    ///
    /// # Errors
    /// The option has taken all files, so that nothing is left to compare for this command.
    pub(super) fn old_files(&self, command: &str, new: &[PathBuf]) -> Result<&[PathBuf], UsageError> {
        if new.is_empty() && self.is_given() {
            return Err(nothing_to_compare(command, &self.against));
        }
        Ok(&self.against)
    }

    /// The same for a command that compares with one file.
    ///
    /// # Errors
    /// That of [`AgainstArgs::old_files`], or the option has taken several files.
    pub(super) fn one_old_file(
        &self,
        command: &str,
        new: &[PathBuf],
    ) -> Result<Option<&PathBuf>, UsageError> {
        match self.old_files(command, new)? {
            [] => Ok(None),
            [old] => Ok(Some(old)),
            several => Err(UsageError::from(format!(
                "{AGAINST} took {} as the older side, and `{command}` compares with one file; sets of runs: tracebridge \
                 report NEW… {AGAINST} OLD…",
                list(several)
            ))),
        }
    }

    pub(super) fn is_given(&self) -> bool {
        !self.against.is_empty()
    }

    /// The files as they were given.
    pub(super) fn given(&self) -> &[PathBuf] {
        &self.against
    }
}

/// The error of a comparison whose option has taken all files.
fn nothing_to_compare(command: &str, old: &[PathBuf]) -> UsageError {
    let taken = list(old);
    // Of more than two files nobody knows where the newer ones begin.
    let (new, old) = match old {
        [old] => ("NEW…".to_owned(), old.display().to_string()),
        [old, new] => (new.display().to_string(), old.display().to_string()),
        _ => ("NEW…".to_owned(), "OLD…".to_owned()),
    };
    UsageError::from(format!(
        "{AGAINST} took {taken} as the older side, and nothing is left to compare with it: tracebridge {command} {new} \
         {AGAINST} {old}"
    ))
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_took_all_files_says_how_they_are_told_apart() {
        for (old, words) in [
            (&["a"][..], "tracebridge why NEW… --against a"),
            (&["a"], "--against took a as the older side, and nothing is left to compare with it"),
            (&["a", "b"], "tracebridge why b --against a"),
            (&["a", "b", "c"], "--against took a, b, c as the older side"),
            (&["a", "b", "c"], "tracebridge why NEW… --against OLD…"),
        ] {
            let against = old.iter().map(PathBuf::from).collect();
            let refused = AgainstArgs { against }.old_files("why", &[]).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
        let against = AgainstArgs { against: vec!["a".into(), "b".into()] };
        let new = ["c".into()];
        assert_eq!(against.old_files("report", &new).unwrap().len(), 2);
        let refused = against.one_old_file("profile", &new).unwrap_err().to_string();
        assert!(
            refused.starts_with("--against took a, b as the older side, and `profile` compares with one"),
            "{refused}"
        );
    }
}
