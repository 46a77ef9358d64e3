//! Brings a trace buffer into the state a recording needs, through the guard that puts everything back.

use super::events::Wanted;
use super::{Error, EventName, Settings};
use crate::android::{NO_PROPERTIES, Properties, UserspaceRequest};
use crate::clock::Clock;

/// What happens when the buffer is full and nobody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest events give way: a ring.
    Overwrite,
    /// New events are not written: stop when full.
    Stop,
}

/// What a recording needs of the kernel.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The events, with their filters.
    pub events: Vec<Wanted>,
    /// Userspace tags and apps; `None` where none were asked for.
    pub userspace: Option<UserspaceRequest>,
    /// Kernel functions to trace.
    pub functions: Option<Functions>,
    /// ftrace's name of a clock; without it the first that this kernel has of [`CLOCKS`].
    pub clock: Option<String>,
    /// KiB per CPU.
    pub buffer_kb: u64,
    /// What happens when the buffer is full.
    pub when_full: WhenFull,
    /// Leave the recorder's own threads out.
    pub exclude_self: bool,
}

/// Kernel functions to trace.
#[derive(Debug, Clone)]
pub struct Functions {
    /// Their names; `*` at either end matches any.
    pub names: Vec<String>,
    /// With what they call, and how long each takes.
    pub graph: bool,
}

/// What the kernel was set to.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The clock of the events' times.
    pub clock: Clock,
    /// The events that are on: those asked for, and any that this process may not turn off.
    pub events: Vec<EventName>,
    /// What could not be had, each with the reason; the recording works without.
    pub notes: Vec<String>,
    /// Whether a reader can sleep until a buffer is this full, percent.
    pub watermark: Option<u32>,
}

/// The clocks to choose from, best first: `boot` goes on in suspend and is what Perfetto records in; `mono` is older
/// (Linux 3.17 against 4.10); `global` is everywhere.
pub const CLOCKS: [&str; 3] = ["boot", "mono", "global"];

/// Entries of the kernel's tid-to-name map during a recording. Its default of 128 forgets most of a phone's threads.
const SAVED_CMDLINES: u32 = 8192;

/// How full a buffer gets before its reader is woken, percent.
const WATERMARK: u32 = 50;

/// Stops tracing, sets everything up and empties the buffer. Tracing is still off afterwards: see [`start`].
pub fn apply(settings: &mut Settings, setup: &Setup) -> Result<Applied, Error> {
    let tracefs = settings.tracefs().clone();
    let mut notes = Vec::new();
    // First, and so put back last: Perfetto's traced_probes lets go of the kernel before anything is set there, and
    // comes back when everything is as it left it.
    if let Some(request) = &setup.userspace {
        match Properties::here() {
            Some(properties) => settings.set_userspace(&properties, request)?,
            None => notes.push(NO_PROPERTIES.to_owned()),
        }
    }
    settings.hold("tracing_on")?;
    tracefs.write("tracing_on", "0")?;

    let mut optional = Optional { settings, notes: &mut notes };
    optional.names();
    let watermark =
        optional.set("buffer_percent", &WATERMARK.to_string(), "buffers are looked at by the clock");
    if setup.exclude_self {
        optional.without_self();
    }
    if let Some(instance) = tracefs.instance_name() {
        let without = "atrace markers go to the top buffer alone (Linux before 6.14)";
        if !optional.set("options/copy_trace_marker", "1", without) {
            notes.push(format!("instance {instance}: {without}"));
        }
    }
    set_tracer(settings, setup.functions.as_ref(), &mut notes)?;
    let clock = set_clock(settings, setup.clock.as_deref())?;
    set_buffer_size(settings, setup.buffer_kb)?;
    let overwrite = if setup.when_full == WhenFull::Overwrite { "1" } else { "0" };
    settings.set("options/overwrite", overwrite)?;
    let events = set_events(settings, &setup.events, &mut notes)?;
    tracefs.clear()?;
    Ok(Applied { clock, events, notes, watermark: watermark.then_some(WATERMARK) })
}

/// Knobs that may not be there (in an instance, in an old kernel) or not be permitted (to a phone's shell).
struct Optional<'a> {
    settings: &'a mut Settings,
    notes: &'a mut Vec<String>,
}

impl Optional<'_> {
    /// Sets one; where that is refused, notes what is missing without it. Whether it is set.
    fn set(&mut self, knob: &str, value: &str, without: &str) -> bool {
        if !self.settings.tracefs().has(knob) {
            return false;
        }
        let set = self.settings.set(knob, value);
        if let Err(error) = &set {
            self.notes.push(format!("{error}: {without}"));
        }
        set.is_ok()
    }

    /// Has the kernel remember threads' names and processes. These knobs are the top buffer's, for all instances.
    fn names(&mut self) {
        let top = if self.settings.tracefs().instance_name().is_some() { "../../" } else { "" };
        let knob = |name: &str| format!("{top}{name}");
        self.set(&knob("options/record-cmd"), "1", "names of threads that end are missing");
        self.set(&knob("options/record-tgid"), "1", "processes of threads that end are missing");
        // Writing the size forgets the names known so far, so: before any event, and not when it is large already.
        let size = knob("saved_cmdlines_size");
        let now = self.settings.tracefs().read(&size).ok().and_then(|n| n.parse().ok());
        if now.is_none_or(|now: u32| now < SAVED_CMDLINES) {
            self.set(&size, &SAVED_CMDLINES.to_string(), "names of some threads that end are missing");
        }
    }

    /// Leaves the recorder's own threads out of the events.
    fn without_self(&mut self) {
        let without = "the recorder's own events are not left out (Linux before 5.7)";
        let knob = "set_event_notrace_pid";
        if !self.settings.tracefs().has(knob) {
            self.notes.push(without.to_owned());
        }
        self.set(knob, &std::process::id().to_string(), without);
    }
}

