//! Field numbers and enum values of the Perfetto protos that the reader and the writer use.
//!
//! `scripts/gen-perfetto-tables` writes this file from Perfetto's published protos; edit that script instead.
//! A module is named after a message (`u32` constants: field numbers) or an enum (`u64` constants: values).

/// `Trace`.
pub(crate) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

/// `TracePacket`.
pub(crate) mod trace_packet {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const TRUSTED_UID: u32 = 3;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const SYS_STATS: u32 = 7;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const PROCESS_STATS: u32 = 9;
    pub(crate) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const FTRACE_STATS: u32 = 34;
    pub(crate) const TRACE_STATS: u32 = 35;
    pub(crate) const BATTERY: u32 = 38;
    pub(crate) const POWER_RAILS: u32 = 40;
    pub(crate) const INCREMENTAL_STATE_CLEARED: u32 = 41;
    pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(crate) const PROCESS_DESCRIPTOR: u32 = 43;
    pub(crate) const THREAD_DESCRIPTOR: u32 = 44;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const PACKAGES_LIST: u32 = 47;
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const STREAMING_PROFILE_PACKET: u32 = 54;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const MODULE_SYMBOLS: u32 = 61;
    pub(crate) const DEOBFUSCATION_MAPPING: u32 = 64;
    pub(crate) const PERF_SAMPLE: u32 = 66;
    pub(crate) const GPU_MEM_TOTAL_EVENT: u32 = 71;
    pub(crate) const FRAME_TIMELINE_EVENT: u32 = 76;
    pub(crate) const TRUSTED_PID: u32 = 79;
    pub(crate) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    pub(crate) const MACHINE_ID: u32 = 98;
    pub(crate) const TRACE_ATTRIBUTES: u32 = 126;
    pub(crate) const ZSTD_COMPRESSED_PACKETS: u32 = 133;
    pub(crate) const STACK_SAMPLE: u32 = 135;
}

/// `BatteryCounters`.
pub(crate) mod battery_counters {
    pub(crate) const CHARGE_COUNTER_UAH: u32 = 1;
    pub(crate) const CAPACITY_PERCENT: u32 = 2;
    pub(crate) const CURRENT_UA: u32 = 3;
    pub(crate) const CURRENT_AVG_UA: u32 = 4;
    pub(crate) const NAME: u32 = 5;
    pub(crate) const ENERGY_COUNTER_UWH: u32 = 6;
    pub(crate) const VOLTAGE_UV: u32 = 7;
}

/// `PowerRails`.
pub(crate) mod power_rails {
    pub(crate) const RAIL_DESCRIPTOR: u32 = 1;
    pub(crate) const ENERGY_DATA: u32 = 2;
    pub(crate) const SESSION_UUID: u32 = 3;
}

/// `PowerRails.RailDescriptor`.
pub(crate) mod power_rails_rail_descriptor {
    pub(crate) const INDEX: u32 = 1;
    pub(crate) const RAIL_NAME: u32 = 2;
}

/// `PowerRails.EnergyData`.
pub(crate) mod power_rails_energy_data {
    pub(crate) const INDEX: u32 = 1;
    pub(crate) const TIMESTAMP_MS: u32 = 2;
    pub(crate) const ENERGY: u32 = 3;
}

/// `SysStats`.
pub(crate) mod sys_stats {
    pub(crate) const MEMINFO: u32 = 1;
    pub(crate) const VMSTAT: u32 = 2;
    pub(crate) const CPU_STAT: u32 = 3;
    pub(crate) const NUM_FORKS: u32 = 4;
    pub(crate) const NUM_IRQ_TOTAL: u32 = 5;
    pub(crate) const NUM_IRQ: u32 = 6;
    pub(crate) const NUM_SOFTIRQ_TOTAL: u32 = 7;
    pub(crate) const NUM_SOFTIRQ: u32 = 8;
    pub(crate) const DEVFREQ: u32 = 10;
    pub(crate) const CPUFREQ_KHZ: u32 = 11;
    pub(crate) const BUDDY_INFO: u32 = 12;
    pub(crate) const DISK_STAT: u32 = 13;
    pub(crate) const PSI: u32 = 14;
    pub(crate) const THERMAL_ZONE: u32 = 15;
    pub(crate) const CPUIDLE_STATE: u32 = 16;
    pub(crate) const GPUFREQ_MHZ: u32 = 17;
    pub(crate) const SLAB_INFO: u32 = 18;
}

