//! Configures a trace buffer for a recording. Every setting is changed through the [`SettingsGuard`], which
//! puts the old value back.

use super::events::{AskedEvents, SelectedEvent, switch_events};
use super::{EventName, RecordError, SettingsGuard, Tracefs, is_option_on};
use crate::android::{NO_PROPERTIES, Properties, UserspaceRequest};
use crate::clock::Clock;
use crate::step_log::{self, print_step};

/// The fate of new events when a buffer is full and nobody reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// New events overwrite the oldest: the buffer is a ring.
    Overwrite,
    /// New events are dropped.
    Stop,
}

/// The configuration of a trace buffer that a recording asks for.
#[derive(Debug, Clone)]
pub(crate) struct TracefsConfig {
    pub(crate) events: Vec<SelectedEvent>,
    /// The names that were asked for, with their events.
    pub(crate) asked: Vec<AskedEvents>,
    /// Userspace tags and apps; `None` if none were asked for.
    pub(crate) userspace: Option<UserspaceRequest>,
    pub(crate) functions: Option<FunctionTracing>,
    /// ftrace's name of the trace clock; `None` leaves the choice to [`choose_clock`].
    pub(crate) clock: Option<String>,
    /// The size of each CPU's buffer, KiB.
    pub(crate) buffer_kb: u64,
    pub(crate) when_full: WhenFull,
    /// Whether the events of the recorder's own threads are left out.
    pub(crate) exclude_self: bool,
    /// Whether the kernel's own text is to name the process of each thread, as AOSP's atrace has it.
    /// Otherwise an event tells whose thread each new one is: see [`NEW_THREAD_EVENTS`].
    pub(crate) process_in_text: bool,
}

/// Tracing of kernel functions.
#[derive(Debug, Clone)]
pub(crate) struct FunctionTracing {
    /// The functions' names; `*` at either end matches any text.
    pub(crate) names: Vec<String>,
    /// Whether the functions that these call are traced too, with the duration of each call
    /// (`function_graph`).
    pub(crate) graph: bool,
}

/// The configuration that the kernel has accepted.
#[derive(Debug, Clone)]
pub(crate) struct AppliedConfig {
    /// The trace clock.
    pub(crate) clock: Clock,
    /// The events that are enabled: the requested ones, those that name threads where the kernel hides its
    /// list of names, and any that this process may not disable. A recording may add those that are switched
    /// on later, which need a description from the begin.
    pub(crate) events: Vec<EventName>,
    /// The names that were asked for, with those of their events that are on. A name without such an event
    /// is not among them: a note says why.
    pub(crate) asked: Vec<AskedEvents>,
    /// One sentence for each setting that the kernel refused but that the recording can do without.
    pub(crate) notes: Vec<String>,
    /// See [`crate::trace_dat::RecorderInfo::restricted`].
    pub(crate) restricted: bool,
    /// How full a buffer is when its reader is woken, percent; `None` if the kernel does not support this.
    pub(crate) watermark: Option<u32>,
}

/// Trace clocks to record in, best first. `boot` (Linux 4.10) counts through suspend and is the clock that
/// Perfetto records in. `mono` exists since Linux 3.17, `global` in every kernel.
const PREFERRED_CLOCKS: [&str; 3] = ["boot", "mono", "global"];

/// The number of threads whose names the kernel remembers during a recording. The kernel's default of 128 is
/// too small for a phone.
const SAVED_CMDLINES: u32 = 8192;

/// How full a buffer is when its reader is woken, percent. It is the kernel's default too.
const WATERMARK_PERCENT: u32 = 50;

/// Events that name threads as they are made, renamed and ended. They are recorded where this user may not
/// read the kernel's list of names (`saved_cmdlines`), as on a locked phone.
const NAMING_EVENTS: [(&str, &str); 3] =
    [("sched", "sched_process_exit"), ("task", "task_newtask"), ("task", "task_rename")];

