//! `perf_event_attr`: what the kernel was asked to record of one event type, and with that the layout of its
//! records (linux/perf_event.h, `perf_event_open(2)`).

use super::bytes::{Bytes, lossy};
use crate::clock::Clock;
use crate::formats::samples::{SCHED_SWITCH, SampleEvent, SampleRate};

/// Bits of `sample_type`, in the order of the numbers; the order of the fields in a record is another one.
pub(super) mod sample_type {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    pub(crate) const STACK_USER: u64 = 1 << 13;
}

const READ_TIME_ENABLED: u64 = 1 << 0;
const READ_TIME_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// simpleperf's `INFINITE_SAMPLE_PERIOD`: the period of an event type of `--add-counter`, which is read with
/// the samples of the others.
const COUNTER_PERIOD: u64 = 1 << 62;

const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_USER: u64 = 1 << 4;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_FREQ: u64 = 1 << 10;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_USE_CLOCKID: u64 = 1 << 25;

/// The event type of `perf record --off-cpu` (tools/perf/util/off_cpu.h).
const OFF_CPU_TIME: &str = "offcpu-time";

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;

/// Names of hardware events, by number.
const HARDWARE: [&str; 10] = [
    "cpu-cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// Names of software events, by number.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// One event type of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Attribute {
    kind: u32,
    config: u64,
    /// The frequency in Hz, or the period.
    rate: u64,
    pub sample_type: u64,
    read_format: u64,
    flags: u64,
    clock_id: i32,
    /// Bytes of the stack that a sample of a program copies.
    stack_bytes: u32,
    /// The name that the file gives the event type; empty where it gives none.
    pub name: String,
    /// The ids by which records refer to the event type.
    pub ids: Vec<u64>,
}

/// The size of the first version of the structure, bytes: `PERF_ATTR_SIZE_VER0`.
pub(super) const MIN_ATTRIBUTE_BYTES: usize = 64;
/// Where the number of bytes lies in the structure that samples copy of a stack, and where the number of the
/// clock.
const STACK_BYTES_AT: usize = 88;
const CLOCK_ID_AT: usize = 92;

impl Attribute {
    /// Reads the structure from the start of `data`.
    pub(super) fn parse(data: &[u8], is_big_endian: bool) -> Option<Attribute> {
        let mut bytes = Bytes::new(data.get(..MIN_ATTRIBUTE_BYTES)?, is_big_endian);
        let kind = bytes.u32()?;
        let _size = bytes.u32()?;
        let config = bytes.u64()?;
        let rate = bytes.u64()?;
        let sample_type = bytes.u64()?;
        let read_format = bytes.u64()?;
        // The flags are a C bit field, whose bits a big-endian machine numbers from the other end of each
        // byte.
        let raw: [u8; 8] = *bytes.take(8)?.first_chunk()?;
        let raw = if is_big_endian { raw.map(u8::reverse_bits) } else { raw };
        let flags = u64::from_le_bytes(raw);
        let number = |at| data.get(at..).and_then(|rest| Bytes::new(rest, is_big_endian).u32()).unwrap_or(0);
        Some(Attribute {
            kind,
            config,
            rate,
            sample_type,
            read_format,
            flags,
            clock_id: number(CLOCK_ID_AT) as i32,
            stack_bytes: number(STACK_BYTES_AT),
            ..Attribute::default()
        })
    }

    /// Whether a list of names (`name,type,config`) means this event type.
    pub(super) fn is(&self, kind: u32, config: u64) -> bool {
        self.kind == kind && self.config == config
    }

