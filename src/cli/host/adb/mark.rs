//! `adb mark`: markers into the recording that is on, one from the command line or a stream of them.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::outcome::{self, Outcome};
use super::run_there::{PATIENCE, RunThere, run_there};
use super::target::TargetArgs;
use crate::adb::ShellOutput;
use crate::cli::Exit;
use crate::cli::exit::UsageError;
use crate::console::complain;
use crate::remote::{Device, REMOTE_PATH, command_line};

/// Between two looks at what the device says while no marker comes.
const TICK: Duration = Duration::from_millis(100);
/// How many pieces of standard input may wait for a device that takes none.
const MOST_WAITING: usize = 16;

/// Write atrace markers on a device, into the recording that is on
#[derive(Debug, Args)]
#[command(after_help = "\
The words are those of `tracebridge mark` (see its --help): begin NAME, end, instant TEXT, counter NAME VALUE, …
With - they come from standard input, a line each, up to its end. A marker's time is that of its arrival on the device.

  tracebridge adb mark instant 'test 7 starts'
  tracebridge adb mark --all counter battery_mV 3870
  { echo begin test 7; ./test-7; echo end; } | tracebridge adb mark -")]
pub struct MarkArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The marker, as words of `tracebridge mark`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "MARKER")]
    marker: Vec<String>,
}

/// Runs `adb mark`.
pub fn run(args: &MarkArgs) -> anyhow::Result<Exit> {
    let words = [vec!["mark".to_owned()], args.marker.clone()].concat();
    let is_stream = is_stream(&args.marker);
    let results = args.target.on_each(|device, name| {
        if is_stream && !name.is_alone() {
            return Err(UsageError::from("adb mark -: choose one device with --serial").into());
        }
        let there = if is_stream { stream(device, &words)? } else { run_there(device, &words)? };
        Ok(Outcome { exit: there.exit()?, text: there.output.text(), json: json!({}) })
    })?;
    outcome::print(results, args.target.json)
}

/// Whether the markers come from standard input: the first word that is no flag, nor a flag's value, is `-`.
fn is_stream(words: &[String]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some(flag) if !flag.contains('=') => drop(words.next()),
            Some(_) => {}
            None => return word == "-",
        }
    }
    false
}

/// Passes standard input on to `mark -` on the device. What that says is printed as it comes.
fn stream(mut device: Device, words: &[String]) -> anyhow::Result<RunThere> {
    let serial = device.serial().to_owned();
    if !device.transport().tells_streams_apart() {
        anyhow::bail!("{serial}: mark -: a command has standard input on Android 7 and newer alone");
    }
    device.ensure_binary(None)?;
    let script = command_line(&[&[REMOTE_PATH.to_owned()], words].concat());
    let mut shell = device.transport().start_with_input(&device.privilege().command(&script))?;
    let input = standard_input();
    let mut output = ShellOutput::default();
    let mut has_ended = false;
    while !has_ended {
        match input.recv_timeout(TICK) {
            Ok(Ok(bytes)) => shell.write_input(&bytes)?,
            Ok(Err(error)) => return Err(anyhow::Error::from(error).context("standard input")),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                shell.end_input()?;
                shell.finish(PATIENCE, &mut output)?;
                has_ended = true;
            }
        }
        while !has_ended && shell.has_said(&mut output)? {
            has_ended = shell.has_ended();
        }
        // Whole lines alone: the last one may go on.
        let end = match has_ended {
            true => output.stderr.len(),
            false => output.stderr.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let said: Vec<u8> = output.stderr.drain(..end).collect();
        String::from_utf8_lossy(&said).lines().for_each(|line| complain(format_args!("{serial}: {line}")));
    }
    Ok(RunThere { serial, output })
}

/// The pieces of standard input as they come, up to its end.
fn standard_input() -> Receiver<io::Result<Vec<u8>>> {
    let (send, receive) = sync_channel(MOST_WAITING);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let length = match input.fill_buf() {
                Ok([]) => return,
                // Where nobody takes it, nobody will take the next.
                Ok(bytes) if send.send(Ok(bytes.to_vec())).is_err() => return,
                Ok(bytes) => bytes.len(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return drop(send.send(Err(error))),
            };
            input.consume(length);
        }
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_a_stream_where_a_marker_would_stand() {
        for (words, expected) in [
            ("-", true),
            ("--pid 7 -", true),
            ("--tag=view -", true),
            ("instant -", false),
            ("--pid - instant x", false),
            ("counter - -5", false),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(is_stream(&words), expected, "{words:?}");
        }
    }
}
