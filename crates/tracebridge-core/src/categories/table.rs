//! The table of categories: name, description as atrace prints it, userspace tag, and kernel events. A new
//! category is one row here.
//!
//! The rows follow AOSP frameworks/native `cmds/atrace/atrace.cpp` (Android 16; `pdx` is of Android 15 and
//! older), with the events that only Perfetto's `predefined_tracepoints.cc` has marked
//! [`Need::PerfettoOnly`].

use super::{Category, EventRef, Need};

/// The category whose processes are listed in the property `ro.atrace.core.services`.
pub const CORE_SERVICES: &str = "core_services";

/// The category of Android 15 and older for the PDX services. It has no tag and no event: those services
/// notice a change of the properties by themselves. The name is accepted so that older scripts keep working.
pub const PDX: &str = "pdx";

/// An event without which the category is refused.
const fn req(path: &'static str) -> EventRef {
    EventRef { path, need: Need::Required }
}
/// An event that is switched on where the kernel has it.
const fn opt(path: &'static str) -> EventRef {
    EventRef { path, need: Need::Optional }
}
/// An event that Perfetto records for this category and atrace does not.
const fn extra(path: &'static str) -> EventRef {
    EventRef { path, need: Need::PerfettoOnly }
}

const fn user(name: &'static str, description: &'static str, tag: u8) -> Category {
    mixed(name, description, tag, &[])
}
const fn mixed(
    name: &'static str,
    description: &'static str,
    tag: u8,
    events: &'static [EventRef],
) -> Category {
    Category { name, description, tags: 1 << tag, events }
}
const fn kernel(name: &'static str, description: &'static str, events: &'static [EventRef]) -> Category {
    Category { name, description, tags: 0, events }
}

