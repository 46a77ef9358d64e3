//! The threads of a profile that only wait.

use super::names::TraceNames;
use super::tree::{CallTree, ROOT};
use crate::formats::art_method::{CPU, WALL};

/// The methods in which a thread sleeps until something happens or a time has passed.
const WAITING_METHODS: [&str; 8] = [
    "android.os.MessageQueue.nativePollOnce",
    "java.lang.Object.wait",
    "java.lang.Thread.parkFor$",
    "java.lang.Thread.sleep",
    "java.lang.VMThread.sleep",
    "jdk.internal.misc.Unsafe.park",
    "libcore.io.Linux.poll",
    "sun.misc.Unsafe.park",
];

/// A thread only waits if it works in less than one part in this many of its wall time.
const MIN_WAITING_RATIO: u64 = 100;

/// For each thread whether it only waits. A thread works while it uses a processor; in a trace without
/// thread-CPU time it works in every method that does not wait by its name.
pub(super) fn waiting_threads(tree: &CallTree, names: &TraceNames<'_, '_>, has_cpu: bool) -> Vec<bool> {
    let roots = tree.nodes.iter().take_while(|node| node.method == ROOT);
    let (wall, mut work): (Vec<u64>, Vec<u64>) =
        roots.map(|root| (root.recorded[WALL], if has_cpu { root.recorded[CPU] } else { 0 })).unzip();
    if !has_cpu {
        for node in tree.nodes.iter().filter(|node| node.method != ROOT && node.own[WALL] > 0) {
            if !WAITING_METHODS.contains(&names.full(node.method).as_str()) {
                work[node.thread as usize] += node.own[WALL];
            }
        }
    }
    wall.into_iter().zip(work).map(|(wall, work)| work < wall / MIN_WAITING_RATIO).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::art_method::MethodTrace;
    use crate::profile::record_stream::ProfileSelection;
    use crate::profile::tree::TreeOptions;

    /// A trace with wall time alone: thread 1 computes for 50 ms of 1 s, thread 2 for 5 ms.
    #[test]
    fn without_cpu_time_the_names_of_methods_say_which_threads_wait() {
        let text = "*version\n3\nclock=wall\nelapsed-time-usec=1000000\n*threads\n1\tmain\n2\tworker\n*methods\n\
                    0x4\ta.B\tc\t()V\tB.java\n0x8\tjava.lang.Object\twait\t()V\tObject.java\n*end\n";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(b"SLOW\x03\0\x20\0");
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&10u16.to_le_bytes());
        bytes.extend_from_slice(&[0; 14]);
        for thread in [1u16, 2] {
            let wakes = if thread == 1 { 950_000u32 } else { 995_000 };
            for (method, at) in [(4u32, 0), (8, 0), (9, wakes), (5, 1_000_000)] {
                bytes.extend_from_slice(&thread.to_le_bytes());
                bytes.extend_from_slice(&method.to_le_bytes());
                bytes.extend_from_slice(&at.to_le_bytes());
            }
        }
        let trace = MethodTrace::parse(&bytes).unwrap();
        let tree = CallTree::of(&trace, &ProfileSelection::default(), TreeOptions::default());
        assert_eq!(waiting_threads(&tree, &TraceNames::new(&trace), false), [false, true]);
    }
}
