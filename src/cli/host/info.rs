//! `info`: what a file is, what is in it, and what is missing.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use clap::Parser;
use serde_json::json;

use super::merge::size;
use crate::cli::{Exit, exit};
use crate::clock::Clock;
use crate::formats::art_method::MethodTrace;
use crate::formats::{Event, EventType, EventTypeId, Head, Order, ReadReport, Sink, ThreadInfo};
use crate::profile::drive::Selection;
use crate::profile::flat::Flat;
use crate::timeline::{Kernel, Opened, Source, SourceError};

/// Say what a file is: format, clocks, counts, losses, damage
///
/// Names anything; of what is read here it tells clocks, events per CPU, losses, threads, methods and damage.
///
/// Exit status: 0 whole, 1 cannot be read or is nothing that is read here, 3 read, but events were lost or it is damaged.
#[derive(Parser)]
pub struct Args {
    /// The files; - is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write one JSON object a file
    #[arg(long)]
    json: bool,
}

/// Runs `info`.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut exit = Exit::Complete;
    for path in &args.files {
        match about(path, args.json) {
            Ok(true) if exit == Exit::Complete => exit = Exit::Lossy,
            Ok(_) => {}
            Err(error) if exit::is_broken_pipe(&error) => return Err(error),
            Err(error) => {
                exit = Exit::Failed;
                if args.json {
                    println!("{}", json!({ "path": path, "error": exit::message(&error) }));
                } else {
                    eprintln!("tracebridge: {}", exit::message(&error));
                }
            }
        }
    }
    Ok(exit)
}

/// Whether something is missing in it.
fn about(path: &std::path::Path, as_json: bool) -> anyhow::Result<bool> {
    let source = Source::open(path)?;
    let input = &source.input;
    let opened = source.read();
    if let (false, Ok(_)) = (as_json, &opened) {
        let packed = input.packed.map(|p| format!(", packed with {p}")).unwrap_or_default();
        println!("{}: {}{packed}", input.name, size(input.size));
    }
    let lossy = match opened {
        Ok(Opened::Kernel(kernel)) => kernel_info(&source, &kernel, as_json)?,
        Ok(Opened::Method(trace)) => method_info(&source, &trace, as_json)?,
        Err(SourceError::Other { name, other }) if !as_json => {
            anyhow::bail!("{name}: this is {}; it is not read here: {}", other.what, other.cure)
        }
        Err(error) => return Err(error.into()),
    };
    for damage in input.damage.iter().filter(|_| !as_json) {
        println!("  damage at byte {}: {}", damage.offset, damage.what);
    }
    Ok(lossy || !input.damage.is_empty())
}

/// Counts, and nothing more.
#[derive(Default)]
struct Counter {
    head: Option<Head>,
    kinds: Vec<(String, u64)>,
    threads: BTreeMap<i32, Option<i32>>,
}

impl Sink for Counter {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.head = Some(head.clone());
        Ok(())
    }
    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let colon = if kind.system.is_empty() { "" } else { ":" };
        self.kinds.push((format!("{}{colon}{}", kind.system, kind.name), 0));
        Ok(())
    }
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let tgid = self.threads.entry(thread.tid).or_default();
        *tgid = thread.tgid.or(*tgid);
        Ok(())
    }
    fn event(&mut self, event: &Event<'_>, _: &EventType) -> io::Result<()> {
        if let Some((_, count)) = self.kinds.get_mut(event.kind.0 as usize) {
            *count += 1;
        }
        Ok(())
    }
}

