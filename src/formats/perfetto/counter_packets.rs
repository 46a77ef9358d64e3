//! Reads packets that poll counters: battery, power rails, `SysStats`, `ProcessStats` and the GPU's memory.
//! Each value becomes one of a counter, with the name that Perfetto's tools give it; kB become bytes.
//!
//! `scripts/gen-perfetto-tables` writes `counter_names.tsv` from Perfetto's published protos.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use super::fields::{
    battery_counters as battery, builtin_clock, gpu_mem_total_event as gpu, power_rails,
    power_rails_energy_data as energy, power_rails_rail_descriptor as rail, process_stats,
    process_stats_process as process, sys_stats, sys_stats_cpu_times as cpu_times,
    sys_stats_devfreq_value as devfreq, sys_stats_disk_stat as disk, sys_stats_meminfo_value as meminfo,
    sys_stats_psi_sample as psi, sys_stats_thermal_zone as thermal, sys_stats_vmstat_value as vmstat,
    trace_packet,
};
use super::track_clocks::number;
use super::wire::read::{WireValue, append_numbers, fields, last_value};
use crate::formats::{CounterValue, TrackOwner};

const BYTES_PER_KB: u64 = 1024;
const NS_PER_MS: u64 = 1_000_000;

/// The name of a counter: a part that is the same for all counters of its kind, with a text of the trace or
/// the number of a CPU in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct CounterName<'a> {
    prefix: &'static str,
    cpu: Option<u32>,
    text: &'a [u8],
    suffix: &'static str,
}

impl CounterName<'_> {
    /// The name as outputs have it.
    pub(super) fn text(&self) -> String {
        let cpu = self.cpu.map_or(String::new(), |cpu| format!("cpu{cpu} "));
        let text = String::from_utf8_lossy(self.text);
        // `batt.charge_uah`, and `batt.second.charge_uah` of a battery with a name.
        let dot =
            if self.prefix.ends_with('.') && !text.is_empty() && is_word(self.suffix) { "." } else { "" };
        format!("{cpu}{}{text}{dot}{}", self.prefix, self.suffix)
    }

    const fn plain(prefix: &'static str) -> CounterName<'static> {
        CounterName { prefix, cpu: None, text: b"", suffix: "" }
    }
}

/// Whether a text begins with a letter.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A value of a counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterSample<'a> {
    pub(super) owner: TrackOwner,
    pub(super) name: CounterName<'a>,
    pub(super) value: CounterValue,
    /// The clock, a value of the enum `BuiltinClock`, and the time in ns, where that is not the packet's.
    pub(super) time: Option<(u64, u64)>,
}

/// The content of a packet that polls counters: the packet's field and its message.
pub(super) type CounterPacket<'a> = (u32, &'a [u8]);

/// Whether the field of a packet holds values of counters.
pub(super) fn is_counters(field: u32) -> bool {
    matches!(
        field,
        trace_packet::BATTERY
            | trace_packet::POWER_RAILS
            | trace_packet::SYS_STATS
            | trace_packet::PROCESS_STATS
            | trace_packet::GPU_MEM_TOTAL_EVENT
    )
}

/// What packets before the current one have said.
#[derive(Default)]
pub(super) struct CounterReader<'a> {
    /// The names of power rails, by session and index.
    rails: HashMap<(u64, u64), &'a [u8]>,
    /// How many values are not read, by kind.
    pub(super) unread: BTreeMap<&'static str, u64>,
}

