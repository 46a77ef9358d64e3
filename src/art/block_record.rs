//! The records of versions 4 and 5 and of the always-on tracer: differences of variable length, in the
//! encodings of AOSP's `runtime/trace.cc` and `runtime/trace_profile.cc`.

use super::{ClockMode, u16_at, u32_at};
use crate::varint;

/// The encoding of the records of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEncoding {
    /// The first writer (2024). The first record is in the header: the method word, then CPU and wall time,
    /// where present, 32 bits each. Others: a signed difference of the method word from that of the first
    /// record, then unsigned differences of wall and CPU time from the record before. µs, modulo 2³².
    FromFirst {
        /// The clocks of the records.
        clock: ClockMode,
    },
    /// The second writer (2024 to 2025): a signed difference of the method word, then unsigned differences of
    /// wall and CPU time, where present.
    MethodFirst {
        /// The clocks of the records.
        clock: ClockMode,
        /// Whether times are µs, modulo 2³²; otherwise ns.
        micros: bool,
    },
    /// The third writer (Android 17) with wall time: a signed difference of the counter's reading and the
    /// action; with two clocks an unsigned difference of CPU time, ns; in records that enter a method also a
    /// signed difference of the method.
    TimeFirst {
        /// The clocks of the records: with wall time.
        clock: ClockMode,
        /// The meaning of the counter's readings.
        time: CounterTime,
    },
    /// The third writer with thread-CPU time alone: as [`BlockEncoding::TimeFirst`], with CPU time in ns in
    /// place of the counter's reading.
    CpuFirst,
    /// The always-on tracer's long-running methods: a signed difference of time and action; in records that
    /// enter a method also a signed difference of the method.
    LongRunning {
        /// The meaning of the times.
        time: CounterTime,
        /// Whether times are the counter's ticks, with the action in place of their lowest bit. Otherwise
        /// they are ns, and the action is a bit of its own.
        in_ticks: bool,
    },
    /// The always-on tracer's file of all methods: a signed difference of the method, or the mark of an exit.
    /// There are no times: [`BlockRecord::wall`] counts the thread's calls.
    AllMethods,
}

/// The line from readings of a counter to ns since the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterTime {
    /// The reading at the start of the trace.
    pub start: u64,
    /// So many ns pass in which the counter counts [`CounterTime::ticks`].
    pub ns: u64,
    /// See [`CounterTime::ns`].
    pub ticks: u64,
}

impl CounterTime {
    /// ns since the start of the trace at the counter's reading `at`; 0 before the start.
    #[inline]
    pub fn since_start(&self, at: u64) -> u64 {
        let ticks = at.saturating_sub(self.start);
        match ticks.checked_mul(self.ns) {
            Some(product) => product.checked_div(self.ticks).unwrap_or(0),
            None => {
                let ns = u128::from(ticks) * u128::from(self.ns);
                u64::try_from(ns.checked_div(u128::from(self.ticks)).unwrap_or(0)).unwrap_or(u64::MAX)
            }
        }
    }
}

impl BlockEncoding {
    /// Whether times are µs modulo 2³².
    pub fn is_32_bit(&self) -> bool {
        matches!(self, BlockEncoding::FromFirst { .. } | BlockEncoding::MethodFirst { micros: true, .. })
    }

    /// Whether records that leave a method do not name it.
    pub fn has_nameless_exits(&self) -> bool {
        !matches!(self, BlockEncoding::FromFirst { .. } | BlockEncoding::MethodFirst { .. })
    }

    /// The number of records in a block of [`BlockEncoding::MethodFirst`], counted in its bytes; `None` for
    /// other encodings.
    pub fn count(&self, entries: &[u8]) -> Option<u64> {
        let BlockEncoding::MethodFirst { clock, .. } = self else { return None };
        Some(varint::count(entries) / (1 + u64::from(clock.has_wall()) + u64::from(clock.has_cpu())))
    }
}

/// The values to which a thread's next differences are added, and its open calls.
#[derive(Debug, Clone, Default)]
pub struct BlockState {
    /// The method word or the time with its action, by the encoding.
    word: u64,
    wall: u64,
    cpu: u64,
    method: u64,
    /// Whether the next record is a block's first.
    is_first: bool,
    /// The thread's calls so far.
    calls: u64,
    /// The methods that were entered and not left, outermost first: records that leave a method do not name
    /// it in all encodings.
    open: Vec<u64>,
}