/// Events that tell whose thread each new one is. The processes of all others are read from `/proc`.
///
/// The kernel's own option for that, `record-tgid`, is used by the drop-in `atrace` alone. Its counter loses
/// its balance when an instance's events are switched while the option is on (seen with Linux 6.12 and 6.18;
/// `trace_event_enable_tgid_record`): then the kernel records neither names nor processes until it boots
/// again, and its table keeps the processes of earlier threads with the same ids.
const NEW_THREAD_EVENTS: [(&str, &str); 1] = [("task", "task_newtask")];

/// The trace clock of a recording that names none: the best of the clocks that the kernel offers, else the
/// current one.
pub(crate) fn choose_clock<'a>(offered: &[String], current: Option<&'a str>) -> &'a str {
    let best = PREFERRED_CLOCKS.into_iter().find(|clock| offered.iter().any(|o| o == clock));
    best.or(current).unwrap_or("local")
}

/// Stops tracing, configures the trace buffer and empties it. Tracing is still off afterwards: see [`start`].
pub(crate) fn apply(
    settings: &mut SettingsGuard,
    config: &TracefsConfig,
) -> Result<AppliedConfig, RecordError> {
    let tracefs = settings.tracefs().clone();
    let mut notes = Vec::new();
    // The properties are set first, and so are put back last. They make Perfetto's traced_probes release the
    // kernel's buffer before any setting changes, and use it again when every setting is back.
    if let Some(request) = &config.userspace {
        match Properties::find() {
            Some(properties) => settings.set_userspace(&properties, request)?,
            None => notes.push(NO_PROPERTIES.to_owned()),
        }
    }
    settings.save_value("tracing_on")?;
    tracefs.write("tracing_on", "0")?;

    let mut optional = OptionalKnobs { settings, notes: &mut notes };
    optional.remember_names();
    let has_watermark = optional.set_watermark();
    if config.exclude_self {
        optional.exclude_self();
    }
    if let Some(instance) = tracefs.instance_name() {
        let without = "atrace markers go to the top-level buffer alone (Linux before 6.14)";
        if !optional.set("options/copy_trace_marker", "1", without) {
            notes.push(format!("instance {instance}: {without}"));
        }
    }
    set_tracer(settings, config.functions.as_ref(), &mut notes)?;
    let clock = set_clock(settings, config.clock.as_deref())?;
    set_buffer_size(settings, config.buffer_kb, &mut notes)?;
    if step_log::is_enabled() {
        let size = tracefs.read("buffer_size_kb").unwrap_or_default();
        print_step(format_args!(
            "buffers: {} KiB for each CPU were asked for, {size} are there",
            config.buffer_kb
        ));
    }
    let overwrite = if config.when_full == WhenFull::Overwrite { "1" } else { "0" };
    settings.set("options/overwrite", overwrite)?;
    let mut events = switch_events(settings, &config.events, &mut notes)?;
    let mut asked = config.asked.clone();
    asked.iter_mut().for_each(|asked| asked.events.retain(|event| events.contains(event)));
    asked.retain(|asked| !asked.events.is_empty());
    let restricted = !tracefs.has_names();
    let naming_events = naming_events(&tracefs);
    if config.process_in_text {
        let top = if tracefs.instance_name().is_some() { "../../" } else { "" };
        let without = "processes of threads that end are missing";
        OptionalKnobs { settings, notes: &mut notes }.set(&format!("{top}options/record-tgid"), "1", without);
    } else {
        add_events(settings, naming_events, &mut events);
    }
    tracefs.clear()?;
    let reading = if has_watermark { "the kernel wakes the reader" } else { "read at fixed intervals" };
    print_step(format_args!("events: {} are on; {reading}", events.len()));
    Ok(AppliedConfig {
        clock,
        events,
        asked,
        notes,
        restricted,
        watermark: has_watermark.then_some(WATERMARK_PERCENT),
    })
}

