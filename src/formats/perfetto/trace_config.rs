//! The configuration of a recording by the device's own `perfetto`, for phones whose tracefs is closed to the
//! shell: Perfetto's daemons read the kernel's buffer there. Published as
//! protos/perfetto/config/trace_config.proto and the files beside it.

use super::fields::{
    buffer_config, data_source, data_source_config, ftrace_config, process_stats_config, trace_config,
    trace_config_buffer_config_fill_policy as fill_policy,
};
use super::wire::write::{message, string, uint};
use crate::categories::{CATEGORIES, Need};

/// Events that name threads and processes. A recording without them shows numbers.
const NAMING_EVENTS: [&str; 4] =
    ["ftrace/print", "sched/sched_process_exit", "task/task_newtask", "task/task_rename"];
/// Between two writes to the output, ms. Perfetto's own examples for long recordings have it so.
const WRITE_PERIOD_MS: u64 = 1_000;
/// The time between two requests of Perfetto for data that its producers still hold, ms. Without the requests
/// such data would come late in the file.
const FLUSH_PERIOD_MS: u64 = 5_000;
/// How often the kernel's buffer is read, ms.
const DRAIN_PERIOD_MS: u64 = 250;
/// The least size of Perfetto's own buffer, KiB: about two seconds of a busy phone.
const LEAST_BUFFER_KB: u64 = 32 << 10;

/// A recording as `perfetto` is told to make it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceConfig {
    /// atrace's categories, which Perfetto hands to the device's own `atrace`.
    pub categories: Vec<String>,
    /// Events, as `group/event` or `group/*`.
    pub events: Vec<String>,
    /// The apps that write their markers: process names, `*` for all.
    pub apps: Vec<String>,
    /// The size of the kernel's buffer, KiB for each CPU.
    pub cpu_buffer_kb: u64,
    /// How long it records; `None` is until it is ended.
    pub duration_ms: Option<u64>,
    /// The output's size at which the recording ends, bytes.
    pub max_bytes: Option<u64>,
    /// Which events the output is to have.
    pub kept: KeptEvents,
    /// Whether SurfaceFlinger's FrameTimeline, which Android has from 12 on, and the list of packages are
    /// recorded: deadlines and jank types of frames, and the package of each process.
    pub has_frame_timeline: bool,
}

/// Which events a recording has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeptEvents {
    /// All: the output grows while the recording runs.
    #[default]
    All,
    /// The last ones that fit into Perfetto's buffer.
    Last,
    /// The first ones that fit.
    First,
}

/// A name that a trace config has no place for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: Perfetto takes no filters: leave out what is behind the colon")]
pub struct HasFilter(pub String);

impl TraceConfig {
    /// Chooses what to record by the names of `record`'s command line: categories, `GROUP/EVENT`, `GROUP/*`.
    /// A category also brings those of its events that Perfetto leaves out by itself (`sched_wakeup`).
    ///
    /// # Errors
    /// [`HasFilter`].
    pub fn select<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Result<(), HasFilter> {
        for name in names {
            if name.contains(':') {
                return Err(HasFilter(name.to_owned()));
            }
            if name.contains('/') {
                self.events.push(name.to_owned());
                continue;
            }
            self.categories.push(name.to_owned());
            let category = CATEGORIES.iter().find(|category| category.name == name);
            let events = category.into_iter().flat_map(|category| category.events);
            let is_recorded = |need| matches!(need, Need::Required | Need::Optional | Need::PerfettoOnly);
            self.events
                .extend(events.filter(|event| is_recorded(event.need)).map(|event| event.path.to_owned()));
        }
        for event in &mut self.events {
            if !event.contains('/') {
                event.push_str("/*");
            }
        }
        self.events.extend(NAMING_EVENTS.map(str::to_owned));
        self.events.sort();
        self.events.dedup();
        Ok(())
    }

    /// The message as `perfetto -c` reads it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        message(&mut out, trace_config::BUFFERS, |out| {
            uint(out, buffer_config::SIZE_KB, self.cpu_buffer_kb.saturating_mul(2).max(LEAST_BUFFER_KB));
            // A buffer that discards takes nothing more once it was full, also when it has been read.
            let policy = match self.kept {
                KeptEvents::All | KeptEvents::Last => fill_policy::RING_BUFFER,
                KeptEvents::First => fill_policy::DISCARD,
            };
            uint(out, buffer_config::FILL_POLICY, policy);
        });
        source(&mut out, "linux.ftrace", data_source_config::FTRACE_CONFIG, |out| {
            for (field, texts) in [
                (ftrace_config::FTRACE_EVENTS, &self.events),
                (ftrace_config::ATRACE_CATEGORIES, &self.categories),
                (ftrace_config::ATRACE_APPS, &self.apps),
            ] {
                texts.iter().for_each(|text| string(out, field, text.as_bytes()));
            }
            uint(out, ftrace_config::BUFFER_SIZE_KB, self.cpu_buffer_kb);
            uint(out, ftrace_config::DRAIN_PERIOD_MS, DRAIN_PERIOD_MS);
        });
        source(&mut out, "linux.process_stats", data_source_config::PROCESS_STATS_CONFIG, |out| {
            uint(out, process_stats_config::SCAN_ALL_PROCESSES_ON_START, 1);
            uint(out, process_stats_config::RECORD_THREAD_NAMES, 1);
        });
        if self.has_frame_timeline {
            plain_source(&mut out, "android.surfaceflinger.frametimeline");
            plain_source(&mut out, "android.packages_list");
        }
        self.duration_ms.into_iter().for_each(|ms| uint(&mut out, trace_config::DURATION_MS, ms));
        if self.kept == KeptEvents::All {
            uint(&mut out, trace_config::WRITE_INTO_FILE, 1);
            uint(&mut out, trace_config::FILE_WRITE_PERIOD_MS, WRITE_PERIOD_MS);
            uint(&mut out, trace_config::FLUSH_PERIOD_MS, FLUSH_PERIOD_MS);
            let max_bytes = self.max_bytes.into_iter();
            max_bytes.for_each(|bytes| uint(&mut out, trace_config::MAX_FILE_SIZE_BYTES, bytes));
        }
        out
    }
}

