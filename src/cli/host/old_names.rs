//! The names of old host programs, by which the binary can be called: `dmtracedump` and `traceview`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::formats::files_of;

/// Turns a command line that calls the binary by the name of an old program into tracebridge's own. Another
/// command line stays as it is.
pub fn translate(args: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, &'static str> {
    let mut args: Vec<OsString> = args.collect();
    let name = args.first().and_then(|program| Path::new(program).file_stem()).unwrap_or_default();
    let command = match name.to_str() {
        Some("dmtracedump") => "dmtracedump",
        Some("traceview") => {
            check_traceview(&args[1..])?;
            args[1..].iter_mut().for_each(complete);
            "open"
        }
        _ => return Ok(args),
    };
    args.splice(..1, ["tracebridge".into(), command.into()]);
    Ok(args)
}

/// Completes the name of a trace that was given without its ending.
fn complete(arg: &mut OsString) {
    if let [file] = &files_of(&[PathBuf::from(&*arg)])[..] {
        *arg = file.into();
    }
}

/// Checks the options of traceview, of which it had only one.
fn check_traceview(args: &[OsString]) -> Result<(), &'static str> {
    if args.iter().any(|arg| arg == "-r") {
        Err("traceview's -r only ran its regression test: leave it out to see the trace")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<String, &'static str> {
        let words = translate(line.split(' ').map(OsString::from))?;
        Ok(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_old_names_become_commands() {
        assert_eq!(
            translated("/opt/dmtracedump -h x.trace"),
            Ok("tracebridge dmtracedump -h x.trace".into())
        );
        assert_eq!(translated("dmtracedump.exe x"), Ok("tracebridge dmtracedump x".into()));
        assert_eq!(translated("traceview x.trace"), Ok("tracebridge open x.trace".into()));
        assert!(translated("traceview -r x.trace").is_err());
        assert_eq!(translated("./tracebridge info dmtracedump"), Ok("./tracebridge info dmtracedump".into()));
    }
}
