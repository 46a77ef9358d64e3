//! Commands of the binary on a device whose output the host passes on: `doctor`, `list`, `mark`, `start`,
//! `stop`.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use serde_json::Value;

use super::device::BINARY_PATH;
use super::device_json::DeviceJson;
use super::error::DeskError;
use super::host_hints::host_hints;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult};
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;
use crate::adb::{Shell, ShellOutput};

/// How long such a command may be silent. `doctor` reads thousands of files.
const DEVICE_COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// How often the device's messages are read while no marker comes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The most pieces of standard input that wait for a device that takes none.
const MAX_WAITING_PIECES: usize = 16;

/// Runs `doctor` or `list` on devices. With `as_json` their JSON is asked for.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn report(
    command: &str,
    as_json: bool,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    let args: Vec<&str> = [command, "--json"].into_iter().take(1 + usize::from(as_json)).collect();
    targets.on_each(ui, |mut target| {
        let output = run_on_device(&mut target, &args)?;
        let printed = output.text();
        let text = host_hints(&printed);
        let json = match serde_json::from_str(&printed) {
            Ok(Value::Object(printed)) => DeviceJson { printed, ..DeviceJson::default() },
            Ok(other) => DeviceJson { list: Some(other), ..DeviceJson::default() },
            Err(_) => DeviceJson { text: Some(text.clone()), ..DeviceJson::default() },
        };
        let completeness = completeness(target.device.serial(), &output)?;
        Ok(DeviceOutcome { completeness, text: text.into(), json })
    })
}

/// Starts a flight recorder on devices with these arguments of `start`.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn start_flight_recorder(
    args: &[String],
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    let args = [&["start".to_owned()], args].concat();
    targets.on_each(ui, |mut target| {
        let output = run_on_device(&mut target, &args)?;
        let text = host_hints(&output.text());
        let completeness = completeness(target.device.serial(), &output)?;
        let json = DeviceJson { text: Some(text.trim().to_owned()), ..DeviceJson::default() };
        Ok(DeviceOutcome { completeness, json, text: text.into() })
    })
}

/// Stops the flight recorder of devices with these arguments of `stop`.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn stop_flight_recorder(
    args: &[String],
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    let args = [&["stop".to_owned()], args].concat();
    targets.on_each(ui, |mut target| {
        let output = run_on_device(&mut target, &args)?;
        let completeness = completeness(target.device.serial(), &output)?;
        Ok(DeviceOutcome { completeness, text: "stopped".to_owned().into(), json: DeviceJson::default() })
    })
}

/// Writes a marker on devices, with these arguments of `mark`; `-` are the markers of standard input.
///
/// # Errors
/// [`DeskError`] if the devices cannot be found.
pub fn mark(
    args: &[String],
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    let is_stream = is_stream(args);
    let args = [&["mark".to_owned()], args].concat();
    targets.on_each(ui, |mut target| {
        if is_stream && !target.name.is_alone() {
            return Err(DeskError::Request("adb mark -: choose one device with --serial".into()));
        }
        let output =
            if is_stream { pass_markers(&mut target, &args)? } else { run_on_device(&mut target, &args)? };
        let completeness = completeness(target.device.serial(), &output)?;
        Ok(DeviceOutcome {
            completeness,
            text: host_hints(&output.text()).into(),
            json: DeviceJson::default(),
        })
    })
}

/// Runs a command of the binary on a device, with all the rights that are to be had. A message of a command
/// that succeeds is shown to the user.
fn run_on_device<S: AsRef<str>>(target: &mut TargetDevice<'_>, args: &[S]) -> Result<ShellOutput, DeskError> {
    let device = &mut target.device;
    device.ensure_binary(None)?;
    let command: Vec<&str> = std::iter::once(BINARY_PATH).chain(args.iter().map(AsRef::as_ref)).collect();
    let output = device.run(&command, device.privilege(), DEVICE_COMMAND_TIMEOUT)?;
    if output.status == 0 && !output.stderr.is_empty() {
        let message = String::from_utf8_lossy(&output.stderr);
        target.ui.show_message(&format!("{}: {}", device.serial(), host_hints(message.trim_end())));
    }
    Ok(output)
}

/// Turns the exit status of a command on a device into the completeness of its result.
///
/// # Errors
/// The command's own words if it has failed without printing a result.
fn completeness(serial: &str, output: &ShellOutput) -> Result<Completeness, DeskError> {
    let serial = serial.to_owned();
    let message = || host_hints(&output.message().replace("tracebridge: ", ""));
    match output.status {
        0 => Ok(Completeness::Complete),
        2 => Err(DeskError::CommandUsage { serial, message: message() }),
        3 => Ok(Completeness::Lossy),
        _ if output.stdout.is_empty() || output.status > 3 => {
            Err(DeskError::CommandFailed { serial, message: message() })
        }
        _ => Ok(Completeness::Failed),
    }
}

/// Whether the markers come from standard input: the first argument that is no flag, nor a flag's value, is
/// `-`.
fn is_stream(args: &[String]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--") {
            Some(flag) if !flag.contains('=') => drop(args.next()),
            Some(_) => {}
            None => return arg == "-",
        }
    }
    false
}

