//! The state in which a thread left the CPU: `prev_state` of `sched_switch`, as bits and as the letters that
//! the kernel prints for them since Linux 4.14 (include/trace/events/sched.h, fs/proc/array.c).

/// Each bit with its letter. No bit at all is `R`.
const LETTERS: [(u64, u8); 8] = [
    (0x01, b'S'),
    (0x02, b'D'),
    (0x04, b'T'),
    (0x08, b't'),
    (0x10, b'X'),
    (0x20, b'Z'),
    (0x40, b'P'),
    (0x80, b'I'),
];
/// The thread was preempted while it was runnable: `R+`.
const PREEMPTED: u64 = 0x100;

/// The bits of a state such as `R+`, `S` or `D|K`; `None` for an empty text and for a character that is no
/// letter of a state. Of the letters that only kernels before 4.14 print, `x` is the bit 0x10, and `K`, `W`
/// and `N` add no bit.
pub fn decode(text: &[u8]) -> Option<u64> {
    let mut bits = 0;
    for letter in text {
        bits |= match letter {
            b'R' | b'|' | b'K' | b'W' | b'N' => 0,
            b'x' => 0x10,
            b'+' => PREEMPTED,
            other => LETTERS.iter().find(|(_, letter)| letter == other)?.0,
        };
    }
    (!text.is_empty()).then_some(bits)
}

/// Appends the letters of a state.
pub fn encode(bits: u64, out: &mut Vec<u8>) {
    let start = out.len();
    for (bit, letter) in LETTERS {
        if bits & bit != 0 {
            if out.len() > start {
                out.push(b'|');
            }
            out.push(letter);
        }
    }
    if out.len() == start {
        out.push(b'R');
    }
    if bits & PREEMPTED != 0 {
        out.push(b'+');
    }
}

/// The arguments of `%s%s` in a `print fmt` line that print the state in `field`, a C expression.
pub fn print_fmt_arguments(field: &str) -> String {
    let letters: Vec<String> =
        LETTERS.iter().map(|(bit, c)| format!("{{ {bit:#x}, \"{}\" }}", char::from(*c))).collect();
    format!(
        "({field} & 0xff) ? __print_flags({field} & 0xff, \"|\", {}) : \"R\", {field} & {PREEMPTED:#x} ? \"+\" : \"\"",
        letters.join(", ")
    )
}

/// The state in words, as timelines show it.
pub fn words(bits: u64) -> &'static str {
    match bits {
        s if s & 0x1 != 0 => "Sleeping",
        s if s & 0x2 != 0 => "Uninterruptible Sleep",
        s if s & 0xc != 0 => "Stopped",
        s if s & 0x30 != 0 => "Dead",
        s if s & 0xc0 != 0 => "Parked or Idle",
        s if s & PREEMPTED != 0 => "Runnable (Preempted)",
        _ => "Runnable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_state_decodes_to_the_same_state() {
        for bits in 0..0x200 {
            let mut letters = Vec::new();
            encode(bits, &mut letters);
            assert_eq!(decode(&letters), Some(bits), "{bits:#x}");
        }
    }

    #[test]
    fn letters_of_older_kernels_are_accepted_and_other_texts_are_not() {
        assert_eq!(decode(b"D|K"), Some(2));
        assert_eq!(decode(b"x"), Some(0x10));
        assert_eq!(decode(b"R+"), Some(0x100));
        assert_eq!(decode(b""), None);
        assert_eq!(decode(b"Q"), None);
        assert_eq!(
            (words(0), words(2), words(0x100)),
            ("Runnable", "Uninterruptible Sleep", "Runnable (Preempted)")
        );
    }
}