impl BlockState {
    /// Starts a new block. Open calls stay.
    pub fn restart(&mut self) {
        self.word = 0;
        self.wall = 0;
        self.cpu = 0;
        self.method = 0;
        self.is_first = true;
    }

    /// The method of a record with this action that names a method only if it enters it: `difference` is then
    /// what it adds to the method of the block's record before. 0 for an exit from a call that is not open.
    #[inline]
    fn method_word(&mut self, action: u64, difference: u64) -> u64 {
        if action == 0 {
            self.method = self.method.wrapping_add(difference);
            self.open.push(self.method);
            return self.method & !3;
        }
        self.open.pop().unwrap_or(0) & !3 | action
    }
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRecord {
    /// Method word: the method id, with the action in the lowest two bits.
    pub word: u64,
    /// Wall time since the start of the trace, in the encoding's unit; 0 where absent.
    pub wall: u64,
    /// CPU time, in the encoding's unit; 0 where absent.
    pub cpu: u64,
}

/// Decodes the next record and removes its bytes from `entries`; `None` at the end. Bytes that then remain in
/// `entries` are an incomplete record.
#[inline]
pub fn next_record(
    entries: &mut &[u8],
    encoding: BlockEncoding,
    state: &mut BlockState,
) -> Option<BlockRecord> {
    let mut rest = *entries;
    let record = match encoding {
        BlockEncoding::MethodFirst { clock, micros } => {
            let word = state.word.wrapping_add(varint::take_signed(&mut rest)? as u64);
            let wall_step = if clock.has_wall() { varint::take(&mut rest)? } else { 0 };
            let cpu_step = if clock.has_cpu() { varint::take(&mut rest)? } else { 0 };
            state.word = word;
            state.wall = state.wall.wrapping_add(wall_step);
            state.cpu = state.cpu.wrapping_add(cpu_step);
            let bits = if micros { u64::from(u32::MAX) } else { u64::MAX };
            BlockRecord { word, wall: state.wall & bits, cpu: state.cpu & bits }
        }
        BlockEncoding::TimeFirst { clock, time } => {
            let word = state.word.wrapping_add(varint::take_signed(&mut rest)? as u64);
            let cpu_step = if clock.has_cpu() { varint::take(&mut rest)? } else { 0 };
            let action = word & 3;
            let difference = if action == 0 { varint::take_signed(&mut rest)? as u64 } else { 0 };
            state.word = word;
            state.cpu = state.cpu.wrapping_add(cpu_step);
            let wall = time.since_start(word >> 2);
            BlockRecord { word: state.method_word(action, difference), wall, cpu: state.cpu }
        }
        BlockEncoding::CpuFirst => {
            let word = state.word.wrapping_add(varint::take_signed(&mut rest)? as u64);
            let action = word & 3;
            let difference = if action == 0 { varint::take_signed(&mut rest)? as u64 } else { 0 };
            state.word = word;
            BlockRecord { word: state.method_word(action, difference), wall: 0, cpu: word >> 2 }
        }
        BlockEncoding::LongRunning { time, in_ticks } => {
            let word = state.word.wrapping_add(varint::take_signed(&mut rest)? as u64);
            let action = word & 1;
            let difference = if action == 0 { varint::take_signed(&mut rest)? as u64 } else { 0 };
            state.word = word;
            let at = if in_ticks { word & !1 } else { word >> 1 };
            let wall = time.since_start(at);
            BlockRecord { word: state.method_word(action, difference), wall, cpu: 0 }
        }
        BlockEncoding::AllMethods => {
            let difference = varint::take_signed(&mut rest)?;
            // An exit is written as the word 1. Of two exits one after the other, the second adds nothing.
            let action = u64::from(difference == i64::from(state.word != 1));
            let word = state.word.wrapping_add(difference as u64);
            let method_difference = word.wrapping_sub(state.method);
            state.word = if action == 0 { word } else { 1 };
            let record =
                BlockRecord { word: state.method_word(action, method_difference), wall: state.calls, cpu: 0 };
            state.calls += 1 - action;
            record
        }
        BlockEncoding::FromFirst { clock } if state.is_first => first_record(&mut rest, clock, state)?,
        BlockEncoding::FromFirst { clock } => {
            let word = (state.word as u32).wrapping_add(varint::take_signed(&mut rest)? as u32);
            let wall_step = if clock.has_wall() { varint::take(&mut rest)? as u32 } else { 0 };
            let cpu_step = if clock.has_cpu() { varint::take(&mut rest)? as u32 } else { 0 };
            state.wall = u64::from((state.wall as u32).wrapping_add(wall_step));
            state.cpu = u64::from((state.cpu as u32).wrapping_add(cpu_step));
            BlockRecord { word: u64::from(word), wall: state.wall, cpu: state.cpu }
        }
    };
    *entries = rest;
    Some(record)
}

/// Reads the first record of a block of [`BlockEncoding::FromFirst`], and skips the number of the other
/// records and their size.
#[cold]
fn first_record(rest: &mut &[u8], clock: ClockMode, state: &mut BlockState) -> Option<BlockRecord> {
    let mut at = 0;
    let mut field = |is_present: bool| {
        let value = if is_present { u64::from(u32_at(rest, at)?) } else { 0 };
        at += if is_present { 4 } else { 0 };
        Some(value)
    };
    let word = field(true)?;
    let cpu = field(clock.has_cpu())?;
    let wall = field(clock.has_wall())?;
    u16_at(rest, at + 2)?;
    *rest = &rest[at + 4..];
    state.word = word;
    state.cpu = cpu;
    state.wall = wall;
    state.is_first = false;
    Some(BlockRecord { word, wall, cpu })
}

#[cfg(test)]
mod tests {
    use super::super::{BlockPacket, DataHeader, EntriesPacket, PacketForm, next_block_packet};
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    /// The records of a block: the word, wall and CPU time.
    fn records(block: &[u8], form: PacketForm, encoding: BlockEncoding) -> Vec<(u64, u64, u64)> {
        let (packet, len) = next_block_packet(block, form).unwrap().unwrap();
        assert_eq!(len, block.len());
        let BlockPacket::Entries(EntriesPacket { thread, mut entries, is_cut, .. }) = packet else {
            panic!("{packet:?}")
        };
        assert_eq!((thread, is_cut), (0x1234, false));
        let mut state = BlockState::default();
        state.restart();
        let mut all = Vec::new();
        while let Some(record) = next_record(&mut entries, encoding, &mut state) {
            all.push((record.word, record.wall, record.cpu));
        }
        assert_eq!(entries, b"");
        all
    }

