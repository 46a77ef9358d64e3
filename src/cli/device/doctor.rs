//! `doctor` and `list`: what this device permits.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;

use crate::cli::Exit;
use crate::doctor::{self, CategoryReport, PathReport, Purpose, Report};
use crate::markers::TRACEFS_PLACES;
use crate::record::{CaptureFound, RecordFound, RecordState, state_dir};

/// Say what this device or host permits: tracefs, clocks, files, categories, and why not the rest
///
/// Every file that a recording uses, with what this user may do with it (r, w), its mode, owner and SELinux label, and what it is
/// for. Where something is refused the next line says by whom (mode, SELinux, or a kernel without it) and what would change that. Also what a
/// recorder that was killed left behind: changed settings, an unfinished capture.
#[derive(Parser)]
#[command(after_help = "\
Nothing is changed. Exit status: 0 where something can be recorded, else 1.

  adb shell /data/local/tmp/tracebridge doctor
  tracebridge doctor --json | jq -r '.paths[] | select(.reason) | .path + \": \" + .reason'")]
pub struct Args {
    /// Where tracefs is mounted. Without it, /sys/kernel/tracing, then /sys/kernel/debug/tracing
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
    /// Where recorders keep the kernel's saved settings. Default: the first writable of /data/local/tmp, /run, /tmp
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print it as JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// List the categories that this device supports and, for the rest, why not
///
/// Behind each stand the userspace tags and the kernel events that it switches on here (a group's name stands for all of its
/// events), and below it what it lacks here and why. The vendor's own, of /vendor/etc/atrace/atrace_categories.txt, are among them.
#[derive(Parser)]
#[command(after_help = "\
`record` also takes single events (sched/sched_switch) and whole groups of them (irq/*); the directory events/ in
tracefs has them all. Exit status: 0 where some category works, else 1.")]
pub struct ListArgs {
    #[command(flatten)]
    args: Args,
}

impl Args {
    fn examine(&self) -> Report {
        let state_dir = self.state_dir.clone().unwrap_or_else(state_dir);
        doctor::examine(self.tracefs.as_deref(), &TRACEFS_PLACES, &state_dir)
    }
}

/// Prints what there is and what is not.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let report = args.examine();
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        print(&report, &mut out)?;
    }
    Ok(if report.can_record() { Exit::Complete } else { Exit::Failed })
}

/// Prints the categories.
pub fn list(args: ListArgs) -> anyhow::Result<Exit> {
    let report = args.args.examine();
    let mut out = io::stdout().lock();
    if args.args.json {
        serde_json::to_writer_pretty(&mut out, &report.categories)?;
        writeln!(out)?;
    } else if report.tracefs.is_none() {
        no_tracefs(&report, &mut out)?;
    } else {
        categories(&report.categories, &mut out)?;
    }
    Ok(if report.categories.iter().any(|c| c.works) { Exit::Complete } else { Exit::Failed })
}

fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let Report { identity, machine, .. } = report;
    let selinux = match (&identity.domain, identity.selinux_enforcing) {
        (None, false) => "no SELinux".to_owned(),
        (domain, enforcing) => {
            let mode = if enforcing { "enforcing" } else { "permissive" };
            format!("SELinux {mode}, domain {}", domain.as_deref().unwrap_or("unknown"))
        }
    };
    let who = format!("{:?}", identity.who).to_lowercase();
    writeln!(out, "who      {who} (uid {}), {selinux}", identity.uid)?;
    writeln!(
        out,
        "machine  Linux {} {}, {} CPUs, pages of {} bytes; this binary is {}",
        machine.kernel, machine.arch, machine.cpus, machine.page_size, machine.abi
    )?;
    writeln!(
        out,
        "android  {}",
        machine.android.as_deref().unwrap_or("no: no system properties, so no userspace tags")
    )?;
    let Some(root) = &report.tracefs else { return no_tracefs(report, out) };
    writeln!(out, "tracefs  {}", root.display())?;
    let clock = report.clock.as_deref().unwrap_or("none of boot, mono and global");
    writeln!(out, "clock    {clock} (offered: {})", report.clocks.join(" "))?;
    writeln!(out, "tracers  {}", report.tracers.join(" "))?;
    let on = report.tracing_on.map_or("unknown", |on| if on { "on" } else { "off" });
    writeln!(out, "now      tracing is {on}; tags on: {}", report.tags_on.join(" "))?;
    report.records.iter().try_for_each(|r| record(r, out))?;
    for (purpose, title) in [
        (Purpose::Needed, "files without which nothing is recorded"),
        (Purpose::Useful, "files without which something is missing"),
        (Purpose::Special, "files for special options"),
    ] {
        writeln!(out, "\n{title}")?;
        let paths: Vec<_> = report.paths.iter().filter(|p| p.purpose == purpose).collect();
        // Each CPU has its own; usually they are all alike.
        for alike in paths.chunk_by(|a, b| any_cpu(&a.path) == any_cpu(&b.path) && a.reason == b.reason) {
            let name = if alike.len() > 1 { any_cpu(&alike[0].path) } else { alike[0].path.clone() };
            path(&name, alike[0], out)?;
        }
    }
    writeln!(out, "\ncategories")?;
    categories(&report.categories, out)?;
    writeln!(out)?;
    if report.can_record() {
        writeln!(out, "Recording works here.")
    } else {
        writeln!(out, "Recording does not work here: see the lines marked \"no\" among the needed files.")
    }
}

fn no_tracefs(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if let Some(closed) = &report.closed {
        return writeln!(out, "tracefs  {}: this user may not enter it; needs root", closed.display());
    }
    let places: Vec<_> = report.looked_in.iter().map(|p| p.display().to_string()).collect();
    writeln!(out, "tracefs  none at {}", places.join(" nor at "))?;
    writeln!(
        out,
        "         As root: mount -t tracefs nodev {}",
        places.first().map_or("DIR", String::as_str)
    )?;
    writeln!(out, "         If that fails the kernel was built without CONFIG_TRACING.")
}

fn record(record: &RecordFound, out: &mut impl Write) -> io::Result<()> {
    let RecordFound { path, pid, settings, capture, .. } = record;
    let what = match record.state {
        RecordState::Running => format!("recorder {pid} is at work"),
        RecordState::Flight => {
            "a flight recorder is on: `tracebridge dump` fetches, `tracebridge stop` ends it".to_owned()
        }
        RecordState::Killed if *settings == 0 => format!(
            "recorder {pid} was killed when the settings were back already; `tracebridge restore` forgets it"
        ),
        RecordState::Killed => format!(
            "recorder {pid} was killed and left {settings} settings changed: `tracebridge restore` puts them back"
        ),
        RecordState::EarlierBoot => {
            "left by a recorder before the last boot: means nothing any more".to_owned()
        }
    };
    writeln!(out, "record   {}: {what}", path.display())?;
    let Some(CaptureFound { path, bytes }) = capture else { return Ok(()) };
    let what = match record.state {
        RecordState::Running | RecordState::Flight => "is being written",
        RecordState::Killed | RecordState::EarlierBoot => {
            "was not finished; what is in it can be read: `tracebridge info` counts it, `convert` takes it"
        }
    };
    writeln!(out, "capture  {} ({bytes} bytes on the disk) {what}", path.display())
}

/// The path with `cpu*` for each CPU's own.
fn any_cpu(path: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    match path.split_once("per_cpu/cpu") {
        Some((before, after)) => format!("{before}per_cpu/cpu*{}", after.trim_start_matches(digits)),
        None => path.to_owned(),
    }
}

fn path(name: &str, report: &PathReport, out: &mut impl Write) -> io::Result<()> {
    let access = &report.access;
    let verdict = if report.works() { "ok" } else { "no" };
    let (r, w) = (if access.read { 'r' } else { '-' }, if access.write { 'w' } else { '-' });
    let label = access.label.as_deref().unwrap_or_default();
    let line = format!(
        "  {verdict}  {:<32} {r}{w} {:>4} {:<16} {label}  {}",
        name, access.mode, access.owner, report.what_for
    );
    writeln!(out, "{}", line.trim_end())?;
    match &report.reason {
        Some(reason) => writeln!(out, "      {reason}"),
        None => Ok(()),
    }
}

fn categories(all: &[CategoryReport], out: &mut impl Write) -> io::Result<()> {
    for category in all.iter().filter(|c| c.works) {
        let CategoryReport { name, description, tags, events, .. } = category;
        let mut has: Vec<String> = tags.iter().map(|tag| format!("tag {tag}")).collect();
        has.extend_from_slice(events);
        let line = format!("  ok  {name:<14} {description}: {}", has.join(" "));
        writeln!(out, "{}", line.trim_end_matches([':', ' ']))?;
        if let Some(reason) = &category.reason {
            writeln!(out, "{:21}{reason}", "")?;
        }
    }
    let mut rest: Vec<_> = all.iter().filter(|c| !c.works).collect();
    while let Some(first) = rest.first().copied() {
        // Many fail for one reason: one line for all of them.
        let (same, others) = rest.into_iter().partition::<Vec<_>, _>(|c| c.reason == first.reason);
        let names: Vec<_> = same.iter().map(|c| c.name.as_str()).collect();
        let reason = first.reason.as_deref().unwrap_or_default();
        match names[..] {
            [one] => writeln!(out, "  no  {one:<14} {} ({reason})", first.description)?,
            _ => writeln!(out, "  no  {} ({reason})", names.join(" "))?,
        }
        rest = others;
    }
    Ok(())
}