fn kernel_info(source: &Source, kernel: &Kernel<'_>, as_json: bool) -> anyhow::Result<bool> {
    let mut counter = Counter::default();
    let report = kernel.read(Order::Any, &mut counter)?;
    let Some(head) = counter.head else { anyhow::bail!("{}: no head", source.input.name) };
    counter.kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let processes: std::collections::BTreeSet<_> = counter.threads.values().flatten().collect();
    if as_json {
        let kinds: serde_json::Map<_, _> = counter.kinds.iter().map(|(k, n)| (k.clone(), json!(n))).collect();
        let value = json!({
            "path": source.input.name, "bytes": source.input.size, "packed": source.input.packed,
            "format": head.format, "clock": head.clock, "precision": head.precision, "machine": head.machine,
            "events": report.events(), "lost": report.lost(), "kinds": kinds, "report": report,
            "threads": counter.threads.len(), "processes": processes.len(),
            "snapshots": head.snapshots.list.len(), "counter_hz": head.snapshots.counter_hz,
        });
        println!("{value}");
        return Ok(report.is_lossy());
    }
    println!("  format: {}", head.format);
    println!("  clock: {}, {} decimals of a second", head.clock, head.precision);
    if let Some(machine) = &head.machine {
        println!("  recorded on: {machine}");
    }
    if !head.snapshots.list.is_empty() {
        let clocks =
            [Clock::Realtime, Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime, Clock::Counter];
        let has = |c: &Clock| {
            head.snapshots.list.iter().any(|s| s.get(*c, None).is_some_and(|reading| reading > 0))
        };
        let names: Vec<_> = clocks.iter().filter(|c| has(c)).map(|c| c.name()).collect();
        println!("  clock snapshots: {} of {}", head.snapshots.list.len(), names.join(", "));
    }
    for (cpu, count) in &report.cpus {
        let gaps =
            if count.gaps > 0 { format!(", {} gaps of unknown size", count.gaps) } else { String::new() };
        println!("  CPU {cpu}: {} events, {} lost{gaps}", count.events, count.lost);
    }
    println!("  events: {} of {} kinds", report.events(), counter.kinds.len());
    for (name, count) in counter.kinds.iter().take(12) {
        println!("    {count:>10} {name}");
    }
    println!("  threads known: {}, processes: {}", counter.threads.len(), processes.len());
    tail(&report);
    Ok(report.is_lossy())
}

fn method_info(source: &Source, trace: &MethodTrace<'_>, as_json: bool) -> anyhow::Result<bool> {
    let (header, counts) = (trace.header(), trace.counts());
    let problems = Flat::of(trace, &Selection::default()).problems;
    let mut report = trace.report().clone();
    report.irregular.extend(problems.lines());
    let used = trace.threads().iter().filter(|t| t.records > 0);
    if as_json {
        let threads: Vec<_> = trace
            .threads()
            .iter()
            .map(|t| json!({ "id": t.id, "name": t.name, "records": t.records }))
            .collect();
        let value = json!({
            "path": source.input.name, "bytes": source.input.size, "packed": source.input.packed,
            "format": trace.format(), "version": header.version, "streaming": header.streaming,
            "clock_mode": header.clock.name(), "start_ns": header.start_ns(), "elapsed_ns": header.elapsed_ns,
            "vm": header.vm, "pid": header.pid, "overflow": header.overflow,
            "counts": counts, "problems": problems, "threads": threads, "methods": trace.methods().len(), "report": report,
        });
        println!("{value}");
    } else {
        println!("  format: {}", trace.format());
        println!("  start: {} ns of a clock that the file does not name", header.start_ns());
        if let Some(elapsed) = header.elapsed_ns {
            println!("  duration: {:.6} s", elapsed as f64 / 1e9);
        }
        if let Some(vm) = &header.vm {
            println!("  runtime: {vm}");
        }
        if let Some(pid) = header.pid {
            println!("  process: {pid}");
        }
        println!(
            "  records: {} ({} enters, {} exits, {} unrolls)",
            counts.records, counts.enters, counts.exits, counts.unrolls
        );
        println!("  methods: {} ({} undeclared)", trace.methods().len(), counts.undeclared_methods);
        println!("  threads: {} ({} undeclared)", trace.threads().len(), counts.undeclared_threads);
        if counts.non_ascii_names > 0 {
            println!("  names beyond ASCII: {}", counts.non_ascii_names);
        }
        for thread in used {
            println!("    {:>10} records: {} (id {})", thread.records, thread.label(), thread.id);
        }
        if header.overflow {
            println!("  the buffer was full before the end: methods are missing (data-file-overflow=true)");
        }
        tail(&report);
    }
    Ok(report.is_lossy() || header.overflow)
}

fn tail(report: &ReadReport) {
    if let (Some(first), Some(last)) = (report.first_ts, report.last_ts) {
        println!("  from {first} to {last} ns: {:.6} s", last.saturating_sub(first) as f64 / 1e9);
    }
    for line in &report.irregular {
        println!("  irregular: {line}");
    }
    for note in &report.notes {
        println!("  note: {note}");
    }
    for damage in &report.damage {
        println!("  damage at byte {}: {}", damage.offset, damage.what);
    }
}
