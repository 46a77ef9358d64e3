//! Runs a command of this program as a child, with a limit on its time and on what it prints.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::error::ToolError;
use super::limit::CallLimit;
use crate::child::{self, ChildKind};

/// A command prints so many bytes at most.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// So many of its messages are told.
const MAX_MESSAGES: usize = 5;
/// How often a running child is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A command that works on a device puts the device's settings back before it ends, and fetches what it has
/// recorded. It has this long for that.
pub(super) const DEVICE_GRACE: Duration = Duration::from_secs(120);
/// Any other command of this program has this long to remove what it has not finished.
pub(super) const FILE_GRACE: Duration = Duration::from_secs(1);

/// The way in which a child ends whose time is over.
#[derive(Debug, Clone, Copy)]
pub(super) enum ChildEnd {
    /// It is asked to end, as by Ctrl-C, and killed after this time.
    Asked(Duration),
    /// It is killed.
    Killed,
}

/// Runs `program` with `arguments` in `directory`. Returns the JSON that it printed; an object gets the exit
/// status and the messages as members.
pub(super) fn run(
    program: &Path,
    arguments: &[PathBuf],
    directory: &Path,
    end: ChildEnd,
    limit: &CallLimit,
) -> Result<Value, ToolError> {
    let kind = if let ChildEnd::Asked(_) = end { ChildKind::Own } else { ChildKind::Worker };
    let mut command = child::command(program, kind);
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(ToolError::Start)?;
    let readers = (reader(child.stdout.take()), reader(child.stderr.take()));
    let (Ok(stdout), Ok(stderr)) = readers else {
        child::kill(&mut child);
        let _ = child.wait();
        return Err(ToolError::Start(io::ErrorKind::OutOfMemory.into()));
    };
    let status = wait(&mut child, end, limit);
    let stdout = stdout.join().unwrap_or_default();
    let stderr = stderr.join().unwrap_or_default();
    let code = status?.code();
    let messages = messages(&stderr);
    // 0 complete, 3 lossy or damaged, 4 the gate closed: all of them have an answer. Of several files some
    // may have one although another file has an error, which is in the place of its answer.
    let is_answered = matches!(code, Some(0 | 3 | 4)) || code == Some(1) && has_answers(&stdout);
    if !is_answered {
        let in_place = errors_in(&stdout);
        return Err(ToolError::Command(if messages.is_empty() { in_place } else { messages }));
    }
    let mut answer: Value = match serde_json::from_slice(&stdout) {
        Ok(answer) => answer,
        // Of several objects each stands on a line.
        Err(_) => lines(&stdout).map_err(|_| ToolError::Command(vec!["the answer is no JSON".to_owned()]))?,
    };
    if !answer.is_object() {
        answer = json!({ "answers": answer });
    }
    answer["status"] = json!(match code {
        Some(3) => "lossy: events were lost, or an input is damaged",
        Some(4) => "the gate is closed: the candidate is slower",
        Some(1) => "incomplete: a file has an error",
        _ => "complete",
    });
    if !messages.is_empty() {
        answer["messages"] = json!(messages);
    }
    Ok(answer)
}

fn lines(text: &[u8]) -> serde_json::Result<Value> {
    objects(text).collect()
}

/// The objects of a text, one behind the other.
fn objects(text: &[u8]) -> impl Iterator<Item = serde_json::Result<Value>> {
    serde_json::Deserializer::from_slice(text).into_iter::<Value>()
}

/// Whether an object is no error.
fn has_answers(stdout: &[u8]) -> bool {
    objects(stdout).map_while(Result::ok).any(|object| object.get("error").is_none())
}

/// The errors that stand in the places of answers.
fn errors_in(stdout: &[u8]) -> Vec<String> {
    let errors = objects(stdout).map_while(Result::ok);
    errors.filter_map(|object| Some(object.get("error")?.as_str()?.to_owned())).take(MAX_MESSAGES).collect()
}

/// The last lines that the command has said; of those before, how many they were.
fn messages(stderr: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stderr);
    // DuckDB names the file of its settings, in colour.
    let plain = |line: &'_ str| line.trim_start_matches("\u{1b}[00m").trim().to_owned();
    let is_told = |line: &String| !line.is_empty() && !line.contains("-- Loading resources from ");
    let lines: Vec<String> = text.lines().map(plain).filter(is_told).collect();
    let mut messages: Vec<String> = lines
        .iter()
        .take(MAX_MESSAGES)
        .map(|line| line.trim_start_matches("tracebridge: ").to_owned())
        .collect();
    if lines.len() > MAX_MESSAGES {
        messages.push(format!("{} more lines", lines.len() - MAX_MESSAGES));
    }
    messages
}

/// Reads a pipe to its end, and keeps its begin.
fn reader(pipe: Option<impl Read + Send + 'static>) -> io::Result<thread::JoinHandle<Vec<u8>>> {
    thread::Builder::new().spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut kept);
            // A child that prints more is not stopped by a full pipe.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        kept
    })
}

fn wait(child: &mut Child, end: ChildEnd, limit: &CallLimit) -> Result<std::process::ExitStatus, ToolError> {
    let mut asked: Option<(Instant, ToolError)> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(ToolError::Start)? {
            return match asked {
                Some((_, reason)) => Err(reason),
                None => Ok(status),
            };
        }
        match &asked {
            None => {
                if let Some(reason) = limit.reached() {
                    match end {
                        ChildEnd::Asked(_) => ask_to_end(child),
                        ChildEnd::Killed => child::kill(child),
                    }
                    asked = Some((Instant::now(), reason));
                }
            }
            Some((since, _)) => {
                if let ChildEnd::Asked(grace) = end
                    && since.elapsed() > grace
                {
                    child::kill(child);
                }
            }
        }
        thread::sleep(LOOK);
    }
}

/// Asks the child to end as Ctrl-C does, so that it puts back what it has changed.
#[cfg(unix)]
fn ask_to_end(child: &mut Child) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let pid = i32::try_from(child.id()).map(Pid::from_raw);
    if !pid.is_ok_and(|pid| kill(pid, Signal::SIGINT).is_ok()) {
        let _ = child.kill();
    }
}

#[cfg(not(unix))]
fn ask_to_end(child: &mut Child) {
    let _ = child.kill();
}