    const M: u64 = 0x70_0000_1000;

    #[test]
    fn android_17_writes_absolute_readings_of_the_counter_and_names_no_method_at_an_exit() {
        let header = bytes(
            "53 4c 4f 57 04 00 00 ca 9a 3b 00 00 00 00 00 00 d8 b8 05 00 00 00 00 00 77 01 00 00 00 00 00 00",
        );
        let header = DataHeader::parse(&header).unwrap();
        assert_eq!((header.start, header.start_tsc), (1_000_000_000, 24_576_000_000));
        assert_eq!(header.tsc_frequency, 24_576_000);
        let time = CounterTime { start: header.start_tsc, ns: 1_000_000_000, ticks: header.tsc_frequency };
        let block = bytes("02 34 12 00 00 02 00 00 0f 00 00 00 80 80 86 9b ee 02 80 a0 80 80 80 0e 81 80 06");
        let encoding = BlockEncoding::TimeFirst { clock: ClockMode::Wall, time };
        let found = records(&block, PacketForm::Sized, encoding);
        assert_eq!(found, [(M, 1_000_000, 0), (M | 1, 2_000_000, 0)]);
        // CPU time alone has neither the counter's start nor its frequency: 100 ns and 300 ns.
        let block = bytes("02 34 12 00 00 02 00 00 0a 00 00 00 90 03 80 a0 80 80 80 0e a1 06");
        assert_eq!(
            records(&block, PacketForm::Sized, BlockEncoding::CpuFirst),
            [(M, 0, 100), (M | 1, 0, 300)]
        );
    }

    #[test]
    fn cpu_times_of_android_17_grow_by_unsigned_differences() {
        // 64 and 127 would be negative as signed numbers of one byte.
        let block = bytes("02 34 12 00 00 02 00 00 0c 00 00 00 80 01 40 80 a0 80 80 80 0e 81 01 7f");
        let time = CounterTime { start: 0, ns: 1, ticks: 1 };
        let encoding = BlockEncoding::TimeFirst { clock: ClockMode::Dual, time };
        let found = records(&block, PacketForm::Sized, encoding);
        assert_eq!(found, [(M, 32, 64), (M | 1, 64, 191)]);
    }

