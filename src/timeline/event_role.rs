//! The meaning of each event type for the state of a machine, and the fields that matter.

use crate::formats::EventType;

/// The name of the counter of a CPU's frequency.
pub(crate) const CPU_FREQUENCY: &str = "frequency (kHz)";

/// The meaning of an event type, with the indices of the fields that matter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventRole {
    Switch {
        prev: [usize; 3],
        next: [usize; 3],
    },
    Waking {
        pid: usize,
        comm: usize,
    },
    Print {
        buf: usize,
    },
    /// A thread begins to exist.
    TaskBegin {
        pid: usize,
        comm: usize,
        clone_flags: usize,
    },
    /// A thread exits, or is freed after its exit.
    TaskEnd {
        pid: usize,
        is_freed: bool,
    },
    CpuCounter {
        name: &'static str,
        value: usize,
        cpu: usize,
    },
    Clock {
        name: usize,
        value: usize,
    },
    IrqEntry {
        name: usize,
    },
    SoftirqEntry {
        vec: usize,
    },
    IrqExit,
    BlockedReason {
        pid: usize,
        io_wait: usize,
    },
    BinderSend {
        id: usize,
    },
    BinderReceive {
        id: usize,
    },
    Other,
}

impl EventRole {
    /// The role of the events of a type.
    pub(crate) fn new(kind: &EventType) -> EventRole {
        let field = |name: &str| kind.field(name);
        let found = match kind.name.as_str() {
            "sched_switch" => (|| {
                let all = |a, b, c| Some([field(a)?, field(b)?, field(c)?]);
                let prev = all("prev_comm", "prev_pid", "prev_state")?;
                Some(EventRole::Switch { prev, next: all("next_comm", "next_pid", "next_prio")? })
            })(),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
                field("pid").zip(field("comm")).map(|(pid, comm)| EventRole::Waking { pid, comm })
            }
            "task_newtask" => (|| {
                let clone_flags = field("clone_flags")?;
                Some(EventRole::TaskBegin { pid: field("pid")?, comm: field("comm")?, clone_flags })
            })(),
            "sched_process_exit" => field("pid").map(|pid| EventRole::TaskEnd { pid, is_freed: false }),
            "sched_process_free" => field("pid").map(|pid| EventRole::TaskEnd { pid, is_freed: true }),
            "print" => field("buf").map(|buf| EventRole::Print { buf }),
            "cpu_frequency" => EventRole::cpu_counter(kind, CPU_FREQUENCY),
            "cpu_idle" => EventRole::cpu_counter(kind, "idle state"),
            "clock_set_rate" | "clock_enable" | "clock_disable" => {
                field("name").zip(field("state")).map(|(name, value)| EventRole::Clock { name, value })
            }
            "clk_set_rate" => {
                field("name").zip(field("rate")).map(|(name, value)| EventRole::Clock { name, value })
            }
            "irq_handler_entry" => field("name").map(|name| EventRole::IrqEntry { name }),
            "softirq_entry" => field("vec").map(|vec| EventRole::SoftirqEntry { vec }),
            "irq_handler_exit" | "softirq_exit" => Some(EventRole::IrqExit),
            "sched_blocked_reason" => field("pid")
                .zip(field("io_wait"))
                .map(|(pid, io_wait)| EventRole::BlockedReason { pid, io_wait }),
            "binder_transaction" => field("debug_id").map(|id| EventRole::BinderSend { id }),
            "binder_transaction_received" => field("debug_id").map(|id| EventRole::BinderReceive { id }),
            _ => None,
        };
        found.unwrap_or(EventRole::Other)
    }

    fn cpu_counter(kind: &EventType, name: &'static str) -> Option<EventRole> {
        let (value, cpu) = kind.field("state").zip(kind.field("cpu_id"))?;
        Some(EventRole::CpuCounter { name, value, cpu })
    }
}
