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
