//! `doctor` and `list`: print what this device permits.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;
use serde::Serialize;

use crate::cli::Exit;
use crate::console::TerminalWriter;
use crate::doctor::{self, CategoryReport, CauseReport, DoctorReport, FilePurpose, PathReport, Scope};
use crate::record::saved_settings::{SettingsFileReport, SettingsFileState, UnfinishedCapture};

/// Say what this device or host permits: tracefs, clocks, files, categories, and why not the rest
///
/// The report has every file that a recording uses, with what this user may do with it (r, w), its mode,
/// owner and SELinux label, and what it is for. Files that are refused for the same reason stand together;
/// the line below them says what refuses (mode, SELinux, or a kernel without the file) and what would change
/// that. Then come the categories, and the causes that `why` can tell on the desk. The report also shows what
/// a killed recorder has left behind: changed settings, an unfinished capture.
#[derive(Parser)]
#[command(after_help = "\
Nothing is changed. Exit status: 0 where something can be recorded, else 1.

  adb shell /data/local/tmp/tracebridge doctor
  tracebridge doctor --json | jq -r '.paths[] | select(.reason) | .path + \": \" + .reason'")]
pub struct DoctorArgs {
    /// Where tracefs is mounted. Without it, /sys/kernel/tracing, then /sys/kernel/debug/tracing
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
    /// Where recorders keep the kernel's saved settings. Default: this user's directory in /run, /data/adb,
    /// /data/local/tmp or /tmp
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Print the report as JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// List the categories that this device supports and, for the rest, why not
///
/// Each category is followed by the userspace tags and the kernel events that it switches on here (a group's
/// name stands for all of its events). The line below it says which of its events are missing here, and why.
/// The list includes the vendor's own categories (/vendor/etc/atrace/atrace_categories.txt).
#[derive(Parser)]
#[command(after_help = "\
`record` also takes single events (sched/sched_switch) and whole groups of them (irq/*); the directory events/ in
tracefs has them all. Exit status: 0 where some category works, else 1.")]
pub struct ListArgs {
    #[command(flatten)]
    args: DoctorArgs,
}

impl DoctorArgs {
    fn examine(&self, scope: Scope) -> DoctorReport {
        doctor::examine(self.tracefs.as_deref(), self.state_dir.as_deref(), scope)
    }
}

/// Runs `doctor`.
pub fn run(args: DoctorArgs) -> anyhow::Result<Exit> {
    let report = args.examine(Scope::All);
    let mut out = TerminalWriter::new(io::stdout().lock());
    if args.json {
        print_json(&report, &mut out)?;
    } else {
        print_report(&report, &mut out)?;
    }
    out.flush()?;
    Ok(if report.can_record() { Exit::Complete } else { Exit::Failed })
}

/// Runs `list`.
pub fn list(args: ListArgs) -> anyhow::Result<Exit> {
    let report = args.args.examine(Scope::Categories);
    let mut out = TerminalWriter::new(io::stdout().lock());
    if args.args.json {
        print_json(&report.categories, &mut out)?;
    } else if report.tracefs.is_none() {
        print_no_tracefs(&report, &mut out)?;
    } else {
        print_categories(&report.categories, &mut out)?;
    }
    out.flush()?;
    Ok(if report.categories.iter().any(|c| c.works) { Exit::Complete } else { Exit::Failed })
}

/// Prints JSON. The text is complete before it is written, so that a failure to write stays an [`io::Error`]:
/// serde_json would hide a broken pipe in an error of its own.
fn print_json(value: &impl Serialize, out: &mut impl Write) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(out.write_all(text.as_bytes())?)
}

fn print_report(report: &DoctorReport, out: &mut impl Write) -> io::Result<()> {
    let DoctorReport { identity, machine, .. } = report;
    let selinux = match (&identity.domain, identity.selinux_enforcing) {
        (None, false) => "no SELinux".to_owned(),
        (domain, enforcing) => {
            let mode = if enforcing { "enforcing" } else { "permissive" };
            format!("SELinux {mode}, domain {}", domain.as_deref().unwrap_or("unknown"))
        }
    };
    let who = format!("{:?}", identity.kind).to_lowercase();
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
    let Some(root) = &report.tracefs else { return print_no_tracefs(report, out) };
    writeln!(out, "tracefs  {}", root.display())?;
    if report.is_app() {
        return print_app(report, out);
    }
    let clock = report.clock.as_deref().unwrap_or("unknown: trace_clock cannot be read");
    writeln!(out, "clock    {clock} (offered: {})", report.clocks.join(" "))?;
    let tracer = report.tracer.as_deref().unwrap_or("unknown");
    if report.tracers.is_empty() {
        writeln!(out, "tracers  hidden from this user; on now: {tracer}")?;
    } else {
        writeln!(out, "tracers  {} (on now: {tracer})", report.tracers.join(" "))?;
    }
    let on = report.tracing_on.map_or("unknown", |on| if on { "on" } else { "off" });
    writeln!(out, "now      tracing is {on}; tags on: {}", report.tags_on.join(" "))?;
    report.records.iter().try_for_each(|r| print_settings_file(r, out))?;
    for (purpose, title) in [
        (FilePurpose::Needed, "files without which nothing is recorded"),
        (FilePurpose::Useful, "files without which something is missing"),
        (FilePurpose::Special, "files for special options"),
    ] {
        writeln!(out)?;
        writeln!(out, "{title}")?;
        let paths: Vec<_> = report.paths.iter().filter(|p| p.purpose == purpose).collect();
        print_paths(paths, out)?;
    }
    writeln!(out)?;
    writeln!(out, "categories")?;
    print_categories(&report.categories, out)?;
    writeln!(out)?;
    writeln!(out, "what `why` can tell of a recording made here")?;
    report.causes.iter().try_for_each(|cause| print_cause(cause, out))?;
    writeln!(out)?;
    if report.can_record() {
        writeln!(out, "Recording works here.")
    } else {
        writeln!(out, "Recording does not work here: see the lines marked \"no\" among the needed files.")
    }
}

/// Prints what an app may do.
fn print_app(report: &DoctorReport, out: &mut impl Write) -> io::Result<()> {
    for path in &report.paths {
        print_path(&path.path, path, out)?;
        path.reason.iter().try_for_each(|reason| writeln!(out, "      {reason}"))?;
    }
    let markers =
        if report.paths.iter().all(PathReport::works) { "Markers work here" } else { "Nothing works here" };
    writeln!(
        out,
        "\n{markers}: an app may write markers (`tracebridge mark`, `wrap --no-record`) and nothing else. A recording \
         that the shell user makes meanwhile holds them: adb shell tracebridge record"
    )
}

/// Prints the files of one section. Those that cannot be used for the same reason stand together, with the
/// reason below them.
fn print_paths(mut paths: Vec<&PathReport>, out: &mut impl Write) -> io::Result<()> {
    while let Some(first) = paths.first().copied() {
        let is_same_file = |path: &PathReport| any_cpu(&path.path) == any_cpu(&first.path);
        // Of the files that can be used, only those that every CPU has are printed as one.
        let belongs = |path: &&PathReport| match &first.reason {
            Some(reason) => path.reason.as_ref() == Some(reason),
            None => path.reason.is_none() && is_same_file(path),
        };
        let (same, others) = paths.into_iter().partition::<Vec<_>, _>(belongs);
        for cpus in same.chunk_by(|a, b| any_cpu(&a.path) == any_cpu(&b.path)) {
            let name = if cpus.len() > 1 { any_cpu(&cpus[0].path) } else { cpus[0].path.clone() };
            print_path(&name, cpus[0], out)?;
        }
        first.reason.iter().try_for_each(|reason| writeln!(out, "      {reason}"))?;
        paths = others;
    }
    Ok(())
}

fn print_no_tracefs(report: &DoctorReport, out: &mut impl Write) -> io::Result<()> {
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

fn print_settings_file(file: &SettingsFileReport, out: &mut impl Write) -> io::Result<()> {
    let SettingsFileReport { path, pid, settings, capture, reason, .. } = file;
    if let Some(reason) = reason {
        return writeln!(out, "record   {reason}");
    }
    let what = match file.state {
        SettingsFileState::Running => format!("recorder {pid} is running"),
        SettingsFileState::Flight => {
            "a flight recorder is on: `tracebridge dump` takes its events out, `tracebridge stop` ends it"
                .to_owned()
        }
        SettingsFileState::Killed if *settings == 0 => format!(
            "recorder {pid} was killed after it had put its settings back; `tracebridge restore` removes this file"
        ),
        SettingsFileState::Killed => format!(
            "recorder {pid} was killed and left {settings} settings changed: `tracebridge restore` puts them back"
        ),
        SettingsFileState::EarlierBoot => {
            "left by a recorder before the last boot: there is nothing to put back".to_owned()
        }
        SettingsFileState::Unusable => "not a file of a recorder".to_owned(),
    };
    writeln!(out, "record   {}: {what}", path.display())?;
    let Some(UnfinishedCapture { path, bytes }) = capture else { return Ok(()) };
    let what = match file.state {
        SettingsFileState::Running | SettingsFileState::Flight => "is being written",
        SettingsFileState::Killed | SettingsFileState::EarlierBoot | SettingsFileState::Unusable => {
            "was not finished; what is in it can be read: `tracebridge info` counts its events, `merge` converts them"
        }
    };
    writeln!(out, "capture  {} ({bytes} bytes on the disk) {what}", path.display())
}

/// The path with `cpu*` in place of the number of a CPU.
fn any_cpu(path: &str) -> String {
    let digits = |c: char| c.is_ascii_digit();
    match path.split_once("per_cpu/cpu") {
        Some((before, after)) => format!("{before}per_cpu/cpu*{}", after.trim_start_matches(digits)),
        None => path.to_owned(),
    }
}

fn print_path(name: &str, report: &PathReport, out: &mut impl Write) -> io::Result<()> {
    let access = &report.access;
    let verdict = if report.works() { "ok" } else { "no" };
    let r = if access.read { 'r' } else { '-' };
    let w = if access.write { 'w' } else { '-' };
    let label = access.label.as_deref().unwrap_or_default();
    let line = format!(
        "  {verdict}  {:<32} {r}{w} {:>4} {:<16} {label}  {}",
        name, access.mode, access.owner, report.what_for
    );
    writeln!(out, "{}", line.trim_end())
}

fn print_cause(cause: &CauseReport, out: &mut impl Write) -> io::Result<()> {
    let CauseReport { told, category, .. } = cause;
    match &cause.reason {
        None => writeln!(out, "  ok  {category:<14} {told}"),
        Some(reason) => writeln!(out, "  no  {category:<14} {told} ({reason})"),
    }
}

fn print_categories(all: &[CategoryReport], out: &mut impl Write) -> io::Result<()> {
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
        // Categories that fail for the same reason share one line.
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
