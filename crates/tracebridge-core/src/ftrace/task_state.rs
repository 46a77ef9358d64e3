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

/// A state of a thread, as timelines show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// The thread has a CPU.
    Running,
    /// The thread waits for a CPU.
    Runnable,
    /// The thread waits for a CPU, because another thread took its own.
    Preempted,
    /// A signal ends the sleep, too.
    Sleeping,
    /// Only its event ends the sleep.
    Uninterruptible,
    /// An uninterruptible sleep that `sched_blocked_reason` calls a wait for I/O.
    IoWait,
    /// A signal or a debugger has stopped the thread.
    Stopped,
    /// The thread has ended.
    Dead,
    /// An idle thread of the kernel.
    ParkedOrIdle,
}

impl TaskState {
    const ALL: [TaskState; 9] = [
        TaskState::Running,
        TaskState::Runnable,
        TaskState::Preempted,
        TaskState::Sleeping,
        TaskState::Uninterruptible,
        TaskState::IoWait,
        TaskState::Stopped,
        TaskState::Dead,
        TaskState::ParkedOrIdle,
    ];

    /// The state of a thread that leaves its CPU with these bits.
    pub fn of_leaving(bits: u64) -> TaskState {
        match bits {
            s if s & 0x1 != 0 => TaskState::Sleeping,
            s if s & 0x2 != 0 => TaskState::Uninterruptible,
            s if s & 0xc != 0 => TaskState::Stopped,
            s if s & 0x30 != 0 => TaskState::Dead,
            s if s & 0xc0 != 0 => TaskState::ParkedOrIdle,
            s if s & PREEMPTED != 0 => TaskState::Preempted,
            _ => TaskState::Runnable,
        }
    }

    /// The state's name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Running => "Running",
            TaskState::Runnable => "Runnable",
            TaskState::Preempted => "Runnable (Preempted)",
            TaskState::Sleeping => "Sleeping",
            TaskState::Uninterruptible => "Uninterruptible Sleep",
            TaskState::IoWait => "Uninterruptible Sleep (IO)",
            TaskState::Stopped => "Stopped",
            TaskState::Dead => "Dead",
            TaskState::ParkedOrIdle => "Parked or Idle",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<TaskState> {
        TaskState::ALL.into_iter().find(|state| state.name() == name)
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
        let name = |bits| TaskState::of_leaving(bits).name();
        assert_eq!(
            (name(0), name(2), name(0x100)),
            ("Runnable", "Uninterruptible Sleep", "Runnable (Preempted)")
        );
    }

    #[test]
    fn each_state_is_found_by_its_name() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_name(state.name()), Some(state));
        }
        assert_eq!(TaskState::from_name("Flying"), None);
    }
}
