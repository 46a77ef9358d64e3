//! One run of atrace from its options to its exit status, in the order of AOSP's atrace.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{AtraceOptions, output};
use crate::android::{NO_PROPERTIES, Properties, UserspaceRequest, atrace_properties};
use crate::categories::{Catalog, CategorySelection, SelectionError, enable_path};
use crate::clock::Snapshots;
use crate::console::{complain, say};
use crate::markers::{ClockSync, Marker, Tracer};
use crate::record::events::{SelectedEvent, TracefsEventFiles};
use crate::record::saved_settings::StateDir;
use crate::record::tracefs_config::{self, AppliedConfig, TracefsConfig, WhenFull};
use crate::record::{RecordError, SettingsGuard, Signals, Tracefs, snapshot};
use crate::text::read_names;

/// The longest wait at once.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The options that make the tracer print time, CPU and process beside each function.
const COLUMN_OPTIONS: [&str; 3] =
    ["options/funcgraph-abstime", "options/funcgraph-cpu", "options/funcgraph-proc"];

/// One run of atrace.
pub struct AtraceSession {
    /// The options of the command line.
    pub options: AtraceOptions,
    /// The tracefs that is recorded.
    pub tracefs: Tracefs,
    /// The directory of the saved settings; `None` uses this user's own.
    pub state_dir: Option<PathBuf>,
    /// Android's properties; `None` on a Linux without any.
    pub properties: Option<Properties>,
    /// The categories of this device.
    pub catalog: Catalog,
}

