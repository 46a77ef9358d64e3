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
use super::track_clocks::{MachineTime, number};
use super::wire::read::{WireValue, append_numbers, fields, last_value};
use crate::formats::{CounterValue, TrackOwner};
use crate::ids::{Cpu, Pid};

const BYTES_PER_KB: u64 = 1024;
const NS_PER_MS: u64 = 1_000_000;

/// The name of a counter. All counters of a kind have the same name except for a text of the trace or a CPU
/// number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct CounterName<'a> {
    prefix: &'static str,
    cpu: Option<Cpu>,
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
pub(super) struct PolledCounter<'a> {
    pub(super) owner: TrackOwner,
    pub(super) name: CounterName<'a>,
    pub(super) value: CounterValue,
    /// The time, where it is not the packet's.
    pub(super) time: Option<MachineTime>,
}

/// The content of a packet that polls counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterPacket<'a> {
    /// The field of the packet.
    pub(super) field: u32,
    /// The message in the field.
    pub(super) body: &'a [u8],
}

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

/// Reads packets, and keeps what later packets need of them.
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

/// The fields of `SysStats` that are not read: lists of lists.
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

/// Makes a counter's value of a number of the trace. A number that is too large becomes the largest value.
fn int(value: u64) -> CounterValue {
    CounterValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

impl<'a> CounterReader<'a> {
    /// Hands each value of a packet to `out`.
    pub(super) fn read(&mut self, packet: CounterPacket<'a>, out: &mut dyn FnMut(PolledCounter<'a>)) {
        let body = packet.body;
        match packet.field {
            trace_packet::BATTERY => read_battery(body, out),
            trace_packet::POWER_RAILS => self.read_rails(body, out),
            trace_packet::SYS_STATS => self.read_system(body, out),
            trace_packet::PROCESS_STATS => self.read_processes(body, out),
            trace_packet::GPU_MEM_TOTAL_EVENT => {
                let owner = match number(body, gpu::PID).unwrap_or(0) as i32 {
                    0 => TrackOwner::Machine,
                    pid => TrackOwner::Process(Pid(pid)),
                };
                let value = int(number(body, gpu::SIZE).unwrap_or(0));
                out(PolledCounter { owner, name: CounterName::plain("GPU Memory"), value, time: None });
            }
            _ => {}
        }
    }

    /// Learns the names of rails, and reads the energy that each has used, µWs.
    fn read_rails(&mut self, body: &'a [u8], out: &mut dyn FnMut(PolledCounter<'a>)) {
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
                .map(|ms| MachineTime { clock: builtin_clock::BOOTTIME, ns: ms.saturating_mul(NS_PER_MS) });
            let name = CounterName { prefix: "power.rails.", cpu: None, text, suffix: " (µWs)" };
            let value = int(number(message, energy::ENERGY).unwrap_or(0));
            out(PolledCounter { owner: TrackOwner::Machine, name, value, time });
        }
    }

    fn read_system(&mut self, body: &'a [u8], out: &mut dyn FnMut(PolledCounter<'a>)) {
        let mut push = |name, value| {
            out(PolledCounter { owner: TrackOwner::Machine, name, value: int(value), time: None });
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
                    let cpu = Some(Cpu(inner(cpu_times::CPU_ID) as u32));
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
                        push(
                            CounterName { cpu: Some(Cpu(cpu)), ..CounterName::plain("frequency (kHz)") },
                            value,
                        );
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

    fn read_processes(&mut self, body: &'a [u8], out: &mut dyn FnMut(PolledCounter<'a>)) {
        for (_, message) in fields(body).filter(|(n, _)| *n == process_stats::PROCESSES) {
            let message = message.bytes();
            let Some(pid) = last_value(message, process::PID) else { continue };
            let owner = TrackOwner::Process(Pid(pid.int32()));
            for (field, value) in fields(message) {
                let value = value.number();
                if field == process::OOM_SCORE_ADJ {
                    // The only one that may be negative.
                    let value = CounterValue::Int(value as i64);
                    out(PolledCounter {
                        owner,
                        name: CounterName::plain("oom_score_adj"),
                        value,
                        time: None,
                    });
                } else if let Some((_, name, factor)) = PROCESS_COUNTERS.iter().find(|(f, ..)| *f == field) {
                    let value = int(value.saturating_mul(*factor));
                    out(PolledCounter { owner, name: CounterName::plain(name), value, time: None });
                } else if field == process::FDS {
                    *self.unread.entry("process_stats_fds").or_default() += 1;
                }
            }
        }
    }
}

