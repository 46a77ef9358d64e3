//! The rows of the tables `process` and `thread`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::sink::TableSink;
use super::utid::utid;
use crate::tables::{Cell, TableId};
use crate::timeline::MethodThread;
use crate::tracks::Tasks;

impl TableSink<'_> {
    /// Makes a row of each thread and process that the timeline names.
    pub(super) fn push_threads(&mut self, tasks: &Tasks) -> io::Result<()> {
        let mut pids: BTreeSet<i32> = tasks.processes.keys().copied().collect();
        let mut of_trace: BTreeMap<i64, &MethodThread> = BTreeMap::new();
        for thread in self.method_threads.values() {
            of_trace.entry(utid(thread)).or_insert(thread);
        }
        let mut tids = std::mem::take(&mut self.tids);
        tids.extend(tasks.threads.sorted().into_iter().map(|(tid, _)| tid));
        let of_kernel = tids.iter().map(|tid| i64::from(*tid));
        let utids: BTreeSet<i64> = of_kernel.chain(of_trace.keys().copied()).collect();
        for number in utids {
            let traced = of_trace.get(&number).copied();
            let tid = i32::try_from(number).ok().filter(|tid| *tid >= 0);
            let known = tid.and_then(|tid| tasks.threads.get(tid));
            let pid = known.and_then(|thread| thread.tgid).or(traced.and_then(|thread| thread.tgid));
            pids.extend(pid);
            let name = known.and_then(|thread| thread.name_text());
            let traced_name = traced.map(|thread| &thread.name);
            self.rows.push(
                TableId::Thread,
                [
                    number.into(),
                    tid.into(),
                    pid.into(),
                    name.as_deref().or(traced_name.map(String::as_str)).into(),
                    tid.zip(pid).map(|(tid, pid)| tid == pid).into(),
                    traced.map(|thread| thread.trace_id).into(),
                    traced_name.into(),
                    traced.and_then(|thread| thread.doubt.as_ref()).into(),
                ],
            )?;
        }
        for pid in pids {
            let name = tasks.process_name(pid);
            let name = Some(&*name).filter(|name| !name.is_empty());
            self.rows.push(TableId::Process, [pid.into(), Cell::from(name)])?;
        }
        Ok(())
    }
}