    /// Ending of the name of an event type that is counted in the kernel alone, or in programs alone.
    pub(super) fn modifier(&self) -> &'static str {
        match (self.flags & FLAG_EXCLUDE_USER != 0, self.flags & FLAG_EXCLUDE_KERNEL != 0) {
            (true, false) => ":k",
            (false, true) => ":u",
            _ => "",
        }
    }

    /// Whether records other than samples end with the fields of `sample_id`.
    pub(super) fn has_sample_id_all(&self) -> bool {
        self.flags & FLAG_SAMPLE_ID_ALL != 0
    }

    /// The event type's name, as perf and simpleperf write it.
    fn shown_name(&self) -> String {
        // Processors with two kinds of cores have the kind in the upper half.
        let number = usize::try_from(self.config & 0xffff_ffff).unwrap_or(usize::MAX);
        let known = match self.kind {
            _ if !self.name.is_empty() => Some(self.name.as_str()),
            TYPE_HARDWARE => HARDWARE.get(number).copied(),
            TYPE_SOFTWARE => SOFTWARE.get(number).copied(),
            _ => None,
        };
        match (known, self.kind) {
            (Some(name), _) => name.to_owned(),
            (None, TYPE_TRACEPOINT) => format!("tracepoint {}", self.config),
            (None, kind) => format!("event type {kind}, 0x{:x}", self.config),
        }
    }

    /// Whether the periods of the samples are themselves the times that their threads did not run, ns: those
    /// of `perf record --off-cpu`.
    pub(super) fn states_off_cpu(&self) -> bool {
        self.name == OFF_CPU_TIME
    }

    /// The event type without counts.
    pub(super) fn event(&self, traces_off_cpu: bool) -> SampleEvent {
        let name = self.shown_name();
        let measures_time = self.kind == TYPE_SOFTWARE && matches!(self.config, 0 | 1);
        let is_off_cpu = traces_off_cpu && name == SCHED_SWITCH || self.states_off_cpu();
        SampleEvent {
            is_off_cpu,
            is_time: is_off_cpu || measures_time,
            rate: match self.rate {
                0 => SampleRate::Unknown,
                _ if self.is_added_counter() => SampleRate::Unknown,
                hz if self.flags & FLAG_FREQ != 0 => SampleRate::Hz(hz),
                period => SampleRate::Period(period),
            },
            name,
            ..SampleEvent::default()
        }
    }

    /// The event type is one of simpleperf's `--add-counter`: its count is read with the samples of the
    /// others. A software event takes samples all the same, one for each event: the kernel looks at its
    /// period only where samples do not state theirs (`perf_swevent_event`).
    pub(super) fn is_added_counter(&self) -> bool {
        self.reads_group() && self.flags & FLAG_FREQ == 0 && self.rate == COUNTER_PERIOD
    }

    /// The bytes behind the call chain of a sample hold a copy of its stack: those of a sample without one,
    /// of a kernel thread or one whose stack was unwound while it was recorded, are few.
    pub(super) fn copies_stack(&self, behind_chain: usize) -> bool {
        // simpleperf copies this much where its buffer is nearly full.
        const SHORTENED_BYTES: usize = 1 << 10;
        let bytes = (self.stack_bytes as usize).min(SHORTENED_BYTES);
        self.sample_type & sample_type::STACK_USER != 0 && bytes > 0 && behind_chain >= bytes
    }

    /// The period of samples that do not state one.
    pub(super) fn default_period(&self) -> u64 {
        if self.flags & FLAG_FREQ != 0 { 1 } else { self.rate.max(1) }
    }

    /// The clock of the records' times. Without a request it is the kernel's own clock for perf events.
    pub(super) fn clock(&self) -> Clock {
        match self.flags & FLAG_USE_CLOCKID {
            0 => Clock::TracePerf,
            _ => clock_of_id(self.clock_id as u32),
        }
    }

    /// The size of the values that a sample with `PERF_SAMPLE_READ` has, bytes. `values` is their number
    /// where they are those of a group.
    pub(super) fn read_bytes(&self, values: Option<u64>) -> Option<u64> {
        let has = |bit: u64| u64::from(self.read_format & bit != 0);
        let times = has(READ_TIME_ENABLED) + has(READ_TIME_RUNNING);
        let each = 1 + has(READ_ID) + has(READ_LOST);
        let words = match values {
            Some(values) => values.checked_mul(each)?.checked_add(times)?,
            None => times + each,
        };
        words.checked_mul(8)
    }

    /// The counters that a sample with `PERF_SAMPLE_READ` holds from here on, each by its id, with its value.
    /// `None` where they are cut, or have no ids.
    pub(super) fn counters(&self, mut bytes: Bytes<'_>) -> Option<Vec<(u64, u64)>> {
        let has = |bit: u64| self.read_format & bit != 0;
        if !has(READ_ID) {
            return None;
        }
        let times = [READ_TIME_ENABLED, READ_TIME_RUNNING].into_iter().filter(|bit| has(*bit)).count();
        if !self.reads_group() {
            let value = bytes.u64()?;
            bytes.take(8 * times)?;
            return Some(vec![(bytes.u64()?, value)]);
        }
        let count = bytes.u64()?;
        let mut values =
            Bytes::new(bytes.take_u64_len(self.read_bytes(Some(count))?)?, bytes.is_big_endian());
        values.take(8 * times)?;
        let counter = |_| {
            let value = values.u64()?;
            let id = values.u64()?;
            if has(READ_LOST) {
                values.u64()?;
            }
            Some((id, value))
        };
        (0..count).map(counter).collect()
    }

    /// Whether threads that a recorded thread starts are counted too, each by itself.
    pub(super) fn is_inherited(&self) -> bool {
        self.flags & FLAG_INHERIT != 0
    }

    /// Whether the values of [`Attribute::read_bytes`] are those of a group, behind their number.
    pub(super) fn reads_group(&self) -> bool {
        self.read_format & READ_GROUP != 0
    }
}

/// The clock with a number of `clock_gettime(2)`.
pub(super) fn clock_of_id(id: u32) -> Clock {
    match id {
        0 => Clock::Realtime,
        1 => Clock::Monotonic,
        4 => Clock::MonotonicRaw,
        7 => Clock::Boottime,
        11 => Clock::Tai,
        _ => Clock::Unknown,
    }
}

