//! Converts between the column of flags in a line of the `trace` file (`d..2.`) and the two bytes of a record
//! that hold the same flags.
//!
//! The letters are those of `trace_print_lat_fmt()` in the kernel's kernel/trace/trace_output.c, in this
//! order: interrupts and bottom halves off, rescheduling needed, interrupt context, preempt depth,
//! migrate-disable depth. The bits are those of `enum trace_flag_type` in include/linux/trace_events.h.

/// Hardware interrupts were off.
const IRQS_OFF: u16 = 0x01;
/// `TIF_NEED_RESCHED_LAZY` was set. Up to Linux 6.12 this bit said that the architecture cannot tell whether
/// interrupts are off; no architecture has set it with that meaning since 2009.
const NEED_RESCHED_LAZY: u16 = 0x02;
/// `TIF_NEED_RESCHED` was set.
const NEED_RESCHED: u16 = 0x04;
/// The CPU was serving a hardware interrupt.
const HARDIRQ: u16 = 0x08;
/// The CPU was serving a soft interrupt.
const SOFTIRQ: u16 = 0x10;
/// The preempt counter asked for rescheduling.
const PREEMPT_RESCHED: u16 = 0x20;
/// The CPU was serving a non-maskable interrupt.
const NMI: u16 = 0x40;
/// Bottom halves were off.
const BH_OFF: u16 = 0x80;
/// The kernel could not tell whether interrupts were off: a text shows `X`. No record has this bit, because
/// records have 8 bits and newer kernels use the old bit for [`NEED_RESCHED_LAZY`].
const IRQS_UNKNOWN: u16 = 0x100;

/// Every combination of flags, each with its three letters, in the order of the flags' value.
static LETTERS: [[u8; 3]; 0x200] = {
    let mut table = [[0; 3]; 0x200];
    let mut flags = 0;
    while flags < table.len() {
        table[flags] = letters(flags as u16);
        flags += 1;
    }
    table
};

const fn letters(flags: u16) -> [u8; 3] {
    let irqs = match flags & (IRQS_OFF | BH_OFF | IRQS_UNKNOWN) {
        0 => b'.',
        IRQS_UNKNOWN => b'X',
        some if some & IRQS_OFF == 0 => b'b',
        some if some & BH_OFF == 0 => b'd',
        _ => b'D',
    };
    let resched =
        match (flags & NEED_RESCHED != 0, flags & NEED_RESCHED_LAZY != 0, flags & PREEMPT_RESCHED != 0) {
            (true, true, true) => b'B',
            (true, false, true) => b'N',
            (false, true, true) => b'L',
            (true, true, false) => b'b',
            (true, false, false) => b'n',
            (false, false, true) => b'p',
            (false, true, false) => b'l',
            (false, false, false) => b'.',
        };
    let context = match (flags & NMI != 0, flags & HARDIRQ != 0, flags & SOFTIRQ != 0) {
        (true, true, _) => b'Z',
        (true, false, _) => b'z',
        (false, true, true) => b'H',
        (false, true, false) => b'h',
        (false, false, true) => b's',
        (false, false, false) => b'.',
    };
    [irqs, resched, context]
}

/// The five characters of the column. The low half of `preempt_count` is the preempt depth, the high half the
/// migrate-disable depth.
#[inline]
pub fn encode(flags: u16, preempt_count: u8) -> [u8; 5] {
    const DEPTH: &[u8; 16] = b".123456789abcdef";
    let [irqs, resched, context] = LETTERS[usize::from(flags & 0x1ff)];
    let [preempt, migrate] = [preempt_count & 15, preempt_count >> 4].map(|depth| DEPTH[usize::from(depth)]);
    [irqs, resched, context, preempt, migrate]
}

/// The flags and the preempt count that a column of a text stands for. Older kernels print fewer characters
/// than five; a character that is missing or unknown counts as `.`.
pub fn decode(column: &[u8]) -> (u16, u8) {
    let at = |i: usize| column.get(i).copied().unwrap_or(b'.');
    let irqs = match at(0) {
        b'd' => IRQS_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        b'b' => BH_OFF,
        b'X' => IRQS_UNKNOWN,
        _ => 0,
    };
    let resched = match at(1) {
        b'B' => NEED_RESCHED | NEED_RESCHED_LAZY | PREEMPT_RESCHED,
        b'N' => NEED_RESCHED | PREEMPT_RESCHED,
        b'L' => NEED_RESCHED_LAZY | PREEMPT_RESCHED,
        b'b' => NEED_RESCHED | NEED_RESCHED_LAZY,
        b'n' => NEED_RESCHED,
        b'p' => PREEMPT_RESCHED,
        b'l' => NEED_RESCHED_LAZY,
        _ => 0,
    };
    let context = match at(2) {
        b'h' => HARDIRQ,
        b's' => SOFTIRQ,
        b'H' => HARDIRQ | SOFTIRQ,
        b'Z' => NMI | HARDIRQ,
        b'z' => NMI,
        _ => 0,
    };
    let depth = |i| char::from(at(i)).to_digit(16).unwrap_or(0) as u8;
    (irqs | resched | context, depth(3) | depth(4) << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags that the column can express: a letter for NMI hides a soft interrupt, and one for interrupts
    /// that are off hides that the kernel cannot tell.
    fn shown(flags: u16) -> u16 {
        let softirq = if flags & NMI != 0 { SOFTIRQ } else { 0 };
        let unknown = if flags & (IRQS_OFF | BH_OFF) != 0 { IRQS_UNKNOWN } else { 0 };
        flags & !softirq & !unknown
    }

    #[test]
    fn encoded_flags_decode_to_the_same_flags() {
        for flags in 0..0x200 {
            for preempt_count in 0..=0xff {
                let column = encode(flags, preempt_count);
                assert_eq!(decode(&column), (shown(flags), preempt_count), "{flags:#x} {preempt_count:#x}");
            }
        }
    }

    #[test]
    fn every_column_of_letters_survives_decoding_and_encoding() {
        for irqs in b".dDbX" {
            for resched in b".NnpLBbl" {
                for context in b".hsHZz" {
                    for depths in [b"..", b"1.", b"f2", b".a"] {
                        let column = [*irqs, *resched, *context, depths[0], depths[1]];
                        let (flags, preempt_count) = decode(&column);
                        assert_eq!(encode(flags, preempt_count), column);
                    }
                }
            }
        }
    }

    #[test]
    fn the_bits_are_those_of_the_kernel() {
        assert_eq!(decode(b"dNh2."), (0x2d, 2));
        assert_eq!(decode(b"DLs.3"), (0xb3, 0x30));
        assert_eq!(decode(b"d..1"), (0x01, 1), "a column without the migrate-disable depth");
        assert_eq!(decode(b""), (0, 0));
    }
}
