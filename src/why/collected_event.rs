//! The events that tell for what threads wait, beside switches, wake-ups and markers.

use super::block_requests::RequestId;
use super::model::{MarkKind, Syscall};
use crate::formats::{Event, EventType, Value};

/// Names of the first arguments of system calls that wait: of futexes, of reads and writes, of polls.
const FIRST_ARGUMENTS: [&str; 5] = ["uaddr", "fd", "epfd", "ufds", "upid"];

/// The fields of a block request's event: the device, where there is one, and the sector.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRequestFields {
    device: Option<usize>,
    sector: usize,
}

impl BlockRequestFields {
    fn of(kind: &EventType) -> Option<BlockRequestFields> {
        kind.field("sector").map(|sector| BlockRequestFields { device: kind.field("dev"), sector })
    }

    /// The request that an event is about.
    pub fn of_event(self, event: &Event<'_>, kind: &EventType) -> RequestId {
        let device = self.device.and_then(|device| event.int(kind, device)).unwrap_or(0);
        (device, event.int(kind, self.sector).unwrap_or(-1))
    }
}

/// The low half of the first argument of a system call; 0 where it is not recorded. The argument may be a
/// number, a list of numbers in binary, or text in which the first one is hexadecimal.
pub(super) fn first_argument(event: &Event<'_>, kind: &EventType, field: Option<usize>) -> u32 {
    match field.and_then(|field| event.value(kind, field)) {
        Some(Value::Int(value)) => value as u32,
        Some(Value::Uint(value)) => value as u32,
        // The low half comes first on the little-endian machines that Android and Linux desktops are.
        Some(Value::Bytes(bytes)) => bytes.first_chunk().map_or(0, |low| u32::from_le_bytes(*low)),
        Some(Value::Str(text)) => {
            let text = String::from_utf8_lossy(text);
            let first = text.trim_start_matches([' ', '(']).split([',', ' ', ')']).next().unwrap_or_default();
            u64::from_str_radix(first.trim_start_matches("0x"), 16).map_or(0, |value| value as u32)
        }
        None => 0,
    }
}

/// The kinds of events that no other call of the track builder passes on, with the indices of their fields.
#[derive(Debug, Clone, Copy)]
pub(super) enum CollectedEvent {
    BlockedReason { pid: usize, is_io: usize, caller: usize },
    BinderSend { reply: usize, flags: usize },
    SyscallEnter { number: usize, arguments: Option<usize> },
    NamedSyscall { call: Syscall, argument: Option<usize> },
    SyscallExit,
    BlockIssue(BlockRequestFields),
    BlockComplete(BlockRequestFields),
    Fork { child: usize, flags: Option<usize> },
    FilePage { inode: usize, device: Option<usize> },
    GroupMove { pid: usize, hierarchy: usize, path: usize },
    FileRead { path: usize },
    ReclaimBegin,
    ReclaimEnd,
    Mark(MarkKind),
    Other,
}

impl CollectedEvent {
    pub fn new(kind: &EventType) -> CollectedEvent {
        let field = |name: &str| kind.field(name);
        let found = match kind.name.as_str() {
            "sched_blocked_reason" => (|| {
                let caller = field("caller")?;
                Some(CollectedEvent::BlockedReason { pid: field("pid")?, is_io: field("io_wait")?, caller })
            })(),
            "binder_transaction" => field("reply")
                .zip(field("flags"))
                .map(|(reply, flags)| CollectedEvent::BinderSend { reply, flags }),
            "sys_enter" => {
                field("id").map(|number| CollectedEvent::SyscallEnter { number, arguments: field("args") })
            }
            "sys_exit" => Some(CollectedEvent::SyscallExit),
            "sched_process_fork" => {
                field("child_pid").map(|child| CollectedEvent::Fork { child, flags: None })
            }
            "task_newtask" => {
                field("pid").map(|child| CollectedEvent::Fork { child, flags: field("clone_flags") })
            }
            "mm_filemap_add_to_page_cache" => {
                field("i_ino").map(|inode| CollectedEvent::FilePage { inode, device: field("s_dev") })
            }
            "cgroup_attach_task" => (|| {
                let hierarchy = field("dst_root")?;
                Some(CollectedEvent::GroupMove { pid: field("pid")?, hierarchy, path: field("dst_path")? })
            })(),
            "f2fs_dataread_start" | "android_fs_dataread_start" | "ext4_dataread_start" => {
                field("pathbuf").or_else(|| field("pathname")).map(|path| CollectedEvent::FileRead { path })
            }
            "mm_vmscan_direct_reclaim_begin"
            | "mm_vmscan_memcg_reclaim_begin"
            | "compaction_begin"
            | "mm_compaction_begin" => Some(CollectedEvent::ReclaimBegin),
            "mm_vmscan_direct_reclaim_end"
            | "mm_vmscan_memcg_reclaim_end"
            | "compaction_end"
            | "mm_compaction_end" => Some(CollectedEvent::ReclaimEnd),
            "block_rq_issue" => BlockRequestFields::of(kind).map(CollectedEvent::BlockIssue),
            "block_rq_complete" => BlockRequestFields::of(kind).map(CollectedEvent::BlockComplete),
            "page_fault_user" => Some(CollectedEvent::Mark(MarkKind::PageFault)),
            name => match name.strip_prefix("sys_enter_") {
                Some(call) => {
                    let argument = FIRST_ARGUMENTS.iter().find_map(|name| field(name));
                    Some(CollectedEvent::NamedSyscall { call: Syscall::of_name(call), argument })
                }
                None => name.starts_with("sys_exit_").then_some(CollectedEvent::SyscallExit),
            },
        };
        found.unwrap_or(CollectedEvent::Other)
    }
}
