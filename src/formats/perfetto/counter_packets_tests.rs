//! Tests of the reading of packets that poll counters, with traces that the tests encode themselves.

use std::io;

use super::fields::{
    battery_counters as battery, gpu_mem_total_event as gpu, power_rails, power_rails_energy_data as energy,
    power_rails_rail_descriptor as rail, process_stats, process_stats_process as process, sys_stats,
    sys_stats_cpu_times as cpu_times, sys_stats_disk_stat as disk, sys_stats_meminfo_value as meminfo,
    sys_stats_psi_sample as psi, sys_stats_thermal_zone as thermal, sys_stats_vmstat_value as vmstat, trace,
    trace_packet,
};
use super::read::read;
use super::wire::write::{bytes, message, string, uint};
use crate::formats::{
    CounterValue, Event, EventType, Order, ReadReport, Sink, Track, TrackEvent, TrackEventKind, TrackKind,
    TrackOwner,
};

type Out = Vec<u8>;

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
fn packet(out: &mut Out, ts: u64, field: u32, fill: impl FnOnce(&mut Out)) {
    message(out, trace::PACKET, |out| {
        uint(out, trace_packet::TIMESTAMP, ts);
        message(out, field, fill);
    });
}

/// Appends a message of numbers.
fn numbers(out: &mut Out, field: u32, list: &[(u32, u64)]) {
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
