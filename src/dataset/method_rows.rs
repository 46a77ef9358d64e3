//! The rows of the table `method_profile`.

use std::collections::BTreeMap;
use std::io;

use crate::export::trace_tables::utid;
use crate::formats::art_method::MethodTrace;
use crate::formats::input::Input;
use crate::formats::{self, OpenError, OpenedInput};
use crate::profile::count::thread_methods::{self, ThreadMethod};
use crate::tables::{Cell, TableId, TraceRows};
use crate::timeline::MethodThread;

/// Why the rows cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum MethodRowsError {
    /// A method trace cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The rows cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Makes a row of each method on each thread of the method traces among `inputs`, and of those in them.
/// `threads` are the threads as the timeline numbers them, in the order of the traces.
pub(super) fn push(
    inputs: &[Input],
    threads: &BTreeMap<u32, MethodThread>,
    rows: &mut TraceRows,
) -> Result<(), MethodRowsError> {
    let mut first_thread = 0;
    let mut contained = Vec::new();
    for input in inputs {
        let opened = formats::open(input)?;
        contained.extend(opened.contained_inputs(&input.name));
        if let OpenedInput::MethodTrace(trace) = opened {
            push_trace(&trace, &mut first_thread, threads, rows)?;
        }
    }
    // The timeline numbers the traces in recordings behind the others.
    for input in &contained {
        if let OpenedInput::MethodTrace(trace) = formats::open(input)? {
            push_trace(&trace, &mut first_thread, threads, rows)?;
        }
    }
    Ok(())
}

fn push_trace(
    trace: &MethodTrace<'_>,
    first_thread: &mut u32,
    threads: &BTreeMap<u32, MethodThread>,
    rows: &mut TraceRows,
) -> io::Result<()> {
    let first = *first_thread;
    *first_thread += trace.threads().len() as u32;
    // A thread of which the timeline has no call has no row yet.
    let mut without_row: Option<u32> = None;
    thread_methods::for_each(trace, |method| {
        let index = first + method.thread;
        let utid = match threads.get(&index) {
            Some(thread) => utid(thread),
            None => -1 - i64::from(index),
        };
        if !threads.contains_key(&index) && without_row.replace(index) != Some(index) {
            push_thread(trace, method.thread, utid, rows)?;
        }
        push_method(method, utid, rows)
    })
}

fn push_thread(trace: &MethodTrace<'_>, thread: u32, utid: i64, rows: &mut TraceRows) -> io::Result<()> {
    let Some(about) = trace.threads().get(thread as usize) else { return Ok(()) };
    let label = about.label();
    rows.push(
        TableId::Thread,
        [
            utid.into(),
            Cell::Null,
            trace.header().pid.into(),
            (&*label).into(),
            Cell::Null,
            about.id.into(),
            (&*label).into(),
            "the thread has no call on the timeline".into(),
        ],
    )
}

fn push_method(method: &ThreadMethod<'_>, utid: i64, rows: &mut TraceRows) -> io::Result<()> {
    rows.push(
        TableId::MethodProfile,
        [
            utid.into(),
            method.full_name.into(),
            method.class.into(),
            method.name.into(),
            Some(method.signature).filter(|signature| !signature.is_empty()).into(),
            method.file.into(),
            method.calls.into(),
            method.recursive_calls.into(),
            method.wall_exclusive_ns.into(),
            method.wall_inclusive_ns.into(),
            method.cpu_exclusive_ns.into(),
            method.cpu_inclusive_ns.into(),
        ],
    )
}