/// `SysStats.MeminfoValue`.
pub(crate) mod sys_stats_meminfo_value {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

/// `SysStats.VmstatValue`.
pub(crate) mod sys_stats_vmstat_value {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

/// `SysStats.CpuTimes`.
pub(crate) mod sys_stats_cpu_times {
    pub(crate) const CPU_ID: u32 = 1;
    pub(crate) const USER_NS: u32 = 2;
    pub(crate) const USER_NICE_NS: u32 = 3;
    pub(crate) const SYSTEM_MODE_NS: u32 = 4;
    pub(crate) const IDLE_NS: u32 = 5;
    pub(crate) const IO_WAIT_NS: u32 = 6;
    pub(crate) const IRQ_NS: u32 = 7;
    pub(crate) const SOFTIRQ_NS: u32 = 8;
    pub(crate) const STEAL_NS: u32 = 9;
}

/// `SysStats.DevfreqValue`.
pub(crate) mod sys_stats_devfreq_value {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

/// `SysStats.DiskStat`.
pub(crate) mod sys_stats_disk_stat {
    pub(crate) const DEVICE_NAME: u32 = 1;
    pub(crate) const READ_SECTORS: u32 = 2;
    pub(crate) const READ_TIME_MS: u32 = 3;
    pub(crate) const WRITE_SECTORS: u32 = 4;
    pub(crate) const WRITE_TIME_MS: u32 = 5;
    pub(crate) const DISCARD_SECTORS: u32 = 6;
    pub(crate) const DISCARD_TIME_MS: u32 = 7;
    pub(crate) const FLUSH_COUNT: u32 = 8;
    pub(crate) const FLUSH_TIME_MS: u32 = 9;
}

/// `SysStats.PsiSample`.
pub(crate) mod sys_stats_psi_sample {
    pub(crate) const RESOURCE: u32 = 1;
    pub(crate) const TOTAL_NS: u32 = 2;
}

/// `SysStats.ThermalZone`.
pub(crate) mod sys_stats_thermal_zone {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const TEMP: u32 = 2;
    pub(crate) const TYPE: u32 = 3;
}

/// `ProcessStats`.
pub(crate) mod process_stats {
    pub(crate) const PROCESSES: u32 = 1;
}

/// `ProcessStats.Process`.
pub(crate) mod process_stats_process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const VM_SIZE_KB: u32 = 2;
    pub(crate) const VM_RSS_KB: u32 = 3;
    pub(crate) const RSS_ANON_KB: u32 = 4;
    pub(crate) const RSS_FILE_KB: u32 = 5;
    pub(crate) const RSS_SHMEM_KB: u32 = 6;
    pub(crate) const VM_SWAP_KB: u32 = 7;
    pub(crate) const VM_LOCKED_KB: u32 = 8;
    pub(crate) const VM_HWM_KB: u32 = 9;
    pub(crate) const OOM_SCORE_ADJ: u32 = 10;
    pub(crate) const CHROME_PRIVATE_FOOTPRINT_KB: u32 = 13;
    pub(crate) const CHROME_PEAK_RESIDENT_SET_KB: u32 = 14;
    pub(crate) const FDS: u32 = 15;
    pub(crate) const SMR_RSS_KB: u32 = 16;
    pub(crate) const SMR_PSS_KB: u32 = 17;
    pub(crate) const SMR_PSS_ANON_KB: u32 = 18;
    pub(crate) const SMR_PSS_FILE_KB: u32 = 19;
    pub(crate) const SMR_PSS_SHMEM_KB: u32 = 20;
    pub(crate) const RUNTIME_USER_MODE: u32 = 21;
    pub(crate) const RUNTIME_KERNEL_MODE: u32 = 22;
    pub(crate) const SMR_SWAP_PSS_KB: u32 = 23;
    pub(crate) const DMABUF_RSS_KB: u32 = 24;
}

/// `GpuMemTotalEvent`.
pub(crate) mod gpu_mem_total_event {
    pub(crate) const PID: u32 = 2;
    pub(crate) const SIZE: u32 = 3;
}

/// `ClockSnapshot`.
pub(crate) mod clock_snapshot {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY_TRACE_CLOCK: u32 = 2;
}

/// `ClockSnapshot.Clock`.
pub(crate) mod clock_snapshot_clock {
    pub(crate) const CLOCK_ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const IS_INCREMENTAL: u32 = 3;
    pub(crate) const UNIT_MULTIPLIER_NS: u32 = 4;
}

/// `ProcessTree`.
pub(crate) mod process_tree {
    pub(crate) const PROCESSES: u32 = 1;
    pub(crate) const THREADS: u32 = 2;
}

/// `ProcessTree.Process`.
pub(crate) mod process_tree_process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const PPID: u32 = 2;
    pub(crate) const CMDLINE: u32 = 3;
    pub(crate) const UID: u32 = 5;
    pub(crate) const CMDLINE_IS_COMM: u32 = 9;
}

/// `PackagesList`.
pub(crate) mod packages_list {
    pub(crate) const PACKAGES: u32 = 1;
}

/// `PackagesList.PackageInfo`.
pub(crate) mod package_info {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const UID: u32 = 2;
    pub(crate) const DEBUGGABLE: u32 = 3;
}

/// `ProcessTree.Thread`.
pub(crate) mod process_tree_thread {
    pub(crate) const TID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const TGID: u32 = 3;
}

/// `SystemInfo`.
pub(crate) mod system_info {
    pub(crate) const UTSNAME: u32 = 1;
    pub(crate) const TRACING_SERVICE_VERSION: u32 = 4;
    pub(crate) const ANDROID_SDK_VERSION: u32 = 5;
    pub(crate) const NUM_CPUS: u32 = 8;
}

/// `Utsname`.
pub(crate) mod utsname {
    pub(crate) const SYSNAME: u32 = 1;
    pub(crate) const VERSION: u32 = 2;
    pub(crate) const RELEASE: u32 = 3;
    pub(crate) const MACHINE: u32 = 4;
}

/// `FtraceEventBundle`.
pub(crate) mod ftrace_event_bundle {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const EVENT: u32 = 2;
    pub(crate) const LOST_EVENTS: u32 = 3;
    pub(crate) const COMPACT_SCHED: u32 = 4;
    pub(crate) const FTRACE_CLOCK: u32 = 5;
    pub(crate) const FTRACE_TIMESTAMP: u32 = 6;
    pub(crate) const BOOT_TIMESTAMP: u32 = 7;
    pub(crate) const ERROR: u32 = 8;
    pub(crate) const GENERIC_EVENT_DESCRIPTORS: u32 = 11;
}

/// `FtraceEventBundle.CompactSched`.
pub(crate) mod compact_sched {
    pub(crate) const SWITCH_TIMESTAMP: u32 = 1;
    pub(crate) const SWITCH_PREV_STATE: u32 = 2;
    pub(crate) const SWITCH_NEXT_PID: u32 = 3;
    pub(crate) const SWITCH_NEXT_PRIO: u32 = 4;
    pub(crate) const INTERN_TABLE: u32 = 5;
    pub(crate) const SWITCH_NEXT_COMM_INDEX: u32 = 6;
    pub(crate) const WAKING_TIMESTAMP: u32 = 7;
    pub(crate) const WAKING_PID: u32 = 8;
    pub(crate) const WAKING_TARGET_CPU: u32 = 9;
    pub(crate) const WAKING_PRIO: u32 = 10;
    pub(crate) const WAKING_COMM_INDEX: u32 = 11;
    pub(crate) const WAKING_COMMON_FLAGS: u32 = 12;
}

/// `FtraceEventBundle.GenericEventDescriptor`.
pub(crate) mod generic_event_descriptor {
    pub(crate) const FIELD_ID: u32 = 1;
    pub(crate) const EVENT_DESCRIPTOR: u32 = 2;
    pub(crate) const GROUP_NAME: u32 = 3;
}

/// `FtraceEvent`.
pub(crate) mod ftrace_event {
    pub(crate) const TIMESTAMP: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const PRINT: u32 = 3;
    pub(crate) const SCHED_SWITCH: u32 = 4;
    pub(crate) const COMMON_FLAGS: u32 = 5;
    pub(crate) const SCHED_WAKING: u32 = 20;
    pub(crate) const GENERIC: u32 = 327;
}

/// `PrintFtraceEvent`.
pub(crate) mod print_ftrace_event {
    pub(crate) const BUF: u32 = 2;
}

/// `GenericFtraceEvent`.
pub(crate) mod generic_ftrace_event {
    pub(crate) const EVENT_NAME: u32 = 1;
    pub(crate) const FIELD: u32 = 2;
}

/// `GenericFtraceEvent.Field`.
pub(crate) mod generic_ftrace_event_field {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const STR_VALUE: u32 = 3;
    pub(crate) const INT_VALUE: u32 = 4;
    pub(crate) const UINT_VALUE: u32 = 5;
}

/// `FtraceStats`.
pub(crate) mod ftrace_stats {
    pub(crate) const PHASE: u32 = 1;
    pub(crate) const CPU_STATS: u32 = 2;
    pub(crate) const ATRACE_ERRORS: u32 = 5;
    pub(crate) const UNKNOWN_FTRACE_EVENTS: u32 = 6;
    pub(crate) const FAILED_FTRACE_EVENTS: u32 = 7;
    pub(crate) const FTRACE_PARSE_ERRORS: u32 = 9;
    pub(crate) const KPROBE_STATS: u32 = 10;
}

/// `FtraceKprobeStats`.
pub(crate) mod ftrace_kprobe_stats {
    pub(crate) const MISSES: u32 = 2;
}

/// `TraceStats`.
pub(crate) mod trace_stats {
    pub(crate) const BUFFER_STATS: u32 = 1;
    pub(crate) const INVALID_PACKETS: u32 = 10;
    pub(crate) const FILTER_STATS: u32 = 11;
    pub(crate) const FLUSHES_FAILED: u32 = 14;
    pub(crate) const FINAL_FLUSH_OUTCOME: u32 = 15;
}

/// `TraceStats.BufferStats`.
pub(crate) mod buffer_stats {
    pub(crate) const PATCHES_FAILED: u32 = 6;
    pub(crate) const ABI_VIOLATIONS: u32 = 9;
    pub(crate) const TRACE_WRITER_PACKET_LOSS: u32 = 19;
}

/// `TraceStats.FilterStats`.
pub(crate) mod filter_stats {
    pub(crate) const ERRORS: u32 = 4;
}

/// `FtraceCpuStats`.
pub(crate) mod ftrace_cpu_stats {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const OVERRUN: u32 = 3;
    pub(crate) const NOW_TS: u32 = 7;
    pub(crate) const DROPPED_EVENTS: u32 = 8;
    pub(crate) const READ_EVENTS: u32 = 9;
}

/// `TrackDescriptor`.
pub(crate) mod track_descriptor {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const STATIC_NAME: u32 = 10;
    pub(crate) const ATRACE_NAME: u32 = 13;
    pub(crate) const DESCRIPTION: u32 = 14;
}

/// `CounterDescriptor`.
pub(crate) mod counter_descriptor {
    pub(crate) const UNIT_MULTIPLIER: u32 = 4;
    pub(crate) const IS_INCREMENTAL: u32 = 5;
}

/// `ProcessDescriptor`.
pub(crate) mod process_descriptor {
    pub(crate) const PID: u32 = 1;
    pub(crate) const CMDLINE: u32 = 2;
    pub(crate) const LEGACY_SORT_INDEX: u32 = 3;
    pub(crate) const PROCESS_NAME: u32 = 6;
    pub(crate) const PROCESS_LABELS: u32 = 8;
}

/// `ThreadDescriptor`.
pub(crate) mod thread_descriptor {
    pub(crate) const PID: u32 = 1;
    pub(crate) const TID: u32 = 2;
    pub(crate) const LEGACY_SORT_INDEX: u32 = 3;
    pub(crate) const THREAD_NAME: u32 = 5;
    pub(crate) const REFERENCE_TIMESTAMP_US: u32 = 6;
    pub(crate) const REFERENCE_THREAD_TIME_US: u32 = 7;
}

/// `TrackEvent`.
pub(crate) mod track_event {
    pub(crate) const TIMESTAMP_DELTA_US: u32 = 1;
    pub(crate) const THREAD_TIME_DELTA_US: u32 = 2;
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const LEGACY_EVENT: u32 = 6;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTER_VALUES: u32 = 12;
    pub(crate) const TIMESTAMP_ABSOLUTE_US: u32 = 16;
    pub(crate) const THREAD_TIME_ABSOLUTE_US: u32 = 17;
    pub(crate) const CATEGORIES: u32 = 22;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub(crate) const FLOW_IDS_OLD: u32 = 36;
    pub(crate) const TERMINATING_FLOW_IDS_OLD: u32 = 42;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const EXTRA_DOUBLE_COUNTER_TRACK_UUIDS: u32 = 45;
    pub(crate) const EXTRA_DOUBLE_COUNTER_VALUES: u32 = 46;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
}

/// `TrackEvent.LegacyEvent`.
pub(crate) mod legacy_event {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const PHASE: u32 = 2;
    pub(crate) const DURATION_US: u32 = 3;
    pub(crate) const THREAD_DURATION_US: u32 = 4;
    pub(crate) const UNSCOPED_ID: u32 = 6;
    pub(crate) const BIND_ID: u32 = 8;
    pub(crate) const LOCAL_ID: u32 = 10;
    pub(crate) const GLOBAL_ID: u32 = 11;
    pub(crate) const BIND_TO_ENCLOSING: u32 = 12;
    pub(crate) const FLOW_DIRECTION: u32 = 13;
    pub(crate) const INSTANT_EVENT_SCOPE: u32 = 14;
    pub(crate) const PID_OVERRIDE: u32 = 18;
    pub(crate) const TID_OVERRIDE: u32 = 19;
}

/// `DebugAnnotation`.
pub(crate) mod debug_annotation {
    pub(crate) const BOOL_VALUE: u32 = 2;
    pub(crate) const UINT_VALUE: u32 = 3;
    pub(crate) const INT_VALUE: u32 = 4;
    pub(crate) const DOUBLE_VALUE: u32 = 5;
    pub(crate) const STRING_VALUE: u32 = 6;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const DICT_ENTRIES: u32 = 11;
    pub(crate) const ARRAY_VALUES: u32 = 12;
}

/// `InternedData`.
pub(crate) mod interned_data {
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const FUNCTION_NAMES: u32 = 5;
    pub(crate) const FRAMES: u32 = 6;
    pub(crate) const CALLSTACKS: u32 = 7;
    pub(crate) const BUILD_IDS: u32 = 16;
    pub(crate) const MAPPING_PATHS: u32 = 17;
    pub(crate) const MAPPINGS: u32 = 19;
    pub(crate) const KERNEL_SYMBOLS: u32 = 26;
    pub(crate) const STACK_SAMPLE_TASK_CONTEXTS: u32 = 48;
    pub(crate) const STACK_SAMPLE_EXECUTION_CONTEXTS: u32 = 49;
    pub(crate) const STACK_SAMPLE_COUNTER_DESCRIPTORS: u32 = 50;
}

/// `Callstack`.
pub(crate) mod callstack {
    pub(crate) const IID: u32 = 1;
    pub(crate) const FRAME_IDS: u32 = 2;
}

/// `Frame`.
pub(crate) mod frame {
    pub(crate) const IID: u32 = 1;
    pub(crate) const FUNCTION_NAME_ID: u32 = 2;
    pub(crate) const MAPPING_ID: u32 = 3;
    pub(crate) const REL_PC: u32 = 4;
    pub(crate) const KIND: u32 = 7;
}

/// `Mapping`.
pub(crate) mod mapping {
    pub(crate) const IID: u32 = 1;
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const PATH_STRING_IDS: u32 = 7;
}

/// `ModuleSymbols`.
pub(crate) mod module_symbols {
    pub(crate) const PATH: u32 = 1;
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const ADDRESS_SYMBOLS: u32 = 3;
}

/// `AddressSymbols`.
pub(crate) mod address_symbols {
    pub(crate) const ADDRESS: u32 = 1;
    pub(crate) const LINES: u32 = 2;
}

/// `Line`.
pub(crate) mod line {
    pub(crate) const FUNCTION_NAME: u32 = 1;
}

/// `PerfSample`.
pub(crate) mod perf_sample {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const TID: u32 = 3;
    pub(crate) const CALLSTACK_IID: u32 = 4;
    pub(crate) const TIMEBASE_COUNT: u32 = 6;
    pub(crate) const FOLLOWER_COUNTS: u32 = 7;
    pub(crate) const UNWIND_ERROR: u32 = 16;
    pub(crate) const KERNEL_RECORDS_LOST: u32 = 17;
    pub(crate) const SAMPLE_SKIPPED_REASON: u32 = 18;
    pub(crate) const PRODUCER_EVENT: u32 = 19;
}

/// `PerfSampleDefaults`.
pub(crate) mod perf_sample_defaults {
    pub(crate) const TIMEBASE: u32 = 1;
    pub(crate) const FOLLOWERS: u32 = 4;
}

/// `FollowerEvent`.
pub(crate) mod follower_event {
    pub(crate) const NAME: u32 = 4;
}

/// `PerfEvents.Timebase`.
pub(crate) mod perf_events_timebase {
    pub(crate) const PERIOD: u32 = 1;
    pub(crate) const FREQUENCY: u32 = 2;
    pub(crate) const TRACEPOINT: u32 = 3;
    pub(crate) const COUNTER: u32 = 4;
    pub(crate) const RAW_EVENT: u32 = 5;
    pub(crate) const NAME: u32 = 10;
}

/// `PerfEvents.Tracepoint`.
pub(crate) mod perf_events_tracepoint {
    pub(crate) const NAME: u32 = 1;
}

/// `StreamingProfilePacket`.
pub(crate) mod streaming_profile_packet {
    pub(crate) const CALLSTACK_IID: u32 = 1;
    pub(crate) const TIMESTAMP_DELTA_US: u32 = 2;
}

/// `StackSample`.
pub(crate) mod stack_sample {
    pub(crate) const TASK_CONTEXT: u32 = 1;
    pub(crate) const TASK_CONTEXT_IID: u32 = 2;
    pub(crate) const EXECUTION_CONTEXT: u32 = 3;
    pub(crate) const EXECUTION_CONTEXT_IID: u32 = 4;
    pub(crate) const CALLSTACK: u32 = 5;
    pub(crate) const CALLSTACK_IID: u32 = 6;
    pub(crate) const UNWIND_ERROR: u32 = 7;
    pub(crate) const UNWIND_ERROR_IID: u32 = 8;
    pub(crate) const PRIMARY_DESCRIPTOR: u32 = 9;
    pub(crate) const PRIMARY_DESCRIPTOR_IID: u32 = 10;
    pub(crate) const PRIMARY_WEIGHT: u32 = 11;
}

/// `StackSample.TaskContext`.
pub(crate) mod stack_sample_task_context {
    pub(crate) const IID: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const TID: u32 = 3;
}

/// `StackSample.ExecutionContext`.
pub(crate) mod stack_sample_execution_context {
    pub(crate) const IID: u32 = 1;
    pub(crate) const CPU: u32 = 2;
}

/// `StackSample.CounterDescriptor`.
pub(crate) mod stack_sample_counter_descriptor {
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const UNIT: u32 = 3;
    pub(crate) const UNIT_STR: u32 = 4;
    pub(crate) const UNIT_MULTIPLIER: u32 = 5;
}

/// `StackSampleDefaults`.
pub(crate) mod stack_sample_defaults {
    pub(crate) const SOURCE: u32 = 1;
    pub(crate) const PRIMARY_DESCRIPTOR: u32 = 2;
}

/// `InlineCallstack`.
pub(crate) mod inline_callstack {
    pub(crate) const FRAMES: u32 = 1;
}

/// `InlineCallstack.Frame`.
pub(crate) mod inline_callstack_frame {
    pub(crate) const FUNCTION_NAME: u32 = 1;
}

/// `DeobfuscationMapping`.
pub(crate) mod deobfuscation_mapping {
    pub(crate) const PACKAGE_NAME: u32 = 1;
    pub(crate) const OBFUSCATED_CLASSES: u32 = 3;
}

/// `ObfuscatedClass`.
pub(crate) mod obfuscated_class {
    pub(crate) const OBFUSCATED_NAME: u32 = 1;
    pub(crate) const DEOBFUSCATED_NAME: u32 = 2;
    pub(crate) const OBFUSCATED_METHODS: u32 = 4;
}

/// `ObfuscatedMember`.
pub(crate) mod obfuscated_member {
    pub(crate) const OBFUSCATED_NAME: u32 = 1;
    pub(crate) const DEOBFUSCATED_NAME: u32 = 2;
}

/// `EventName`.
pub(crate) mod event_name {
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}

/// `InternedString`.
pub(crate) mod interned_string {
    pub(crate) const IID: u32 = 1;
    pub(crate) const STR: u32 = 2;
}

/// `TraceAttributes`.
pub(crate) mod trace_attributes {
    pub(crate) const ATTRIBUTE: u32 = 1;
}

/// `TraceAttributes.Attribute`.
pub(crate) mod trace_attributes_attribute {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const STRING_VALUE: u32 = 3;
}

/// `TracePacketDefaults`.
pub(crate) mod trace_packet_defaults {
    pub(crate) const TRACK_EVENT_DEFAULTS: u32 = 11;
    pub(crate) const PERF_SAMPLE_DEFAULTS: u32 = 12;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const STACK_SAMPLE_DEFAULTS: u32 = 100;
}

/// `TrackEventDefaults`.
pub(crate) mod track_event_defaults {
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub(crate) const EXTRA_DOUBLE_COUNTER_TRACK_UUIDS: u32 = 45;
}

/// `DescriptorProto`.
pub(crate) mod descriptor_proto {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const FIELD: u32 = 2;
}

/// `FieldDescriptorProto`.
pub(crate) mod field_descriptor_proto {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const NUMBER: u32 = 3;
    pub(crate) const LABEL: u32 = 4;
    pub(crate) const TYPE: u32 = 5;
}

/// `TraceConfig`.
pub(crate) mod trace_config {
    pub(crate) const BUFFERS: u32 = 1;
    pub(crate) const DATA_SOURCES: u32 = 2;
    pub(crate) const DURATION_MS: u32 = 3;
    pub(crate) const WRITE_INTO_FILE: u32 = 8;
    pub(crate) const FILE_WRITE_PERIOD_MS: u32 = 9;
    pub(crate) const MAX_FILE_SIZE_BYTES: u32 = 10;
    pub(crate) const FLUSH_PERIOD_MS: u32 = 13;
}

/// `TraceConfig.BufferConfig`.
pub(crate) mod buffer_config {
    pub(crate) const SIZE_KB: u32 = 1;
    pub(crate) const FILL_POLICY: u32 = 4;
}

/// `TraceConfig.DataSource`.
pub(crate) mod data_source {
    pub(crate) const CONFIG: u32 = 1;
}

/// `DataSourceConfig`.
pub(crate) mod data_source_config {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const FTRACE_CONFIG: u32 = 100;
    pub(crate) const PROCESS_STATS_CONFIG: u32 = 103;
}

/// `FtraceConfig`.
pub(crate) mod ftrace_config {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const ATRACE_CATEGORIES: u32 = 2;
    pub(crate) const ATRACE_APPS: u32 = 3;
    pub(crate) const BUFFER_SIZE_KB: u32 = 10;
    pub(crate) const DRAIN_PERIOD_MS: u32 = 11;
}

/// `ProcessStatsConfig`.
pub(crate) mod process_stats_config {
    pub(crate) const SCAN_ALL_PROCESSES_ON_START: u32 = 2;
    pub(crate) const RECORD_THREAD_NAMES: u32 = 3;
}

/// `FrameTimelineEvent`.
pub(crate) mod frame_timeline_event {
    pub(crate) const EXPECTED_DISPLAY_FRAME_START: u32 = 1;
    pub(crate) const ACTUAL_DISPLAY_FRAME_START: u32 = 2;
    pub(crate) const EXPECTED_SURFACE_FRAME_START: u32 = 3;
    pub(crate) const ACTUAL_SURFACE_FRAME_START: u32 = 4;
    pub(crate) const FRAME_END: u32 = 5;
}

/// `ExpectedDisplayFrameStart`.
pub(crate) mod expected_display_frame_start {
    pub(crate) const COOKIE: u32 = 1;
    pub(crate) const TOKEN: u32 = 2;
    pub(crate) const PID: u32 = 3;
}

/// `ActualDisplayFrameStart`.
pub(crate) mod actual_display_frame_start {
    pub(crate) const COOKIE: u32 = 1;
    pub(crate) const TOKEN: u32 = 2;
    pub(crate) const PID: u32 = 3;
    pub(crate) const PRESENT_TYPE: u32 = 4;
    pub(crate) const ON_TIME_FINISH: u32 = 5;
    pub(crate) const GPU_COMPOSITION: u32 = 6;
    pub(crate) const JANK_TYPE: u32 = 7;
    pub(crate) const PREDICTION_TYPE: u32 = 8;
}

/// `ExpectedSurfaceFrameStart`.
pub(crate) mod expected_surface_frame_start {
    pub(crate) const COOKIE: u32 = 1;
    pub(crate) const TOKEN: u32 = 2;
    pub(crate) const DISPLAY_FRAME_TOKEN: u32 = 3;
    pub(crate) const PID: u32 = 4;
    pub(crate) const LAYER_NAME: u32 = 5;
}

/// `ActualSurfaceFrameStart`.
pub(crate) mod actual_surface_frame_start {
    pub(crate) const COOKIE: u32 = 1;
    pub(crate) const TOKEN: u32 = 2;
    pub(crate) const DISPLAY_FRAME_TOKEN: u32 = 3;
    pub(crate) const PID: u32 = 4;
    pub(crate) const LAYER_NAME: u32 = 5;
    pub(crate) const PRESENT_TYPE: u32 = 6;
    pub(crate) const ON_TIME_FINISH: u32 = 7;
    pub(crate) const GPU_COMPOSITION: u32 = 8;
    pub(crate) const JANK_TYPE: u32 = 9;
    pub(crate) const PREDICTION_TYPE: u32 = 10;
}

/// `FrameEnd`.
pub(crate) mod frame_end {
    pub(crate) const COOKIE: u32 = 1;
}

/// `TraceConfig.BufferConfig.FillPolicy`.
pub(crate) mod trace_config_buffer_config_fill_policy {
    pub(crate) const RING_BUFFER: u64 = 1;
    pub(crate) const DISCARD: u64 = 2;
}

/// `BuiltinClock`.
pub(crate) mod builtin_clock {
    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const MONOTONIC: u64 = 3;
    pub(crate) const MONOTONIC_RAW: u64 = 5;
    pub(crate) const BOOTTIME: u64 = 6;
    pub(crate) const TSC: u64 = 9;
}

/// `FtraceClock`.
pub(crate) mod ftrace_clock {
    pub(crate) const UNSPECIFIED: u64 = 0;
    pub(crate) const GLOBAL: u64 = 2;
    pub(crate) const LOCAL: u64 = 3;
    pub(crate) const MONO_RAW: u64 = 4;
}

/// `TracePacket.SequenceFlags`.
pub(crate) mod sequence_flags {
    pub(crate) const INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub(crate) const NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `FtraceStats.Phase`.
pub(crate) mod ftrace_stats_phase {
    pub(crate) const START_OF_TRACE: u64 = 1;
    pub(crate) const END_OF_TRACE: u64 = 2;
}

/// `TrackEvent.Type`.
pub(crate) mod track_event_type {
    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

/// `TrackEvent.LegacyEvent.FlowDirection`.
pub(crate) mod flow_direction {
    pub(crate) const IN: u64 = 1;
    pub(crate) const OUT: u64 = 2;
    pub(crate) const INOUT: u64 = 3;
}

/// `TrackEvent.LegacyEvent.InstantEventScope`.
pub(crate) mod instant_event_scope {
    pub(crate) const GLOBAL: u64 = 1;
    pub(crate) const PROCESS: u64 = 2;
}

/// `PerfSample.SampleSkipReason`.
pub(crate) mod perf_sample_sample_skip_reason {
    pub(crate) const NOT_IN_SCOPE: u64 = 4;
}

/// `StackSample.Unit`.
pub(crate) mod stack_sample_unit {
    pub(crate) const NANOSECONDS: u64 = 1;
    pub(crate) const CPU_CYCLES: u64 = 2;
    pub(crate) const INSTRUCTIONS: u64 = 3;
    pub(crate) const BYTES: u64 = 4;
    pub(crate) const PAGE_FAULTS: u64 = 5;
    pub(crate) const CACHE_MISSES: u64 = 6;
    pub(crate) const CACHE_REFERENCES: u64 = 7;
    pub(crate) const BRANCH_MISSES: u64 = 8;
}

/// `Frame.Kind`.
pub(crate) mod frame_kind {
    pub(crate) const KERNEL: u64 = 2;
    pub(crate) const INTERPRETED: u64 = 3;
    pub(crate) const JIT: u64 = 4;
}

/// `FieldDescriptorProto.Type`.
pub(crate) mod field_descriptor_proto_type {
    pub(crate) const UINT64: u64 = 4;
    pub(crate) const FIXED64: u64 = 6;
    pub(crate) const FIXED32: u64 = 7;
    pub(crate) const BOOL: u64 = 8;
    pub(crate) const STRING: u64 = 9;
    pub(crate) const BYTES: u64 = 12;
    pub(crate) const UINT32: u64 = 13;
}

/// `FieldDescriptorProto.Label`.
pub(crate) mod field_descriptor_proto_label {
    pub(crate) const REPEATED: u64 = 3;
}