/// Appends a data source with its own configuration.
fn source(out: &mut Vec<u8>, name: &str, config: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    message(out, trace_config::DATA_SOURCES, |out| {
        message(out, data_source::CONFIG, |out| {
            string(out, data_source_config::NAME, name.as_bytes());
            message(out, config, fill);
        });
    });
}

/// Appends a data source that needs no configuration.
fn plain_source(out: &mut Vec<u8>, name: &str) {
    message(out, trace_config::DATA_SOURCES, |out| {
        message(out, data_source::CONFIG, |out| string(out, data_source_config::NAME, name.as_bytes()));
    });
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn config() -> TraceConfig {
        let mut config = TraceConfig {
            apps: vec!["com.example.app".into()],
            cpu_buffer_kb: 4_096,
            duration_ms: Some(10_000),
            max_bytes: Some(5_000_000_000),
            ..TraceConfig::default()
        };
        config.select(["sched", "am", "irq/*", "power/cpu_idle", "vendorish"]).unwrap();
        config
    }

    #[test]
    fn categories_bring_their_events_and_groups_are_whole() {
        let config = config();
        assert_eq!(config.categories, ["sched", "am", "vendorish"]);
        for event in ["sched/sched_switch", "sched/sched_waking", "irq/*", "power/cpu_idle", "ftrace/print"] {
            assert!(config.events.iter().any(|name| name == event), "{event}: {:?}", config.events);
        }
        assert!(config.events.iter().all(|event| event.contains('/')), "{:?}", config.events);
        let filter = TraceConfig::default().select(["sched/sched_switch:prev_pid==1"]).unwrap_err();
        assert!(filter.to_string().starts_with("sched/sched_switch:prev_pid==1: Perfetto takes no filters"));
    }

    #[test]
    fn frame_timeline_is_recorded_where_it_is_asked_for() {
        let names = ["android.surfaceflinger.frametimeline", "android.packages_list"];
        for has_frame_timeline in [true, false] {
            let bytes = TraceConfig { has_frame_timeline, ..config() }.encode();
            for name in names {
                let has = bytes.windows(name.len()).any(|window| window == name.as_bytes());
                assert_eq!(has, has_frame_timeline, "{name}");
            }
        }
    }

    /// Perfetto's own classes (PyPI's `perfetto`) know every field, and read the values back.
    #[test]
    fn perfettos_own_classes_read_the_config() {
        let Ok(python) = std::env::var("TRACEBRIDGE_PYTHON") else {
            return eprintln!("SKIPPED: TRACEBRIDGE_PYTHON names no interpreter with the package perfetto");
        };
        let script = "import sys\n\
            from google.protobuf.unknown_fields import UnknownFieldSet\n\
            from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TraceConfig\n\
            config = TraceConfig.FromString(sys.stdin.buffer.read())\n\
            def unknown(message):\n\
            \x20   inner = [v for f, v in message.ListFields() if f.message_type]\n\
            \x20   all = [m for v in inner for m in (v if hasattr(v, '__len__') else [v])]\n\
            \x20   return len(UnknownFieldSet(message)) + sum(unknown(m) for m in all)\n\
            ftrace = config.data_sources[0].config.ftrace_config\n\
            stats = config.data_sources[1].config\n\
            print(unknown(config), config.duration_ms, config.write_into_file, config.max_file_size_bytes,\n\
            \x20   config.buffers[0].size_kb, config.buffers[0].fill_policy, config.data_sources[0].config.name,\n\
            \x20   list(ftrace.atrace_categories), list(ftrace.atrace_apps), ftrace.buffer_size_kb,\n\
            \x20   'sched/sched_switch' in ftrace.ftrace_events, stats.name,\n\
            \x20   stats.process_stats_config.scan_all_processes_on_start)";
        let mut python = Command::new(python);
        python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&config().encode()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8(output.stdout).unwrap().trim(),
            "0 10000 True 5000000000 32768 1 linux.ftrace ['sched', 'am', 'vendorish'] ['com.example.app'] 4096 \
             True linux.process_stats True"
        );
    }
}
