//! The bytes of trace-cmd's `trace.dat` that device and host both need: the head of version 6, a whole file
//! of version 7 with zstd, the recorder's own option, the stream that carries a recording through a pipe, and
//! the recorder's summary.

mod head_writer;
mod recorder_info;
pub mod recorder_stream;
pub mod recording_summary;
pub mod v7_writer;

pub use head_writer::{CpuData, DatHead, HeadParts, Metadata, Slot, trace_clock_option};
pub use recorder_info::{
    Affinity, CpuLoss, CpuQuota, CpuRecorded, CpuSpeed, EventCost, MachineFacts, MappedInode, RecorderInfo,
    RingProgram, RingsInfo, Settle, no_event_of,
};
pub use v7_writer::write_v7;

// The numbers and texts of the format that its writers and its reader share. The manual pages
// `trace-cmd.dat.v6(5)` and `trace-cmd.dat.v7(5)` define the format. All integers are in the byte order of
// the recording machine.

/// The first ten bytes of every trace.dat. The version follows as decimal text that ends with a NUL.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// The name before the text of `events/header_page`, with its NUL.
pub const HEADER_PAGE: &[u8; 12] = b"header_page\0";
/// The name before the text of `events/header_event`, with its NUL.
pub const HEADER_EVENT: &[u8; 13] = b"header_event\0";

/// Version 6: the options follow these bytes.
pub const V6_OPTIONS: &[u8; 10] = b"options  \0";
/// Version 6: the table of CPUs follows these bytes.
pub const V6_FLYRECORD: &[u8; 10] = b"flyrecord\0";
/// Version 6: the text of tracefs' file `trace` follows these bytes instead of pages.
pub const V6_LATENCY: &[u8; 10] = b"latency  \0";

/// Ids of options (both versions) and of sections (version 7). A section has the id of the option that names
/// it.
pub mod option {
    /// Ends the options. In version 7 its data is the u64 offset of the next section of options, or 0.
    pub const DONE: u16 = 0;
    /// Text: the µs to add to each time to get wall-clock time.
    pub const DATE: u16 = 1;
    /// Text of `per_cpu/cpuN/stats`. Each CPU has one such option.
    pub const CPUSTAT: u16 = 2;
    /// The pages of one ftrace instance.
    pub const BUFFER: u16 = 3;
    /// Text of `trace_clock`. The clock also follows the table of CPUs (version 6), or stands in the BUFFER
    /// option (version 7). `trace_clock_option` says which files have this option.
    pub const TRACECLOCK: u16 = 4;
    /// Text: the recording machine's `uname`.
    pub const UNAME: u16 = 5;
    /// Text: the ns to add to each time.
    pub const OFFSET: u16 = 7;
    /// u32: number of CPUs of the recording machine. gpuvis once used this id for the text of `saved_tgids`,
    /// which is longer than 8 bytes.
    pub const CPUCOUNT: u16 = 8;
    /// Text: the version of the program that recorded.
    pub const VERSION: u16 = 9;
    /// The correction from a virtual machine's time to its host's time.
    pub const TIME_SHIFT: u16 = 12;
    /// A virtual machine that was recorded at the same time, into another file.
    pub const GUEST: u16 = 13;
    /// u32 multiplier, u32 shift, u64 offset in ns: how counter ticks become ns.
    pub const TSC2NSEC: u16 = 14;
    /// Version 7: offset of the section with `header_page` and `header_event`.
    pub const HEADER_INFO: u16 = 16;
    /// Version 7: offset of the section with the formats of `events/ftrace`.
    pub const FTRACE_EVENTS: u16 = 17;
    /// Version 7: offset of the section with the formats of all other events.
    pub const EVENT_FORMATS: u16 = 18;
    /// Version 7: offset of the section with `/proc/kallsyms`.
    pub const KALLSYMS: u16 = 19;
    /// Version 7: offset of the section with `printk_formats`.
    pub const PRINTK: u16 = 20;
    /// Version 7: offset of the section with `saved_cmdlines`.
    pub const CMDLINES: u16 = 21;
    /// Version 7: an ftrace instance's trace as text.
    pub const BUFFER_TEXT: u16 = 22;
    /// Text of `saved_tgids` (`TID TGID` lines). The id is gpuvis's; trace-cmd skips this option without a
    /// message.
    pub const SAVED_TGIDS: u16 = 32;
    /// tracebridge's own: a [`RecorderInfo`](super::RecorderInfo) (clock snapshots and more) as JSON
    /// text, padded with spaces. trace-cmd (3.1.6 was tried) and KernelShark skip this option without a
    /// message.
    pub const CLOCK_SNAPSHOTS: u16 = 0x7462;
}

/// Version 7: bytes of a section's header (u16 id, u16 flags, u32 description, u64 size).
pub const SECTION_HEADER_BYTES: usize = 16;
/// Version 7: this flag of a section says that its contents are compressed.
pub const SECTION_COMPRESSED: u16 = 1;