/// Switches the events of a recording that runs to these, and the tags, unless they stay. Returns a sentence
/// for each event that is not as it should be.
pub(crate) fn switch(
    settings: &mut SettingsGuard,
    events: &[SelectedEvent],
    userspace: Option<&UserspaceRequest>,
) -> Result<Vec<String>, RecordError> {
    let naming = naming_events(settings.tracefs());
    let naming = naming.into_iter().filter(|event| !events.iter().any(|other| other.event == *event));
    let naming = naming.map(|event| SelectedEvent { event, filter: None });
    let selected: Vec<SelectedEvent> = events.iter().cloned().chain(naming).collect();
    let mut notes = Vec::new();
    switch_events(settings, &selected, &mut notes)?;
    if let Some(userspace) = userspace
        && let Some(properties) = Properties::find()
    {
        settings.set_userspace(&properties, userspace)?;
    }
    Ok(notes)
}

/// The events that name threads, as far as this user may switch them.
fn naming_events(tracefs: &Tracefs) -> Vec<EventName> {
    let names: &[(&str, &str)] = if tracefs.has_names() { &NEW_THREAD_EVENTS } else { &NAMING_EVENTS };
    let events = names.iter().map(|(group, name)| EventName::new(*group, *name));
    events.filter(|event| tracefs.may_write(event.enable())).collect()
}

/// Turns tracing on. The buffer is empty at that moment.
pub(crate) fn start(settings: &mut SettingsGuard) -> Result<(), RecordError> {
    settings.set_own("tracing_on", "1");
    settings.tracefs().write("tracing_on", "1")
}

/// Turns tracing off. The buffer keeps its content.
pub(crate) fn stop(settings: &SettingsGuard) -> Result<(), RecordError> {
    settings.tracefs().write("tracing_on", "0")
}

/// Sets files that may not exist (in an instance, in an old kernel) or that a phone's shell may not write.
struct OptionalKnobs<'a> {
    settings: &'a mut SettingsGuard,
    notes: &'a mut Vec<String>,
}

impl OptionalKnobs<'_> {
    /// Sets a file and returns whether that worked. A refusal becomes a note that ends with `without`: what
    /// is missing from the recording then.
    fn set(&mut self, knob: &str, value: &str, without: &str) -> bool {
        let tracefs = self.settings.tracefs();
        if !tracefs.has(knob) {
            return false;
        }
        let set = tracefs.check_writable(knob).and_then(|()| self.settings.set(knob, value));
        set.map_err(|error| self.notes.push(format!("{}: {without}", error.explained()))).is_ok()
    }

    /// Has the kernel wake a reader when its buffer is filled to the watermark. Returns whether it does.
    fn set_watermark(&mut self) -> bool {
        let knob = "buffer_percent";
        let tracefs = self.settings.tracefs();
        // The shell user of Android 9 to 14 may not use the file. Nobody is known to change it from its
        // default.
        if tracefs.has(knob) && !tracefs.may_write(knob) {
            return true;
        }
        self.set(knob, &WATERMARK_PERCENT.to_string(), "buffers are read at fixed intervals instead")
    }

    /// Whether an option of the trace buffer is on by the list of all options, which more users may read than
    /// the file of the option. `None` if this user may not read it either.
    fn is_option_on(&self, top: &str, name: &str) -> Option<bool> {
        let options = self.settings.tracefs().read(format!("{top}trace_options")).ok()?;
        is_option_on(&options, name)
    }

    /// Makes the kernel remember the names of threads. These settings belong to the top-level buffer and hold
    /// for all instances.
    fn remember_names(&mut self) {
        let top = if self.settings.tracefs().instance_name().is_some() { "../../" } else { "" };
        let knob = |name: &str| format!("{top}{name}");
        if self.is_option_on(top, "record-cmd") != Some(true) {
            self.set(&knob("options/record-cmd"), "1", "names of threads that end are missing");
        }
        // Writing the size makes the kernel forget the names it knows. So the size is written before any
        // event is enabled, and only if it is too small.
        let size = knob("saved_cmdlines_size");
        let current = self.settings.tracefs().read(&size).ok().and_then(|n| n.parse().ok());
        if current.is_none_or(|current: u32| current < SAVED_CMDLINES) {
            self.set(&size, &SAVED_CMDLINES.to_string(), "names of some threads that end are missing");
        }
    }

    /// Leaves the events of the recorder's own threads out of the trace.
    fn exclude_self(&mut self) {
        let without = "the recorder's own events are not left out";
        let knob = "set_event_notrace_pid";
        if !self.settings.tracefs().has(knob) {
            self.notes.push(format!("{without} (Linux before 5.7)"));
        }
        self.set(knob, &std::process::id().to_string(), without);
    }
}

