//! The method trace of an app that runs on a device.

use std::path::Path;
use std::time::{Duration, Instant};

use super::delivery::{check_output, deliver};
use super::device::{COMMAND_TIMEOUT, Device, command_line, quoted};
use super::device_json::DeviceJson;
use super::error::DeskError;
use super::outcome::{Completeness, DeviceOutcome, DeviceResult};
use super::output_names::is_method_trace;
use super::targets::{TargetDevice, Targets};
use super::user_interface::UserInterface;

/// The directory of the method traces on the device.
const TRACE_DIR: &str = "/data/local/tmp";

/// How long the app may take to write its method trace.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two questions for the file's length. A length that does not change means that the file is
/// whole.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The method profiler of an app.
#[derive(Debug, Clone)]
pub struct ProfilerRequest {
    /// The app's process: its package's name, and the part that `android:process` adds.
    pub app: String,
    /// Whether the stacks are sampled at this interval, microseconds, instead of tracing each call.
    pub sampling_us: Option<u32>,
    /// Whether the runtime writes while it traces.
    pub streaming: bool,
}

/// Starts the method profiler of an app on devices.
///
/// # Errors
/// [`DeskError`] if the app's name is none, or the devices cannot be found.
pub fn start_profiler(
    request: &ProfilerRequest,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    check_process_name(&request.app)?;
    targets.on_each(ui, |target| start(request, &target.device))
}

/// Stops the method profiler of an app on devices, and fetches the method trace.
///
/// # Errors
/// [`DeskError`] if the app's name is none, the output cannot be one, or the devices cannot be found.
pub fn stop_profiler(
    app: &str,
    output: &Path,
    targets: &Targets,
    ui: &dyn UserInterface,
) -> Result<Vec<DeviceResult>, DeskError> {
    check_process_name(app)?;
    if !is_method_trace(output) {
        check_output(output).map_err(|error| match error {
            DeskError::UnknownEnding { output, endings } => {
                DeskError::UnknownEnding { output, endings: format!(".trace {endings}") }
            }
            other => other,
        })?;
    }
    targets.on_each(ui, |target| stop(app, output, &target))
}

/// Fails unless the text is a process's name: `am` would take `-x` for an option.
fn check_process_name(app: &str) -> Result<(), DeskError> {
    let is_name = !app.is_empty() && app.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$:".contains(&b));
    if is_name {
        Ok(())
    } else {
        Err(DeskError::Request(format!("\"{app}\" is no process of an app").into()))
    }
}

/// The path of an app's method trace on the device.
fn trace_file(app: &str) -> String {
    format!("{TRACE_DIR}/tracebridge-{}.trace", app.replace(':', "-"))
}

/// The arguments of `am profile start` for this request.
fn start_args(request: &ProfilerRequest) -> Vec<String> {
    let mut args = ["am", "profile", "start"].map(str::to_owned).to_vec();
    if let Some(interval) = request.sampling_us {
        args.extend(["--sampling".to_owned(), interval.to_string()]);
    }
    if request.streaming {
        args.push("--streaming".to_owned());
    }
    args.extend([request.app.clone(), trace_file(&request.app)]);
    args
}

fn start(request: &ProfilerRequest, device: &Device) -> Result<DeviceOutcome, DeskError> {
    let app = &request.app;
    run_am(device, &format!("rm -f {}", quoted(&trace_file(app))))?;
    run_am(device, &command_line(&start_args(request)))?;
    let text = format!("the methods of {app} are traced; `tracebridge adb profile stop {app}` ends that\n");
    Ok(DeviceOutcome::complete(text, DeviceJson::default()))
}

fn stop(app: &str, output: &Path, target: &TargetDevice<'_>) -> Result<DeviceOutcome, DeskError> {
    let device = &target.device;
    let file = trace_file(app);
    run_am(device, &format!("am profile stop {}", quoted(app)))?;
    wait_until_whole(device, app, &file)?;
    let output = target.name.output(output);
    let delivered = deliver(target, std::slice::from_ref(&file), &output)?;
    run_am(device, &format!("rm -f {}", quoted(&file)))?;
    let completeness = Completeness::Complete.with_loss(delivered.is_lossy);
    let json = DeviceJson { delivered: Some(delivered.json()), ..DeviceJson::default() };
    Ok(DeviceOutcome { completeness, text: delivered.text().into(), json })
}

/// Waits until the app has written its method trace.
fn wait_until_whole(device: &Device, app: &str, file: &str) -> Result<(), DeskError> {
    let deadline = Instant::now() + WRITE_TIMEOUT;
    let mut last_length = 0;
    loop {
        let length = device.transport().sync()?.stat(file)?.map_or(0, |stat| stat.size);
        if length > 0 && length == last_length {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(DeskError::NoMethodTrace {
                serial: device.serial().to_owned(),
                file: file.to_owned(),
                seconds: WRITE_TIMEOUT.as_secs(),
                app: app.to_owned(),
            });
        }
        last_length = length;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Runs a script of `am`, whose exit status is 0 even if it fails: its output then has `Error:` in it.
fn run_am(device: &Device, script: &str) -> Result<(), DeskError> {
    let output = device.run_script(script, device.privilege(), COMMAND_TIMEOUT)?;
    let message = output.message();
    let has_failed = output.status != 0 || message.contains("Error:") || message.contains("Exception");
    if !has_failed {
        return Ok(());
    }
    let reason = if message.is_empty() { format!("status {}", output.status) } else { message };
    Err(DeskError::CommandFailed { serial: device.serial().to_owned(), message: format!("am: {reason}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_name_that_no_shell_and_no_option_has() {
        for app in ["com.app", "com.app:remote", "com.app.Outer$Inner", "a_b"] {
            check_process_name(app).unwrap();
        }
        for app in ["", "-x", "a;b", "com/app", "com app"] {
            assert!(check_process_name(app).unwrap_err().is_usage(), "{app}");
        }
    }

    #[test]
    fn the_profiler_is_started_with_the_options_that_were_asked_for() {
        let request =
            ProfilerRequest { app: "com.app:remote".to_owned(), sampling_us: None, streaming: false };
        let file = "/data/local/tmp/tracebridge-com.app-remote.trace";
        assert_eq!(start_args(&request).join(" "), format!("am profile start com.app:remote {file}"));
        let sampled = ProfilerRequest { sampling_us: Some(500), streaming: true, ..request };
        assert_eq!(
            start_args(&sampled).join(" "),
            format!("am profile start --sampling 500 --streaming com.app:remote {file}")
        );
    }
}