fn set_tracer(
    settings: &mut Settings,
    functions: Option<&Functions>,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let Some(Functions { names, graph }) = functions else {
        Optional { settings, notes }.set("current_tracer", "nop", "a tracer that is on stays on");
        return Ok(());
    };
    let (tracer, list) =
        if *graph { ("function_graph", "set_graph_function") } else { ("function", "set_ftrace_filter") };
    // Instances have no list of their own for the graph tracer before Linux 6.
    let (offered, _) = settings.tracefs().choices("available_tracers")?;
    if !offered.iter().any(|o| o == tracer) {
        let (asked, offered) = (tracer.to_owned(), offered.join(" "));
        return Err(Error::NotOffered { knob: "available_tracers", asked, offered });
    }
    settings.set(list, &names.join(" "))?;
    // The kernel takes names that it does not know without a word, and an empty list for "all".
    let taken = settings.tracefs().read(list)?;
    let taken: Vec<&str> = taken.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let is_there = |name: &str| match name.contains('*') {
        true => taken.iter().any(|t| !t.starts_with('#')),
        false => taken.contains(&name),
    };
    if let Some(missing) = names.iter().find(|name| !is_there(name)) {
        let why =
            format!("the kernel cannot trace a function {missing} (available_filter_functions lists them)");
        return Err(Error::Nothing(why));
    }
    settings.set("current_tracer", tracer).map(drop)
}

/// Turns tracing on. The buffer is empty at that moment.
pub fn start(settings: &Settings) -> Result<(), Error> {
    settings.tracefs().write("tracing_on", "1")
}

/// Turns tracing off; what is in the buffer stays there.
pub fn stop(settings: &Settings) -> Result<(), Error> {
    settings.tracefs().write("tracing_on", "0")
}

fn set_clock(settings: &mut Settings, asked: Option<&str>) -> Result<Clock, Error> {
    let (offered, chosen) = settings.tracefs().choices("trace_clock")?;
    let has = |name: &str| offered.iter().any(|o| o == name);
    let name = match asked {
        Some(asked) if has(asked) => asked,
        Some(asked) => {
            let (asked, offered) = (asked.to_owned(), offered.join(" "));
            return Err(Error::NotOffered { knob: "trace_clock", asked, offered });
        }
        None => CLOCKS.into_iter().find(|c| has(c)).or(chosen.as_deref()).unwrap_or("local"),
    };
    // Only when it changes (Settings sees to that): a write empties the buffer even if the clock stays.
    settings.set("trace_clock", name)?;
    Ok(Clock::from_trace_clock(name))
}

fn set_buffer_size(settings: &mut Settings, kb: u64) -> Result<(), Error> {
    let tracefs = settings.tracefs().clone();
    // `X`: the CPUs' buffers differ in size, so each is saved on its own.
    if tracefs.read("buffer_size_kb")?.starts_with('X') {
        for cpu in tracefs.cpus()? {
            settings.set(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &kb.to_string())?;
        }
        return Ok(());
    }
    settings.set("buffer_size_kb", &kb.to_string()).map(drop)
}

/// Turns on the events that are wanted and off those that are not.
fn set_events(
    settings: &mut Settings,
    wanted: &[Wanted],
    notes: &mut Vec<String>,
) -> Result<Vec<EventName>, Error> {
    let before = settings.tracefs().enabled_events()?;
    let mut on: Vec<EventName> = Vec::new();
    for event in before {
        if wanted.iter().any(|w| w.event == event) {
            continue;
        }
        if let Err(error) = settings.set(&format!("{}/enable", event.dir()), "0") {
            notes.push(format!("{error}: {event} stays on"));
            on.push(event);
        }
    }
    for Wanted { event, filter } in wanted {
        let knob = format!("{}/filter", event.dir());
        // An old filter would silently hide events.
        if filter.is_some() || settings.tracefs().read(&knob).is_ok_and(|f| f != "none") {
            settings.set(&knob, filter.as_deref().unwrap_or("0"))?;
        }
        match settings.set(&format!("{}/enable", event.dir()), "1") {
            Ok(_) => on.push(event.clone()),
            Err(error) => notes.push(format!("{error}: {event} is not recorded")),
        }
    }
    if on.is_empty() && !wanted.is_empty() {
        return Err(Error::Nothing(notes.join("; ")));
    }
    on.sort_unstable();
    on.dedup();
    Ok(on)
}