/// The event types of the feature section `EVENT_DESC`, with names and ids.
pub(super) fn event_descriptions(section: &[u8], is_big_endian: bool) -> Vec<Attribute> {
    let mut bytes = Bytes::new(section, is_big_endian);
    let mut all = Vec::new();
    let (Some(count), Some(size)) = (bytes.u32(), bytes.u32()) else { return all };
    for _ in 0..count {
        let Some(mut attribute) =
            bytes.take(size as usize).and_then(|attr| Attribute::parse(attr, is_big_endian))
        else {
            break;
        };
        let (Some(ids), Some(name)) = (bytes.u32(), bytes.sized_text()) else { break };
        attribute.name = lossy(name);
        for _ in 0..ids {
            let Some(id) = bytes.u64() else { break };
            attribute.ids.push(id);
        }
        all.push(attribute);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `perf_event_attr` with these values of `type`, `config`, the rate and the flags.
    fn attribute(kind: u32, config: u64, rate: u64, flags: u64) -> Attribute {
        let words = [config, rate, 0, 0, flags, 0, 0];
        let fields = words.iter().flat_map(|word| word.to_le_bytes());
        let data: Vec<u8> = kind.to_le_bytes().into_iter().chain([0; 4]).chain(fields).collect();
        assert_eq!(data.len(), MIN_ATTRIBUTE_BYTES);
        Attribute::parse(&data, false).unwrap()
    }

    #[test]
    fn event_types_have_the_names_of_perf() {
        let name = |kind, config| attribute(kind, config, 1, 0).event(false).name;
        assert_eq!(name(TYPE_HARDWARE, 0), "cpu-cycles");
        assert_eq!(name(TYPE_HARDWARE, 4 << 32), "cpu-cycles", "of another kind of core");
        assert_eq!(name(TYPE_SOFTWARE, 0), "cpu-clock");
        assert_eq!(name(TYPE_TRACEPOINT, 77), "tracepoint 77");
        assert_eq!(name(9, 16), "event type 9, 0x10");
    }

    #[test]
    fn samples_of_perfs_off_cpu_analysis_state_how_long_their_threads_did_not_run() {
        let bpf_output = Attribute { name: OFF_CPU_TIME.to_owned(), ..attribute(TYPE_SOFTWARE, 10, 1, 0) };
        let event = bpf_output.event(false);
        assert!(bpf_output.states_off_cpu() && event.is_off_cpu && event.is_time);
        assert!(!attribute(TYPE_SOFTWARE, 10, 1, 0).event(true).is_off_cpu);
    }

    #[test]
    fn the_rate_is_a_frequency_or_a_period() {
        let frequency = attribute(TYPE_HARDWARE, 0, 4_000, FLAG_FREQ);
        assert!(matches!(frequency.event(false).rate, SampleRate::Hz(4_000)));
        assert_eq!(frequency.default_period(), 1);
        let period = attribute(TYPE_HARDWARE, 0, 4_000, 0);
        assert!(matches!(period.event(false).rate, SampleRate::Period(4_000)));
        assert_eq!((period.default_period(), period.clock()), (4_000, Clock::TracePerf));
    }

    #[test]
    fn the_bits_of_a_big_endian_machine_are_numbered_from_the_other_end() {
        let mut data = [0; MIN_ATTRIBUTE_BYTES];
        // FLAG_SAMPLE_ID_ALL is bit 18: in the third byte the third bit from the top.
        data[40 + 2] = 0b0010_0000;
        assert!(Attribute::parse(&data, true).unwrap().has_sample_id_all());
        assert!(!Attribute::parse(&data, false).unwrap().has_sample_id_all());
    }

    #[test]
    fn values_of_a_group_share_their_times() {
        let format = READ_TIME_ENABLED | READ_TIME_RUNNING | READ_ID | READ_GROUP;
        let group = Attribute { read_format: format, ..Attribute::default() };
        assert!(group.reads_group());
        assert_eq!(group.read_bytes(Some(3)), Some(8 * (3 * 2 + 2)));
        assert_eq!(group.read_bytes(None), Some(8 * 4));
        assert_eq!(group.read_bytes(Some(u64::MAX)), None);
        let words: Vec<u8> =
            [2, 70, 60, 11, 1, 22, 2].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        assert_eq!(group.counters(Bytes::new(&words, false)), Some(vec![(1, 11), (2, 22)]));
        assert_eq!(group.counters(Bytes::new(&words[..48], false)), None, "cut");
        let single =
            Attribute { read_format: READ_TIME_ENABLED | READ_ID | READ_LOST, ..Attribute::default() };
        assert_eq!(single.counters(Bytes::new(&words[24..], false)), Some(vec![(22, 11)]));
    }
}
