//! The numbers of the trace.dat format that its writer and its reader share.
//!
//! Defined by `trace-cmd.dat.v6(5)` and `trace-cmd.dat.v7(5)`. All integers are in the file's byte order.

/// The first ten bytes of every trace.dat; the version follows as decimal text ended by NUL.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// What stands before the text of `events/header_page`, with its NUL.
pub const HEADER_PAGE: &[u8; 12] = b"header_page\0";
/// What stands before the text of `events/header_event`, with its NUL.
pub const HEADER_EVENT: &[u8; 13] = b"header_event\0";

/// Version 6: options follow.
pub const V6_OPTIONS: &[u8; 10] = b"options  \0";
/// Version 6: the table of CPUs follows.
pub const V6_FLYRECORD: &[u8; 10] = b"flyrecord\0";
/// Version 6: the text of tracefs' `trace` follows instead of pages.
pub const V6_LATENCY: &[u8; 10] = b"latency  \0";

/// Ids of options (both versions), and of sections (version 7) where they share the number.
pub mod option {
    /// Ends the options; in version 7 its data is the u64 offset of the next options section, 0 for none.
    pub const DONE: u16 = 0;
    /// Text: µs to add so that the times are the wall clock's.
    pub const DATE: u16 = 1;
    /// Text of `per_cpu/cpuN/stats`, one option a CPU.
    pub const CPUSTAT: u16 = 2;
    /// One instance's trace data.
    pub const BUFFER: u16 = 3;
    /// Text of `trace_clock`; empty in version 6, where the clock follows the table of CPUs.
    pub const TRACECLOCK: u16 = 4;
    /// Text: the recording machine's `uname`.
    pub const UNAME: u16 = 5;
    /// Text: ns to add to each time.
    pub const OFFSET: u16 = 7;
    /// u32: CPUs of the recording machine. (gpuvis once kept `saved_tgids` under this number: longer than 8 bytes.)
    pub const CPUCOUNT: u16 = 8;
    /// Text: the version of the program that recorded.
    pub const VERSION: u16 = 9;
    /// u64: id of the recording session, by which hosts and guests find each other.
    pub const TRACEID: u16 = 11;
    /// A guest's time correction against its host.
    pub const TIME_SHIFT: u16 = 12;
    /// A guest recorded along, in a file of its own.
    pub const GUEST: u16 = 13;
    /// u32 multiplier, u32 shift, u64 offset: counter ticks to ns.
    pub const TSC2NSEC: u16 = 14;
    /// Version 7, section only: descriptions of the sections.
    pub const STRINGS: u16 = 15;
    /// Version 7: where `header_page` and `header_event` are.
    pub const HEADER_INFO: u16 = 16;
    /// Version 7: where the formats of `events/ftrace` are.
    pub const FTRACE_EVENTS: u16 = 17;
    /// Version 7: where the formats of all other events are.
    pub const EVENT_FORMATS: u16 = 18;
    /// Version 7: where `/proc/kallsyms` is.
    pub const KALLSYMS: u16 = 19;
    /// Version 7: where `printk_formats` is.
    pub const PRINTK: u16 = 20;
    /// Version 7: where `saved_cmdlines` is.
    pub const CMDLINES: u16 = 21;
    /// Version 7: an instance's trace as text.
    pub const BUFFER_TEXT: u16 = 22;
    /// Text of `saved_tgids` (`TID TGID` lines). gpuvis' number for it; trace-cmd skips it quietly.
    pub const SAVED_TGIDS: u16 = 32;
    /// tracebridge's own: a [`super::super::RecorderInfo`] (clock snapshots and more) as JSON text, padded with spaces.
    /// trace-cmd (tried: 3.1.6) and KernelShark skip it quietly.
    pub const CLOCK_SNAPSHOTS: u16 = 0x7462;
}

/// Version 7: bytes of a section's header (u16 id, u16 flags, u32 description, u64 size).
pub const SECTION_HEADER: usize = 16;
/// Version 7: the section's flag for compressed contents.
pub const SECTION_COMPRESSED: u16 = 1;