/// The counters of a process, by field of `ProcessStats.Process`: the name, and what a value is multiplied
/// by.
const PROCESS_COUNTERS: [(u32, &str, u64); 19] = [
    (process::VM_SIZE_KB, "mem.virt", BYTES_PER_KB),
    (process::VM_RSS_KB, "mem.rss", BYTES_PER_KB),
    (process::RSS_ANON_KB, "mem.rss.anon", BYTES_PER_KB),
    (process::RSS_FILE_KB, "mem.rss.file", BYTES_PER_KB),
    (process::RSS_SHMEM_KB, "mem.rss.shmem", BYTES_PER_KB),
    (process::VM_SWAP_KB, "mem.swap", BYTES_PER_KB),
    (process::VM_LOCKED_KB, "mem.locked", BYTES_PER_KB),
    (process::VM_HWM_KB, "mem.rss.watermark", BYTES_PER_KB),
    (process::CHROME_PRIVATE_FOOTPRINT_KB, "chrome.private_footprint", BYTES_PER_KB),
    (process::CHROME_PEAK_RESIDENT_SET_KB, "chrome.peak_resident_set", BYTES_PER_KB),
    (process::SMR_RSS_KB, "mem.smaps.rss", BYTES_PER_KB),
    (process::SMR_PSS_KB, "mem.smaps.pss", BYTES_PER_KB),
    (process::SMR_PSS_ANON_KB, "mem.smaps.pss.anon", BYTES_PER_KB),
    (process::SMR_PSS_FILE_KB, "mem.smaps.pss.file", BYTES_PER_KB),
    (process::SMR_PSS_SHMEM_KB, "mem.smaps.pss.shmem", BYTES_PER_KB),
    (process::SMR_SWAP_PSS_KB, "mem.smaps.swap.pss", BYTES_PER_KB),
    (process::RUNTIME_USER_MODE, "runtime.user_ns", 1),
    (process::RUNTIME_KERNEL_MODE, "runtime.kernel_ns", 1),
    (process::DMABUF_RSS_KB, "mem.dmabuf_rss", BYTES_PER_KB),
];

/// The counters of a battery, by field of `BatteryCounters`.
const BATTERY_COUNTERS: [(u32, &str); 6] = [
    (battery::CHARGE_COUNTER_UAH, "charge_uah"),
    (battery::CAPACITY_PERCENT, "capacity_pct"),
    (battery::CURRENT_UA, "current_ua"),
    (battery::CURRENT_AVG_UA, "current.avg_ua"),
    (battery::ENERGY_COUNTER_UWH, "energy_counter_uwh"),
    (battery::VOLTAGE_UV, "voltage_uv"),
];

/// The times of a CPU since it was switched on, by field of `SysStats.CpuTimes`.
const CPU_TIMES: [(u32, &str); 8] = [
    (cpu_times::USER_NS, "times.user_ns"),
    (cpu_times::USER_NICE_NS, "times.user_nice_ns"),
    (cpu_times::SYSTEM_MODE_NS, "times.system_mode_ns"),
    (cpu_times::IDLE_NS, "times.idle_ns"),
    (cpu_times::IO_WAIT_NS, "times.io_wait_ns"),
    (cpu_times::IRQ_NS, "times.irq_ns"),
    (cpu_times::SOFTIRQ_NS, "times.softirq_ns"),
    (cpu_times::STEAL_NS, "times.steal_ns"),
];

/// The counters of a disk, by field of `SysStats.DiskStat`.
const DISK_COUNTERS: [(u32, &str); 8] = [
    (disk::READ_SECTORS, ".read_sectors"),
    (disk::READ_TIME_MS, ".read_time_ms"),
    (disk::WRITE_SECTORS, ".write_sectors"),
    (disk::WRITE_TIME_MS, ".write_time_ms"),
    (disk::DISCARD_SECTORS, ".discard_sectors"),
    (disk::DISCARD_TIME_MS, ".discard_time_ms"),
    (disk::FLUSH_COUNT, ".flush_count"),
    (disk::FLUSH_TIME_MS, ".flush_time_ms"),
];

/// The counters of `SysStats` that stand alone, by field.
const SYSTEM_COUNTERS: [(u32, &str); 4] = [
    (sys_stats::NUM_FORKS, "num_forks"),
    (sys_stats::NUM_IRQ_TOTAL, "num_irq_total"),
    (sys_stats::NUM_SOFTIRQ_TOTAL, "num_softirq_total"),
    (sys_stats::GPUFREQ_MHZ, "gpufreq (MHz)"),
];

/// What of `SysStats` is not read: lists of lists.
const UNREAD: [(u32, &str); 5] = [
    (sys_stats::NUM_IRQ, "sys_stats_num_irq"),
    (sys_stats::NUM_SOFTIRQ, "sys_stats_num_softirq"),
    (sys_stats::BUDDY_INFO, "sys_stats_buddy_info"),
    (sys_stats::CPUIDLE_STATE, "sys_stats_cpuidle_state"),
    (sys_stats::SLAB_INFO, "sys_stats_slab_info"),
];