    #[test]
    fn the_second_writer_names_the_method_in_every_record() {
        let block = bytes("02 34 12 00 00 02 00 00 0d 00 00 00 80 a0 80 80 80 0e c0 84 3d 01 c0 84 3d");
        let encoding = |micros| BlockEncoding::MethodFirst { clock: ClockMode::Wall, micros };
        let found = records(&block, PacketForm::Sized, encoding(false));
        assert_eq!(found, [(M, 1_000_000, 0), (M | 1, 2_000_000, 0)]);
        // µs are added up modulo 2³²: the second difference is 2³² - 1.
        let block = bytes("02 34 12 00 00 02 00 00 0d 00 00 00 80 a0 80 80 80 0e 05 01 ff ff ff ff 0f");
        let found = records(&block, PacketForm::Sized, encoding(true));
        assert_eq!(found, [(M, 5, 0), (M | 1, 4, 0)]);
    }

    #[test]
    fn the_first_writer_counts_methods_from_the_blocks_first_record() {
        let form = PacketForm::First { clocks: 2 };
        let encoding = BlockEncoding::FromFirst { clock: ClockMode::Dual };
        // Method 5 is entered at 7 µs of CPU and 100 µs of wall time; method 6 is entered, and both are left.
        let block = bytes(
            "02 34 12 00 00 14 00 00 00 07 00 00 00 64 00 00 00 03 00 09 00 04 0a 01 05 0a 02 01 0a 03",
        );
        let found = records(&block, form, encoding);
        assert_eq!(found, [(20, 100, 7), (24, 110, 8), (25, 120, 10), (21, 130, 13)]);
    }

    #[test]
    fn a_block_of_the_first_writer_may_be_longer_than_its_header_can_say() {
        let form = PacketForm::First { clocks: 1 };
        let mut block = bytes("02 34 12 00 00 14 00 00 00 64 00 00 00 00 00 00 00");
        let others = 70_000usize;
        block[13..15].copy_from_slice(&(others as u16).to_le_bytes());
        for n in 0..others {
            block.push((n as u8).wrapping_add(1) % 2);
            block.extend([0x81, 1].iter().skip(n % 3 % 2));
        }
        let size = (block.len() - 17) as u16;
        block[15..17].copy_from_slice(&size.to_le_bytes());
        let encoding = BlockEncoding::FromFirst { clock: ClockMode::Wall };
        assert_eq!(records(&block, form, encoding).len(), others + 1);
        let followed = [&block[..], b"\x03\x08\0*version"].concat();
        let (_, len) = next_block_packet(&followed, form).unwrap().unwrap();
        assert_eq!(len, block.len());
    }

    #[test]
    fn long_running_methods_have_ns_and_a_bit_for_the_exit_or_ticks_with_the_exit_in_their_lowest_bit() {
        let block =
            bytes("02 34 12 00 00 02 00 00 10 00 00 00 80 b1 d0 ba 07 80 a0 80 80 80 0e 81 90 bc fd 02");
        let time = CounterTime { start: 0, ns: 1, ticks: 1 };
        let found = |in_ticks| {
            records(&block, PacketForm::LongRunning, BlockEncoding::LongRunning { time, in_ticks })
        };
        assert_eq!(found(false), [(M, 1_001_000_000, 0), (M | 1, 1_401_000_000, 0)]);
        assert_eq!(found(true), [(M, 2_002_000_000, 0), (M | 1, 2_802_000_000, 0)]);
    }

    #[test]
    fn all_methods_have_an_order_but_no_times() {
        let body = bytes("80 a0 80 80 80 0e 00 01 00 8f a0 80 80 80 0e");
        let expected = [(M, 0, 0), (M, 1, 0), (M | 1, 2, 0), (M | 1, 2, 0), (M + 16, 2, 0)];
        for padding in [&[][..], &[0xde, 0xad, 0xbe, 0xef]] {
            let block = [&bytes("02 34 12 00 00 05 00 00")[..], padding, &body].concat();
            let form = PacketForm::AllMethods { padding: padding.len() };
            assert_eq!(records(&block, form, BlockEncoding::AllMethods), expected);
        }
    }
}