/// All categories, in atrace's order; `ion` is Perfetto's alone and comes last.
pub const CATEGORIES: &[Category] = &[
    mixed(
        "gfx",
        "Graphics",
        1,
        &[
            opt("gpu_mem/gpu_mem_total"),
            extra("mdss"),
            extra("mali"),
            extra("sde"),
            extra("dpu"),
            extra("g2d"),
            extra("panel"),
        ],
    ),
    user("input", "Input", 2),
    user("view", "View System", 3),
    user("webview", "WebView", 4),
    user("wm", "Window Manager", 5),
    user("am", "Activity Manager", 6),
    user("sm", "Sync Manager", 7),
    user("audio", "Audio", 8),
    user("video", "Video", 9),
    mixed("camera", "Camera", 10, &[extra("lwis")]),
    user("hal", "Hardware Modules", 11),
    user("res", "Resource Loading", 13),
    user("dalvik", "Dalvik VM", 14),
    user("rs", "RenderScript", 15),
    user("bionic", "Bionic C Library", 16),
    user("power", "Power Management", 17),
    user("pm", "Package Manager", 18),
    user("ss", "System Server", 19),
    user("database", "Database", 20),
    user("network", "Network", 21),
    user("adb", "ADB", 22),
    user("vibrator", "Vibrator", 23),
    user("aidl", "AIDL calls", 24),
    user("nnapi", "NNAPI", 25),
    user("rro", "Runtime Resource Overlay", 26),
    kernel(CORE_SERVICES, "Core services", &[]),
    kernel(
        "sched",
        "CPU Scheduling",
        &[
            req("sched/sched_switch"),
            EventRef {
                path: "sched/sched_wakeup",
                need: Need::RequiredByAtrace { otherwise: "sched/sched_waking" },
            },
            opt("sched/sched_waking"),
            opt("sched/sched_blocked_reason"),
            opt("sched/sched_cpu_hotplug"),
            opt("sched/sched_pi_setprio"),
            opt("sched/sched_process_exit"),
            opt("cgroup"),
            opt("oom/oom_score_adj_update"),
            opt("task/task_rename"),
            opt("task/task_newtask"),
            extra("systrace"),
            extra("scm"),
        ],
    ),
    kernel("irq", "IRQ Events", &[req("irq"), opt("ipi")]),
    kernel(
        "irqoff",
        "IRQ-disabled code section tracing",
        &[req("preemptirq/irq_enable"), req("preemptirq/irq_disable")],
    ),
    kernel(
        "preemptoff",
        "Preempt-disabled code section tracing",
        &[req("preemptirq/preempt_enable"), req("preemptirq/preempt_disable")],
    ),
    kernel(
        "i2c",
        "I2C Events",
        &[
            req("i2c"),
            req("i2c/i2c_read"),
            req("i2c/i2c_write"),
            req("i2c/i2c_result"),
            req("i2c/i2c_reply"),
            opt("i2c/smbus_read"),
            opt("i2c/smbus_write"),
            opt("i2c/smbus_result"),
            opt("i2c/smbus_reply"),
        ],
    ),
    kernel(
        "freq",
        "CPU Frequency",
        &[
            req("power/cpu_frequency"),
            opt("power/clock_set_rate"),
            opt("power/clock_disable"),
            opt("power/clock_enable"),
            opt("clk/clk_set_rate"),
            opt("clk/clk_disable"),
            opt("clk/clk_enable"),
            opt("power/cpu_frequency_limits"),
            opt("power/suspend_resume"),
            opt("cpuhp/cpuhp_enter"),
            opt("cpuhp/cpuhp_exit"),
            opt("cpuhp/cpuhp_pause"),
            extra("power/gpu_frequency"),
            extra("msm_bus"),
        ],
    ),
    kernel("membus", "Memory Bus Utilization", &[req("memory_bus")]),
    kernel("idle", "CPU Idle", &[req("power/cpu_idle")]),
    kernel(
        "disk",
        "Disk I/O",
        &[
            opt("f2fs/f2fs_sync_file_enter"),
            opt("f2fs/f2fs_sync_file_exit"),
            opt("f2fs/f2fs_write_begin"),
            opt("f2fs/f2fs_write_end"),
            opt("f2fs/f2fs_iostat"),
            opt("f2fs/f2fs_iostat_latency"),
            opt("ext4/ext4_da_write_begin"),
            opt("ext4/ext4_da_write_end"),
            opt("ext4/ext4_sync_file_enter"),
            opt("ext4/ext4_sync_file_exit"),
            opt("block/block_bio_queue"),
            opt("block/block_bio_complete"),
            opt("ufs/ufshcd_command"),
        ],
    ),
    kernel("mmc", "eMMC commands", &[req("mmc")]),
    kernel("load", "CPU Load", &[req("cpufreq_interactive")]),
    // Linux before 4.9, 4.9 itself, and after.
    kernel("sync", "Synchronization", &[opt("sync"), opt("fence"), opt("dma_fence")]),
    kernel("workq", "Kernel Workqueues", &[req("workqueue")]),
    kernel(
        "memreclaim",
        "Kernel Memory Reclaim",
        &[
            req("vmscan/mm_vmscan_direct_reclaim_begin"),
            req("vmscan/mm_vmscan_direct_reclaim_end"),
            req("vmscan/mm_vmscan_kswapd_wake"),
            req("vmscan/mm_vmscan_kswapd_sleep"),
            opt("lowmemorykiller"),
            extra("vmscan/mm_vmscan_memcg_reclaim_begin"),
            extra("vmscan/mm_vmscan_memcg_reclaim_end"),
        ],
    ),
    kernel("regulators", "Voltage and Current Regulators", &[req("regulator")]),
    kernel(
        "binder_driver",
        "Binder Kernel driver",
        &[
            req("binder/binder_transaction"),
            req("binder/binder_transaction_received"),
            req("binder/binder_transaction_alloc_buf"),
            opt("binder/binder_set_priority"),
        ],
    ),
    kernel(
        "binder_lock",
        "Binder global lock trace",
        &[opt("binder/binder_lock"), opt("binder/binder_locked"), opt("binder/binder_unlock")],
    ),
    kernel("pagecache", "Page cache", &[req("filemap")]),
    kernel(
        "memory",
        "Memory",
        &[
            opt("mm_event/mm_event_record"),
            opt("synthetic/rss_stat_throttled"),
            opt("kmem/ion_heap_grow"),
            opt("kmem/ion_heap_shrink"),
            opt("ion/ion_stat"),
            opt("gpu_mem/gpu_mem_total"),
            opt("fastrpc/fastrpc_dma_stat"),
            extra("dmabuf_heap/dma_heap_stat"),
            // The trigger of rss_stat_throttled is Perfetto's: without it that event never comes.
            extra("kmem/rss_stat"),
        ],
    ),
    mixed("thermal", "Thermal event", 27, &[req("thermal/thermal_temperature"), opt("thermal/cdev_update")]),
    kernel(PDX, "PDX services", &[]),
    kernel("ion", "ION allocations", &[extra("kmem/ion_alloc_buffer_start")]),
];