/// The names of counters that packets number, by table and number.
fn numbered(table: &'static str, number: u64) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<(&str, u64), &str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let lines = include_str!("counter_names.tsv").lines();
        let row = |line: &'static str| {
            let (table, rest) = line.split_once('\t')?;
            let (number, name) = rest.split_once('\t')?;
            Some(((table, number.parse().ok()?), name))
        };
        lines.filter_map(row).collect()
    });
    names.get(&(table, number)).copied()
}

/// A number of the trace as a counter's value. One that is too large stays the largest.
fn int(value: u64) -> CounterValue {
    CounterValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

impl<'a> CounterReader<'a> {
    /// Hands each value of a packet to `out`.
    pub(super) fn read(&mut self, (field, body): CounterPacket<'a>, out: &mut dyn FnMut(CounterSample<'a>)) {
        match field {
            trace_packet::BATTERY => read_battery(body, out),
            trace_packet::POWER_RAILS => self.read_rails(body, out),
            trace_packet::SYS_STATS => self.read_system(body, out),
            trace_packet::PROCESS_STATS => self.read_processes(body, out),
            trace_packet::GPU_MEM_TOTAL_EVENT => {
                let owner = match number(body, gpu::PID).unwrap_or(0) as i32 {
                    0 => TrackOwner::Machine,
                    pid => TrackOwner::Process(pid),
                };
                let value = int(number(body, gpu::SIZE).unwrap_or(0));
                out(CounterSample { owner, name: CounterName::plain("GPU Memory"), value, time: None });
            }
            _ => {}
        }
    }

    /// Learns the names of rails, and reads the energy that each has used, µWs.
    fn read_rails(&mut self, body: &'a [u8], out: &mut dyn FnMut(CounterSample<'a>)) {
        let session = number(body, power_rails::SESSION_UUID).unwrap_or(0);
        for (_, message) in fields(body).filter(|(n, _)| *n == power_rails::RAIL_DESCRIPTOR) {
            let name = last_value(message.bytes(), rail::RAIL_NAME).map_or(&[][..], WireValue::bytes);
            self.rails.insert((session, number(message.bytes(), rail::INDEX).unwrap_or(0)), name);
        }
        for (_, message) in fields(body).filter(|(n, _)| *n == power_rails::ENERGY_DATA) {
            let message = message.bytes();
            let index = number(message, energy::INDEX).unwrap_or(0);
            let Some(text) = self.rails.get(&(session, index)) else {
                *self.unread.entry("power_rails_without_name").or_default() += 1;
                continue;
            };
            let time = number(message, energy::TIMESTAMP_MS)
                .map(|ms| (builtin_clock::BOOTTIME, ms.saturating_mul(NS_PER_MS)));
            let name = CounterName { prefix: "power.rails.", cpu: None, text, suffix: " (µWs)" };
            let value = int(number(message, energy::ENERGY).unwrap_or(0));
            out(CounterSample { owner: TrackOwner::Machine, name, value, time });
        }
    }

    fn read_system(&mut self, body: &'a [u8], out: &mut dyn FnMut(CounterSample<'a>)) {
        let mut push = |name, value| {
            out(CounterSample { owner: TrackOwner::Machine, name, value: int(value), time: None });
        };
        let mut cpu = 0;
        for (field, value) in fields(body) {
            let message = value.bytes();
            let inner = |field| number(message, field).unwrap_or(0);
            let text = |field| last_value(message, field).map_or(&[][..], WireValue::bytes);
            let unread = &mut self.unread;
            let mut unknown = |kind| *unread.entry(kind).or_default() += 1;
            match field {
                sys_stats::MEMINFO => match numbered("meminfo", inner(meminfo::KEY)) {
                    Some(name) => {
                        push(CounterName::plain(name), inner(meminfo::VALUE).saturating_mul(BYTES_PER_KB));
                    }
                    None => unknown("sys_stats_meminfo"),
                },
                sys_stats::VMSTAT => match numbered("vmstat", inner(vmstat::KEY)) {
                    Some(name) => push(CounterName::plain(name), inner(vmstat::VALUE)),
                    None => unknown("sys_stats_vmstat"),
                },
                sys_stats::PSI => match numbered("psi", inner(psi::RESOURCE)) {
                    Some(suffix) => {
                        let name = CounterName { suffix, ..CounterName::plain("psi.") };
                        push(name, inner(psi::TOTAL_NS));
                    }
                    None => unknown("sys_stats_psi"),
                },
                sys_stats::CPU_STAT => {
                    let cpu = Some(inner(cpu_times::CPU_ID) as u32);
                    for (field, prefix) in CPU_TIMES {
                        if let Some(value) = number(message, field) {
                            push(CounterName { cpu, ..CounterName::plain(prefix) }, value);
                        }
                    }
                }
                sys_stats::CPUFREQ_KHZ => {
                    // One value for each CPU, in their order. Those that are not packed come one by one.
                    let mut all = Vec::new();
                    append_numbers(&mut all, value);
                    for value in all {
                        push(CounterName { cpu: Some(cpu), ..CounterName::plain("frequency (kHz)") }, value);
                        cpu += 1;
                    }
                }
                sys_stats::DEVFREQ => {
                    let name = CounterName { text: text(devfreq::KEY), ..CounterName::plain("devfreq.") };
                    push(name, inner(devfreq::VALUE));
                }
                sys_stats::THERMAL_ZONE => {
                    let ty = text(thermal::TYPE);
                    let text = if ty.is_empty() { text(thermal::NAME) } else { ty };
                    let name = CounterName { text, suffix: " Temperature", ..CounterName::default() };
                    push(name, inner(thermal::TEMP));
                }
                sys_stats::DISK_STAT => {
                    let text = text(disk::DEVICE_NAME);
                    for (field, suffix) in DISK_COUNTERS {
                        if let Some(value) = number(message, field) {
                            push(CounterName { prefix: "diskstat.", cpu: None, text, suffix }, value);
                        }
                    }
                }
                _ => {
                    if let Some((_, name)) = SYSTEM_COUNTERS.iter().find(|(known, _)| *known == field) {
                        push(CounterName::plain(name), value.number());
                    } else if let Some((_, kind)) = UNREAD.iter().find(|(known, _)| *known == field) {
                        unknown(kind);
                    }
                }
            }
        }
    }

    fn read_processes(&mut self, body: &'a [u8], out: &mut dyn FnMut(CounterSample<'a>)) {
        for (_, message) in fields(body).filter(|(n, _)| *n == process_stats::PROCESSES) {
            let message = message.bytes();
            let Some(pid) = last_value(message, process::PID) else { continue };
            let owner = TrackOwner::Process(pid.int32());
            for (field, value) in fields(message) {
                let value = value.number();
                if field == process::OOM_SCORE_ADJ {
                    // The only one that may be negative.
                    let value = CounterValue::Int(value as i64);
                    out(CounterSample {
                        owner,
                        name: CounterName::plain("oom_score_adj"),
                        value,
                        time: None,
                    });
                } else if let Some((_, name, factor)) = PROCESS_COUNTERS.iter().find(|(f, ..)| *f == field) {
                    let value = int(value.saturating_mul(*factor));
                    out(CounterSample { owner, name: CounterName::plain(name), value, time: None });
                } else if field == process::FDS {
                    *self.unread.entry("process_stats_fds").or_default() += 1;
                }
            }
        }
    }
}

fn read_battery<'a>(body: &'a [u8], out: &mut dyn FnMut(CounterSample<'a>)) {
    let text = last_value(body, battery::NAME).map_or(&[][..], WireValue::bytes);
    for (field, value) in fields(body) {
        let Some((_, counter)) = BATTERY_COUNTERS.iter().find(|(known, _)| *known == field) else { continue };
        let value = match field {
            battery::CAPACITY_PERCENT => CounterValue::Double(f32::from_bits(value.number() as u32).into()),
            _ => CounterValue::Int(value.number() as i64),
        };
        let name = CounterName { prefix: "batt.", cpu: None, text, suffix: counter };
        out(CounterSample { owner: TrackOwner::Machine, name, value, time: None });
    }
}
