//! Runs Graphviz's `dot`, which draws call graphs.

use std::io::{self, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use super::error::DrawError;
use crate::child::{self, ChildKind};

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    Png,
    Svg,
}

/// The `dot` processes that run.
static RUNNING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// The time between two checks whether `dot`, which has closed its output, has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

fn running() -> MutexGuard<'static, Vec<Child>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all `dot` processes, for a process that is about to end itself. A thread that waits for one of them
/// then waits for the process's end.
pub(crate) fn end_all() {
    let mut running = running();
    running.iter_mut().for_each(|dot| drop(dot.kill()));
    std::mem::forget(running);
}

/// The time after which `dot` is ended. The time that Graphviz takes grows much faster than the graph.
const DOT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs Graphviz's `dot`, which draws `graph`, and writes the picture to `out`.
pub(crate) fn draw(graph: &str, picture: Picture, out: &mut dyn Write) -> Result<(), DrawError> {
    draw_within(DOT_TIMEOUT, graph, picture, out)
}

fn draw_within(limit: Duration, graph: &str, picture: Picture, out: &mut dyn Write) -> Result<(), DrawError> {
    let format = match picture {
        Picture::Png => "-Tpng",
        Picture::Svg => "-Tsvg",
    };
    let mut command = child::command("dot", ChildKind::Worker);
    command.arg(format).stdin(Stdio::piped()).stdout(Stdio::piped());
    let (id, stdin, stdout) = {
        // No process is started that `end_all` does not see.
        let mut running = running();
        let mut dot = match command.spawn() {
            Ok(dot) => dot,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(DrawError::NotInstalled),
            Err(error) => return Err(error.into()),
        };
        let pipes = (dot.id(), dot.stdin.take(), dot.stdout.take());
        running.push(dot);
        pipes
    };
    let (copied, is_too_slow) = std::thread::scope(|scope| {
        // If `dot` does not read the graph to its end, its exit status or its picture says so.
        let feeding =
            Builder::new().spawn_scoped(scope, || stdin.map(|mut stdin| stdin.write_all(graph.as_bytes())));
        let (done, is_done) = mpsc::channel::<()>();
        let watching = Builder::new().spawn_scoped(scope, move || {
            let is_too_slow = is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_too_slow {
                end(id);
            }
            is_too_slow
        });
        let copied = match (feeding, &watching) {
            (Ok(_), Ok(_)) => stdout.map_or(Ok(0), |mut stdout| io::copy(&mut stdout, out)),
            (Err(error), _) => Err(error),
            (_, Err(error)) => Err(error.kind().into()),
        };
        if copied.is_err() {
            end(id);
        }
        drop(done);
        (copied, watching.is_ok_and(|watching| watching.join().unwrap_or(false)))
    });
    let status = wait(id)?;
    match copied? {
        _ if is_too_slow => Err(DrawError::TooSlow {
            limit,
            calls: graph.lines().filter(|line| line.contains(" -> ")).count(),
        }),
        _ if !status.success() => Err(DrawError::Failed(status)),
        0 => Err(DrawError::Empty),
        _ => Ok(()),
    }
}

fn end(id: u32) {
    running().iter_mut().filter(|dot| dot.id() == id).for_each(|dot| drop(dot.kill()));
}

/// Waits until the `dot` process has ended. Meanwhile [`end_all`] can end it.
fn wait(id: u32) -> io::Result<ExitStatus> {
    loop {
        let mut running = running();
        let at = running.iter().position(|dot| dot.id() == id).ok_or(io::ErrorKind::NotFound)?;
        if running[at].try_wait()?.is_some() {
            return running.swap_remove(at).wait();
        }
        drop(running);
        std::thread::sleep(POLL_INTERVAL);
    }
}