/// Passes standard input on to `mark -` on the device, and shows the device's messages as they come.
fn pass_markers(target: &mut TargetDevice<'_>, args: &[String]) -> Result<ShellOutput, DeskError> {
    let device = &mut target.device;
    let serial = device.serial().to_owned();
    if !device.transport().tells_streams_apart() {
        return Err(DeskError::NoStandardInput { serial });
    }
    device.ensure_binary(None)?;
    let command = [&[BINARY_PATH.to_owned()], args].concat();
    let mut shell = device.start_with_input(&command)?;
    let input = read_standard_input().map_err(DeskError::StandardInput)?;
    let mut output = ShellOutput::default();
    loop {
        let has_ended = match input.recv_timeout(POLL_INTERVAL) {
            Ok(Ok(bytes)) => {
                shell.write_input(&bytes)?;
                take_arrived(&mut shell, &mut output)?
            }
            Ok(Err(error)) => return Err(DeskError::StandardInput(error)),
            Err(RecvTimeoutError::Timeout) => take_arrived(&mut shell, &mut output)?,
            Err(RecvTimeoutError::Disconnected) => {
                shell.end_input()?;
                shell.finish(DEVICE_COMMAND_TIMEOUT, &mut output)?;
                true
            }
        };
        show_whole_lines(&mut output.stderr, has_ended, &|line| {
            target.ui.show_message(&format!("{serial}: {line}"));
        });
        if has_ended {
            return Ok(output);
        }
    }
}

/// Takes the output that has arrived. Returns whether the command has ended.
fn take_arrived(shell: &mut Shell, output: &mut ShellOutput) -> Result<bool, DeskError> {
    while !shell.has_ended() && shell.take_next(output)? {}
    Ok(shell.has_ended())
}

/// Takes the whole lines from `text` and shows each; if `has_ended`, also the last one, which else may go on.
fn show_whole_lines(text: &mut Vec<u8>, has_ended: bool, show: &dyn Fn(&str)) {
    let end = if has_ended {
        text.len()
    } else {
        text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    };
    let lines: Vec<u8> = text.drain(..end).collect();
    String::from_utf8_lossy(&lines).lines().for_each(show);
}

/// The pieces of standard input as they come, up to its end.
///
/// # Errors
/// The system's error where it starts no thread.
fn read_standard_input() -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (send, receive) = sync_channel(MAX_WAITING_PIECES);
    Builder::new().spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let length = match input.fill_buf() {
                Ok([]) => return,
                // The receiver is gone: nobody will take the next piece either.
                Ok(bytes) if send.send(Ok(bytes.to_vec())).is_err() => return,
                Ok(bytes) => bytes.len(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return drop(send.send(Err(error))),
            };
            input.consume(length);
        }
    })?;
    Ok(receive)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_dash_is_a_stream_where_a_marker_would_stand() {
        for (args, expected) in [
            ("-", true),
            ("--pid 7 -", true),
            ("--tag=view -", true),
            ("instant -", false),
            ("--pid - instant x", false),
            ("counter - -5", false),
        ] {
            let args: Vec<String> = args.split(' ').map(str::to_owned).collect();
            assert_eq!(is_stream(&args), expected, "{args:?}");
        }
    }

    #[test]
    fn the_exit_status_of_a_command_on_a_device_decides_with_its_output() {
        let output = |status, stdout: &str, stderr: &str| ShellOutput {
            status,
            stdout: stdout.into(),
            stderr: stderr.into(),
            ..ShellOutput::default()
        };
        let result = |output: &ShellOutput| completeness("S1", output).map_err(|e| e.to_string());
        assert_eq!(result(&output(0, "", "")), Ok(Completeness::Complete));
        assert_eq!(result(&output(3, "", "lost")), Ok(Completeness::Lossy));
        // `doctor` has printed its report, and says that nothing can be recorded.
        assert_eq!(result(&output(1, "report", "")), Ok(Completeness::Failed));
        assert_eq!(result(&output(1, "", "tracebridge: no tracefs")), Err("S1: no tracefs".to_owned()));
        assert_eq!(result(&output(126, "x", "not found")), Err("S1: not found".to_owned()));
        let usage = completeness("S1", &output(2, "", "tracebridge: what?")).unwrap_err();
        assert!(usage.is_usage() && usage.to_string() == "S1: what?", "{usage}");
    }

    #[test]
    fn messages_are_shown_by_whole_lines() {
        let shown = RefCell::new(Vec::new());
        let show = |line: &str| shown.borrow_mut().push(line.to_owned());
        let mut text = b"one\ntwo\nthr".to_vec();
        show_whole_lines(&mut text, false, &show);
        assert_eq!((shown.take(), text.as_slice()), (vec!["one".to_owned(), "two".to_owned()], &b"thr"[..]));
        text.extend(b"ee");
        show_whole_lines(&mut text, true, &show);
        assert_eq!((shown.take(), text.len()), (vec!["three".to_owned()], 0));
    }
}