fn set_tracer(
    settings: &mut SettingsGuard,
    functions: Option<&FunctionTracing>,
    notes: &mut Vec<String>,
) -> Result<(), RecordError> {
    let Some(FunctionTracing { names, graph }) = functions else {
        let tracefs = settings.tracefs();
        if tracefs.may_write("current_tracer") {
            OptionalKnobs { settings, notes }.set("current_tracer", "nop", "a tracer that is on stays on");
        } else if let Some(tracer) = tracefs.tracer_of_trace().filter(|tracer| tracer != "nop") {
            notes.push(format!(
                "the tracer {tracer} is on, and this user may not switch it off: its entries are recorded too"
            ));
        }
        return Ok(());
    };
    // An instance has no list of its own for the graph tracer before Linux 6.
    let (tracer, list) =
        if *graph { ("function_graph", "set_graph_function") } else { ("function", "set_ftrace_filter") };
    let (offered, _) = settings.tracefs().choices("available_tracers")?;
    if !offered.iter().any(|o| o == tracer) {
        return Err(not_offered("available_tracers", tracer, &offered));
    }
    settings.set(list, &names.join(" "))?;
    // The kernel ignores names that it does not know without an error, and takes an empty list for "all
    // functions".
    let accepted = settings.tracefs().read(list)?;
    let accepted: Vec<&str> = accepted.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let is_accepted = |name: &str| {
        if name.contains('*') {
            accepted.iter().any(|t| !t.starts_with('#'))
        } else {
            accepted.contains(&name)
        }
    };
    if let Some(missing) = names.iter().find(|name| !is_accepted(name)) {
        return Err(RecordError::NothingAvailable(format!(
            "the kernel cannot trace a function {missing} (available_filter_functions lists them)"
        )));
    }
    settings.set("current_tracer", tracer).map(drop)
}

fn not_offered(knob: &'static str, asked: &str, offered: &[String]) -> RecordError {
    RecordError::NotOffered { knob, asked: asked.to_owned(), offered: offered.join(" ") }
}

fn set_clock(settings: &mut SettingsGuard, asked: Option<&str>) -> Result<Clock, RecordError> {
    let (offered, current) = settings.tracefs().choices("trace_clock")?;
    let name = match asked {
        Some(asked) if offered.iter().any(|o| o == asked) => asked,
        Some(asked) => return Err(not_offered("trace_clock", asked, &offered)),
        None => choose_clock(&offered, current.as_deref()),
    };
    // A write empties the buffer even if the clock stays the same; the guard writes only a value that
    // differs.
    settings.set("trace_clock", name)?;
    print_step(format_args!("clock: {name}, of those offered: {}", offered.join(" ")));
    Ok(Clock::from_trace_clock(name))
}