fn read_battery<'a>(body: &'a [u8], out: &mut dyn FnMut(PolledCounter<'a>)) {
    let text = last_value(body, battery::NAME).map_or(&[][..], WireValue::bytes);
    for (field, value) in fields(body) {
        let Some((_, counter)) = BATTERY_COUNTERS.iter().find(|(known, _)| *known == field) else { continue };
        let value = match field {
            battery::CAPACITY_PERCENT => CounterValue::Double(f32::from_bits(value.number() as u32).into()),
            _ => CounterValue::Int(value.number() as i64),
        };
        let name = CounterName { prefix: "batt.", cpu: None, text, suffix: counter };
        out(PolledCounter { owner: TrackOwner::Machine, name, value, time: None });
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::fields::{
        battery_counters as battery, gpu_mem_total_event as gpu, power_rails,
        power_rails_energy_data as energy, power_rails_rail_descriptor as rail, process_stats,
        process_stats_process as process, sys_stats, sys_stats_cpu_times as cpu_times,
        sys_stats_disk_stat as disk, sys_stats_meminfo_value as meminfo, sys_stats_psi_sample as psi,
        sys_stats_thermal_zone as thermal, sys_stats_vmstat_value as vmstat, trace, trace_packet,
    };
    use super::super::read::read;
    use super::super::wire::write::{bytes, message, string, uint};
    use crate::formats::{
        CounterValue, Event, EventType, Order, ReadReport, Sink, Track, TrackEvent, TrackEventKind,
        TrackKind, TrackOwner,
    };

    #[derive(Default)]
    struct CounterLog {
        tracks: Vec<String>,
        values: Vec<String>,
    }

    impl Sink for CounterLog {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
            assert_eq!(track.kind, TrackKind::Counter);
            let owner = match track.owner {
                TrackOwner::Process(pid) => format!("{pid} "),
                _ => String::new(),
            };
            self.tracks.push(format!("{owner}{}", String::from_utf8_lossy(track.name)));
            Ok(())
        }
        fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
            let value = match event.kind {
                TrackEventKind::Counter(CounterValue::Int(value)) => value.to_string(),
                TrackEventKind::Counter(CounterValue::Double(value)) => format!("{value:?}"),
                _ => panic!("{event:?}"),
            };
            self.values.push(format!("{} {} {value}", event.ts, self.tracks[event.track.0 as usize]));
            Ok(())
        }
    }

    fn read_log(data: &[u8]) -> (Vec<String>, ReadReport) {
        let mut log = CounterLog::default();
        let report = read(data, Order::Time, &mut log).unwrap();
        (log.values, report)
    }

    /// A packet at `ts` with the content `field`.
    fn packet(out: &mut Vec<u8>, ts: u64, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        message(out, trace::PACKET, |out| {
            uint(out, trace_packet::TIMESTAMP, ts);
            message(out, field, fill);
        });
    }

    /// Appends a message of numbers.
    fn numbers(out: &mut Vec<u8>, field: u32, list: &[(u32, u64)]) {
        message(out, field, |out| list.iter().for_each(|(field, value)| uint(out, *field, *value)));
    }

    #[test]
    fn a_battery_has_whole_numbers_and_a_percentage_and_may_have_a_name() {
        let mut data = Vec::new();
        packet(&mut data, 5, trace_packet::BATTERY, |out| {
            uint(out, battery::CHARGE_COUNTER_UAH, 3_005_000);
            // A float, as 4 bytes.
            out.push((battery::CAPACITY_PERCENT << 3 | 5) as u8);
            out.extend_from_slice(&99.5f32.to_le_bytes());
            uint(out, battery::CURRENT_UA, -1200i64 as u64);
        });
        packet(&mut data, 6, trace_packet::BATTERY, |out| {
            uint(out, battery::VOLTAGE_UV, 4_000_000);
            string(out, battery::NAME, b"second");
        });
        let (values, report) = read_log(&data);
        let want = [
            "5 batt.charge_uah 3005000",
            "5 batt.capacity_pct 99.5",
            "5 batt.current_ua -1200",
            "6 batt.second.voltage_uv 4000000",
        ];
        assert_eq!(values, want);
        assert_eq!(report.track_events.counter_values, 4);
        assert!(report.unread.is_empty() && !report.is_lossy(), "{report:?}");
    }

    #[test]
    fn rails_have_the_names_of_their_session_and_the_time_of_their_measurement() {
        let mut data = Vec::new();
        packet(&mut data, 5_000_000, trace_packet::POWER_RAILS, |out| {
            uint(out, power_rails::SESSION_UUID, 9);
            message(out, power_rails::RAIL_DESCRIPTOR, |out| {
                uint(out, rail::INDEX, 4);
                string(out, rail::RAIL_NAME, b"S2M_VDD_CPU");
            });
        });
        packet(&mut data, 7_000_000, trace_packet::POWER_RAILS, |out| {
            uint(out, power_rails::SESSION_UUID, 9);
            let first = [(energy::INDEX, 4), (energy::TIMESTAMP_MS, 6), (energy::ENERGY, 77)];
            numbers(out, power_rails::ENERGY_DATA, &first);
            numbers(out, power_rails::ENERGY_DATA, &[(energy::INDEX, 4), (energy::ENERGY, 78)]);
            numbers(out, power_rails::ENERGY_DATA, &[(energy::INDEX, 5), (energy::ENERGY, 1)]);
        });
        let (values, report) = read_log(&data);
        let name = "power.rails.S2M_VDD_CPU (µWs)";
        assert_eq!(values, [format!("6000000 {name} 77"), format!("7000000 {name} 78")]);
        assert_eq!(report.unread.get("power_rails_without_name"), Some(&1));
    }

    #[test]
    fn the_memory_and_the_cpus_of_the_system_are_counters_with_the_kernels_names() {
        let mut data = Vec::new();
        packet(&mut data, 5, trace_packet::SYS_STATS, |out| {
            numbers(out, sys_stats::MEMINFO, &[(meminfo::KEY, 2), (meminfo::VALUE, 10)]);
            numbers(out, sys_stats::MEMINFO, &[(meminfo::KEY, 9999), (meminfo::VALUE, 10)]);
            numbers(out, sys_stats::VMSTAT, &[(vmstat::KEY, 1), (vmstat::VALUE, 11)]);
            numbers(out, sys_stats::CPU_STAT, &[(cpu_times::CPU_ID, 3), (cpu_times::IDLE_NS, 12)]);
            uint(out, sys_stats::NUM_FORKS, 13);
            bytes(out, sys_stats::CPUFREQ_KHZ, &[14, 15]);
            uint(out, sys_stats::CPUFREQ_KHZ, 16);
            numbers(out, sys_stats::PSI, &[(psi::RESOURCE, 3), (psi::TOTAL_NS, 17)]);
            message(out, sys_stats::THERMAL_ZONE, |out| {
                string(out, thermal::NAME, b"thermal_zone0");
                string(out, thermal::TYPE, b"BIG");
                uint(out, thermal::TEMP, 18);
            });
            message(out, sys_stats::DISK_STAT, |out| {
                string(out, disk::DEVICE_NAME, b"sda");
                uint(out, disk::READ_SECTORS, 19);
            });
            numbers(out, sys_stats::NUM_IRQ, &[(1, 2)]);
            numbers(out, sys_stats::NUM_IRQ, &[(1, 3)]);
        });
        let (values, report) = read_log(&data);
        let want = [
            "5 MemFree 10240",
            "5 nr_free_pages 11",
            "5 cpu3 times.idle_ns 12",
            "5 num_forks 13",
            "5 cpu0 frequency (kHz) 14",
            "5 cpu1 frequency (kHz) 15",
            "5 cpu2 frequency (kHz) 16",
            "5 psi.io.some 17",
            "5 BIG Temperature 18",
            "5 diskstat.sda.read_sectors 19",
        ];
        assert_eq!(values, want);
        let unread: Vec<(&str, u64)> =
            report.unread.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        assert_eq!(unread, [("sys_stats_meminfo", 1), ("sys_stats_num_irq", 2)]);
    }

    #[test]
    fn the_memory_of_a_process_is_its_own_counters_in_bytes() {
        let mut data = Vec::new();
        packet(&mut data, 5, trace_packet::PROCESS_STATS, |out| {
            let first = [
                (process::PID, 7),
                (process::VM_RSS_KB, 3),
                (process::OOM_SCORE_ADJ, -900i64 as u64),
                (process::RUNTIME_USER_MODE, 4),
            ];
            numbers(out, process_stats::PROCESSES, &first);
            numbers(out, process_stats::PROCESSES, &[(process::PID, 8), (process::VM_RSS_KB, u64::MAX)]);
            numbers(out, process_stats::PROCESSES, &[(process::VM_RSS_KB, 5)]);
        });
        packet(&mut data, 6, trace_packet::GPU_MEM_TOTAL_EVENT, |out| {
            for (field, value) in [(gpu::PID, 7), (gpu::SIZE, 4096)] {
                uint(out, field, value);
            }
        });
        let (values, _) = read_log(&data);
        let want = [
            "5 7 mem.rss 3072".to_owned(),
            "5 7 oom_score_adj -900".to_owned(),
            "5 7 runtime.user_ns 4".to_owned(),
            format!("5 8 mem.rss {}", i64::MAX),
            "6 7 GPU Memory 4096".to_owned(),
        ];
        assert_eq!(values, want);
    }

    #[test]
    fn a_trace_of_counters_cut_anywhere_gives_no_more_than_the_whole_one() {
        let mut data = Vec::new();
        for ts in 0..3 {
            packet(&mut data, ts, trace_packet::SYS_STATS, |out| uint(out, sys_stats::NUM_FORKS, ts));
        }
        let (whole, _) = read_log(&data);
        for cut in 0..data.len() {
            let (values, _) = read_log(&data[..cut]);
            assert_eq!(values, whole[..values.len()], "cut at {cut}");
        }
    }

    #[test]
    fn a_trace_of_counters_with_any_byte_changed_is_read_to_its_end() {
        let mut data = Vec::new();
        packet(&mut data, 5, trace_packet::BATTERY, |out| uint(out, battery::CHARGE_COUNTER_UAH, 3));
        packet(&mut data, 5, trace_packet::POWER_RAILS, |out| {
            numbers(out, power_rails::RAIL_DESCRIPTOR, &[(rail::INDEX, 4)]);
            numbers(out, power_rails::ENERGY_DATA, &[(energy::INDEX, 4), (energy::TIMESTAMP_MS, 6)]);
        });
        packet(&mut data, 5, trace_packet::SYS_STATS, |out| {
            numbers(out, sys_stats::CPU_STAT, &[(cpu_times::CPU_ID, 3), (cpu_times::IDLE_NS, 12)]);
            bytes(out, sys_stats::CPUFREQ_KHZ, &[14, 15]);
        });
        packet(&mut data, 5, trace_packet::PROCESS_STATS, |out| {
            numbers(out, process_stats::PROCESSES, &[(process::PID, 7), (process::VM_RSS_KB, 3)]);
        });
        for at in 0..data.len() {
            for byte in 0..=u8::MAX {
                let mut changed = data.clone();
                changed[at] = byte;
                let mut seen = AnyEvents::default();
                let report = read(&changed, Order::Time, &mut seen).unwrap();
                assert_eq!(report.track_events.counter_values, seen.counter_values);
            }
        }
    }

    /// Counts values of counters.
    #[derive(Default)]
    struct AnyEvents {
        counter_values: u64,
    }

    impl Sink for AnyEvents {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
            self.counter_values += u64::from(matches!(event.kind, TrackEventKind::Counter(_)));
            Ok(())
        }
    }
}