impl AtraceSession {
    /// Runs atrace. Returns the exit status: 0, or 1 after a failure or a signal.
    pub fn run(self) -> u8 {
        let selection = self.select();
        if self.options.prefer_sdk {
            return self.prefer_sdk(selection.tags);
        }
        let request = UserspaceRequest {
            tags: selection.tags,
            apps: self.options.apps.split(',').filter(|a| !a.is_empty()).map(str::to_owned).collect(),
            core_services: selection.core_services,
            user_initiated: true,
        };
        if self.options.only_userspace {
            return self.only_userspace(&request);
        }
        let signals = match Signals::block() {
            Ok(signals) => signals,
            Err(error) => {
                complain(format_args!("error blocking signals: {error}"));
                return 1;
            }
        };
        if self.wait(&signals, self.options.sleep) {
            say(format_args!("\ntrace aborted.\n"));
            return 1;
        }
        let recorded =
            if self.options.start { self.start(selection, request, &signals) } else { self.resume() };
        let (settings, aborted) = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                complain(format_args!("{error}\nunable to start tracing"));
                return 1;
            }
        };
        let finished = self.finish(settings, aborted, &signals);
        if let Err(error) = &finished {
            complain(format_args!("{error}"));
        }
        u8::from(aborted || finished.is_err())
    }

    /// Resolves the categories of the command line and of `-f`. Categories that do not work are reported and
    /// skipped, because systrace asks for more than most devices have.
    fn select(&self) -> CategorySelection {
        let mut names = self.options.categories.clone();
        if let Some(path) = &self.options.categories_file {
            match read_names(path.as_ref()) {
                Ok(text) => names.extend(text.split_whitespace().map(str::to_owned)),
                Err(error) => complain(format_args!("error: {path}: {error}")),
            }
        }
        let files = TracefsEventFiles::new(self.tracefs.root());
        let (selection, errors) = self.catalog.select_all(names.iter().map(String::as_str), &files);
        for error in errors {
            // The words of AOSP come first, because scripts search for them.
            match &error {
                SelectionError::NeedsRoot { name, events } => {
                    complain(format_args!(
                        "error: category \"{name}\" requires root privileges.\n  (not writable: {})",
                        events.join(", ")
                    ));
                }
                SelectionError::Unsupported { name, events } => {
                    complain(format_args!(
                        "error: category \"{name}\" is not supported on this device.\n  (not there: {})",
                        events.join(", ")
                    ));
                }
                other => complain(format_args!("error: {other}")),
            }
        }
        selection
    }

    fn prefer_sdk(&self, tags: u64) -> u8 {
        let Some(properties) = &self.properties else {
            complain(format_args!("error setting prefer_sdk system property: {NO_PROPERTIES}"));
            return 1;
        };
        atrace_properties::set_prefer_sdk(properties, tags).map_or_else(
            |error| {
                complain(format_args!("{error}"));
                1
            },
            |()| 0,
        )
    }

    /// Switches only the userspace tags. Perfetto starts and stops with this command and remembers the state
    /// itself, so nothing is saved.
    fn only_userspace(&self, request: &UserspaceRequest) -> u8 {
        if !self.options.asynchronous || !(self.options.start || self.options.stop) {
            complain(format_args!("--only_userspace can only be used with --async_start or --async_stop"));
            return 1;
        }
        let Some(properties) = &self.properties else {
            complain(format_args!("{NO_PROPERTIES}\nunable to start tracing"));
            return 1;
        };
        let off = UserspaceRequest::default();
        let wanted = if self.options.start { request } else { &off };
        match atrace_properties::set_tags(properties, wanted) {
            Ok(()) => 0,
            Err(error) => {
                complain(format_args!("{error}"));
                1
            }
        }
    }

    /// Waits for `seconds`. Returns whether a signal ended the wait.
    fn wait(&self, signals: &Signals, seconds: u64) -> bool {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // Rounded up: a wait of 0 ms would spin during the last millisecond.
            let time = left.min(MAX_WAIT) + Duration::from_millis(1);
            if signals.arrive_within(time) && signals.take().is_some() && !self.options.ignore_signals {
                return true;
            }
        }
    }

    /// Returns the guard that restores the settings. Like AOSP's atrace it takes over a recording that
    /// `--async_start` began, and then restores the settings of that recording too.
    fn settings(&self) -> Result<SettingsGuard, RecordError> {
        match SettingsGuard::resume(&self.tracefs, StateDir::find(self.state_dir.as_deref())?)? {
            Some(settings) if settings.flight().is_some() => Ok(settings),
            other => {
                // A killed recorder left these settings; begin() restores them first.
                if let Some(killed) = other {
                    killed.leave();
                }
                SettingsGuard::begin(&self.tracefs, StateDir::create(self.state_dir.as_deref())?, false)
                    .map(|(settings, _)| settings)
            }
        }
    }

    fn setup(
        &self,
        selection: CategorySelection,
        request: UserspaceRequest,
    ) -> Result<TracefsConfig, RecordError> {
        let mut events = Vec::new();
        for name in selection.events {
            events.extend(self.tracefs.events_named(&name)?);
        }
        Ok(TracefsConfig {
            events: events.into_iter().map(|event| SelectedEvent { event, filter: None }).collect(),
            // AOSP's atrace says nothing of that.
            asked: Vec::new(),
            userspace: self.properties.is_some().then_some(request),
            // `trace_functions` sets them up as AOSP does.
            functions: None,
            clock: None,
            buffer_kb: u64::from(self.options.buffer_kb),
            when_full: if self.options.circular { WhenFull::Overwrite } else { WhenFull::Stop },
            exclude_self: false,
            process_in_text: true,
        })
    }

    /// Starts tracing and waits for the length of the recording. Returns the guard of the settings, unless
    /// they are to stay, and whether a signal ended the recording early.
    fn start(
        &self,
        selection: CategorySelection,
        request: UserspaceRequest,
        signals: &Signals,
    ) -> Result<(Option<SettingsGuard>, bool), RecordError> {
        let mut settings = self.settings()?;
        let setup = self.setup(selection, request)?;
        let AppliedConfig { clock, notes, .. } = tracefs_config::apply(&mut settings, &setup)?;
        notes.iter().for_each(|note| complain(format_args!("note: {note}")));
        if let Some(list) = &self.options.functions {
            let names: Vec<&str> = list.split(',').filter(|f| !f.is_empty()).collect();
            trace_functions(&mut settings, &names)?;
        }
        tracefs_config::start(&mut settings)?;
        if !self.options.stream {
            say(format_args!("capturing trace..."));
        }
        // CPUs start one by one. Clearing after the start drops the early events, whose begins have no ends.
        self.tracefs.clear()?;
        self.clock_sync();
        if self.options.stream {
            output::stream(&self.tracefs, signals, !self.options.ignore_signals)
                .map_err(|e| RecordError::output("stdout".as_ref(), e))?;
            return Ok((Some(settings), true));
        }
        if self.options.asynchronous && !self.options.stop {
            let list = vec![snapshot(&self.tracefs)];
            settings.leave_on(Snapshots { ftrace_clock: Some(clock), list, ..Snapshots::default() })?;
            return Ok((None, false));
        }
        let aborted = !self.options.asynchronous && self.wait(signals, self.options.seconds);
        Ok((Some(settings), aborted))
    }

    /// Writes the markers that tie the trace's clock to CLOCK_MONOTONIC and CLOCK_REALTIME.
    fn clock_sync(&self) {
        let now = snapshot(&self.tracefs);
        let syncs =
            [ClockSync::Parent { ns: now.monotonic }, ClockSync::Realtime { ms: now.realtime / 1_000_000 }];
        let written = Tracer::open_at(&self.tracefs.path("trace_marker")).and_then(|tracer| {
            syncs.into_iter().try_for_each(|s| tracer.write(&Marker::ClockSync(s)).map(drop))
        });
        if let Err(error) = written {
            complain(format_args!("error writing clock sync marker: {error}"));
        }
    }

    /// Resumes the recording that `--async_start` began. Without saved settings another atrace began it.
    fn resume(&self) -> Result<(Option<SettingsGuard>, bool), RecordError> {
        let settings = SettingsGuard::resume(&self.tracefs, StateDir::find(self.state_dir.as_deref())?)?;
        if self.options.stop {
            return Ok((settings, false));
        }
        if let Some(settings) = settings {
            settings.leave();
        }
        Ok((None, false))
    }

    /// Stops tracing, writes the trace and restores the settings, as far as the options ask for it.
    fn finish(
        &self,
        settings: Option<SettingsGuard>,
        aborted: bool,
        signals: &Signals,
    ) -> Result<(), RecordError> {
        if self.options.stop {
            self.tracefs.write("tracing_on", "0")?;
        }
        let mut result = Ok(());
        if self.options.dump {
            if aborted {
                say(format_args!("\ntrace aborted.\n"));
            } else {
                say(format_args!(" done\n"));
                let path = self.options.output.clone().unwrap_or_else(|| "stdout".to_owned());
                result = output::dump(&self.options, &self.tracefs, signals)
                    .map_err(|e| RecordError::output(path.as_ref(), e));
                output::print_losses(&self.options, &self.tracefs);
            }
            result = result.and(self.tracefs.clear());
        }
        match settings {
            Some(settings) => {
                settings.restore().failures().for_each(|failure| complain(format_args!("{failure}")));
                result
            }
            None if self.options.stop => {
                self.reset();
                result
            }
            None => result,
        }
    }

    /// Sets the values that AOSP's atrace sets at the end of every recording. This serves only a recording
    /// that another program started, because its earlier settings are unknown.
    fn reset(&self) {
        let set = |knob: &str, value: &str| {
            if self.tracefs.has(knob) {
                let _ = self.tracefs.write(knob, value);
            }
        };
        for event in self.catalog.all_events() {
            set(&enable_path(&event), "0");
        }
        let knobs = [("options/overwrite", "1"), ("buffer_size_kb", "1"), ("current_tracer", "nop")];
        let tgid = [("options/print-tgid", "0"), ("options/record-tgid", "0")];
        knobs.into_iter().chain(tgid).for_each(|(knob, value)| set(knob, value));
        if let Some(properties) = &self.properties
            && let Err(error) = atrace_properties::switch_off(properties)
        {
            complain(format_args!("{error}"));
        }
    }
}