fn set_buffer_size(
    settings: &mut SettingsGuard,
    kb: u64,
    notes: &mut Vec<String>,
) -> Result<(), RecordError> {
    let tracefs = settings.tracefs().clone();
    // The kernel shows `X` if the CPUs' buffers differ in size. Then each size is saved and set on its own.
    if !tracefs.read("buffer_size_kb")?.starts_with('X') {
        return settings.set("buffer_size_kb", &kb.to_string()).map(drop);
    }
    let knobs: Vec<String> =
        tracefs.cpus()?.iter().map(|cpu| format!("per_cpu/cpu{cpu}/buffer_size_kb")).collect();
    if let Some(error) = knobs.iter().find_map(|knob| tracefs.check_writable(knob).err()) {
        notes.push(format!("the CPUs' buffers differ in size and keep their sizes: {}", error.explained()));
        return Ok(());
    }
    knobs.iter().try_for_each(|knob| settings.set(knob, &kb.to_string()).map(drop))
}

/// Switches further events on.
fn add_events(settings: &mut SettingsGuard, wanted: Vec<EventName>, events: &mut Vec<EventName>) {
    for event in wanted {
        if !events.contains(&event) && settings.set(&event.enable(), "1").is_ok() {
            events.push(event);
        }
    }
    events.sort_unstable();
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Tracefs;
    use super::*;
    use crate::record::saved_settings::StateDir;

    #[test]
    fn the_best_clock_that_the_kernel_offers_is_chosen() {
        let offered = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(choose_clock(&offered("local global mono mono_raw boot"), Some("local")), "boot");
        assert_eq!(choose_clock(&offered("local global uptime mono"), Some("local")), "mono");
        assert_eq!(choose_clock(&offered("local counter"), Some("counter")), "counter");
        assert_eq!(choose_clock(&[], None), "local");
    }

    /// The files of a small tracefs: two events, one of them enabled and filtered.
    fn fake_tracefs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("tracing_on", "1\n"),
            ("trace", ""),
            ("trace_clock", "[local] global\n"),
            ("buffer_size_kb", "7\n"),
            ("buffer_percent", "10\n"),
            ("set_event", "irq:irq_handler_entry\n"),
            ("options/overwrite", "0\n"),
            ("events/sched/sched_switch/enable", "0\n"),
            ("events/sched/sched_switch/filter", "prev_pid == 1\n"),
            ("events/irq/irq_handler_entry/enable", "1\n"),
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn a_configuration_is_applied_and_put_back() {
        let dir = fake_tracefs();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let (mut settings, _) =
            SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        let config = TracefsConfig {
            events: vec![SelectedEvent { event: EventName::new("sched", "sched_switch"), filter: None }],
            asked: Vec::new(),
            userspace: None,
            functions: None,
            clock: None,
            buffer_kb: 64,
            when_full: WhenFull::Overwrite,
            exclude_self: true,
            process_in_text: false,
        };
        let applied = apply(&mut settings, &config).unwrap();
        assert_eq!((applied.clock, applied.watermark), (Clock::from_trace_clock("global"), Some(50)));
        assert_eq!(applied.events, [EventName::new("sched", "sched_switch")]);
        assert_eq!(applied.notes, ["the recorder's own events are not left out (Linux before 5.7)"]);
        let values = |names: [&str; 6]| names.map(|name| tracefs.read(name).unwrap());
        let names = [
            "tracing_on",
            "buffer_size_kb",
            "options/overwrite",
            "events/sched/sched_switch/enable",
            "events/sched/sched_switch/filter",
            "events/irq/irq_handler_entry/enable",
        ];
        // An ordinary file is not truncated by a write, so one byte replaces the first byte of a longer
        // value.
        assert_eq!(values(names), ["0", "64", "1", "1", "0rev_pid == 1", "0"]);
        settings.restore();
        assert_eq!(values(names), ["1", "74", "0", "0", "prev_pid == 1", "1"]);
    }

    #[test]
    fn a_clock_that_the_kernel_does_not_offer_is_refused() {
        let dir = fake_tracefs();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let (mut settings, _) =
            SettingsGuard::begin(&tracefs, StateDir::for_tests(dir.path()), false).unwrap();
        let error = set_clock(&mut settings, Some("sundial")).unwrap_err().to_string();
        assert_eq!(error, "trace_clock does not offer \"sundial\": it has local global");
    }
}