/// `-k`: traces kernel functions with the function-graph tracer, with the filter of AOSP's atrace. `names`
/// may contain `*`.
///
/// # Errors
/// A name that the kernel does not know, or a setting that cannot be written.
fn trace_functions(settings: &mut SettingsGuard, names: &[&str]) -> Result<(), RecordError> {
    let tracefs = settings.tracefs().clone();
    // The kernel takes many names at once and does not say which of them it does not know.
    let known = tracefs.read("available_filter_functions").unwrap_or_default();
    let is_known = |name: &str| known.lines().any(|l| l.split_whitespace().next() == Some(name));
    let unknown: Vec<&str> =
        names.iter().copied().filter(|n| !n.contains('*') && !known.is_empty() && !is_known(n)).collect();
    for name in &unknown {
        complain(format_args!("error: \"{name}\" is not a valid kernel function to trace."));
    }
    if !unknown.is_empty() {
        // An empty filter would trace every function.
        return Err(RecordError::NothingAvailable(format!(
            "no such kernel function: {}",
            unknown.join(", ")
        )));
    }
    settings.set("set_ftrace_filter", &names.join(" "))?;
    settings.set("current_tracer", "function_graph")?;
    COLUMN_OPTIONS.into_iter().filter(|c| tracefs.has(c)).try_for_each(|c| settings.set(c, "1").map(drop))
}
