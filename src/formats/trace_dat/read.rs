//! Pushes a trace.dat's events to a sink: by time over all CPUs, or one CPU after the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::Arc;

use super::ahead::Ahead;
use super::codec::Codec;
use super::cpu::Lane;
use super::file::TraceDat;
use super::kinds::Kinds;
use crate::formats::{CpuCount, Damage, Event, Order, Payload, ReadReport, Sink, ThreadInfo};
use crate::ftrace::Missed;

/// Kinds without a format that are told one by one.
const MAX_UNKNOWN_TOLD: usize = 8;

impl TraceDat<'_> {
    /// Pushes the head, the threads and all events. An error is the sink's; what is wrong with the file is in the
    /// report.
    pub fn read<S: Sink + ?Sized>(&self, order: Order, sink: &mut S) -> io::Result<ReadReport> {
        self.read_head(sink)?;
        let all: Vec<usize> = (0..self.streams.len()).collect();
        self.read_streams(&all, order, sink)
    }

    /// Pushes what comes before the events: the head, and the threads' names and processes.
    pub fn read_head<S: Sink + ?Sized>(&self, sink: &mut S) -> io::Result<()> {
        sink.head(&self.head())?;
        sink.kernel(&Arc::new(self.context()))?;
        let mut tgids: BTreeMap<i32, i32> = number_lines(&self.tgids)
            .filter_map(|(tid, rest)| Some((tid, std::str::from_utf8(rest).ok()?.trim().parse().ok()?)))
            .collect();
        for (tid, name) in number_lines(&self.cmdlines) {
            sink.thread(&ThreadInfo { tid, tgid: tgids.remove(&tid), name: Some(name) })?;
        }
        for (tid, tgid) in tgids {
            sink.thread(&ThreadInfo { tid, tgid: Some(tgid), name: None })?;
        }
        Ok(())
    }

    /// Pushes one CPU's events only, without [`TraceDat::read_head`]: so that several CPUs can be read at the same
    /// time, each into a sink of its own. Kinds are numbered anew in each such reading.
    pub fn read_cpu<S: Sink + ?Sized>(&self, cpu: u32, sink: &mut S) -> io::Result<ReadReport> {
        let of_cpu: Vec<usize> = (0..self.streams.len()).filter(|i| self.streams[*i].cpu == cpu).collect();
        self.read_streams(&of_cpu, Order::Time, sink)
    }

    fn read_streams<S: Sink + ?Sized>(
        &self,
        which: &[usize],
        order: Order,
        sink: &mut S,
    ) -> io::Result<ReadReport> {
        let packed = which.iter().any(|i| self.streams[*i].codec != Codec::None);
        std::thread::scope(|scope| {
            let ahead = if packed { Ahead::new(scope) } else { Ahead::default() };
            self.read_lanes(which, &ahead, order, sink)
        })
    }

    fn read_lanes<'s, S: Sink + ?Sized>(
        &'s self,
        which: &[usize],
        ahead: &Ahead<'s>,
        order: Order,
        sink: &mut S,
    ) -> io::Result<ReadReport> {
        let lanes: Vec<Lane<'s>> = which
            .iter()
            .map(|i| Lane::new(self.file, self.layout, &self.streams[*i], self.release, ahead.clone()))
            .collect();
        let mut run = Run { dat: self, kinds: Kinds::new(self), report: ReadReport::default(), sink };
        for lane in &lanes {
            run.report.cpus.entry(lane.cpu).or_default();
        }
        match order {
            Order::Time => run.by_time(lanes)?,
            Order::Any => {
                for mut lane in lanes {
                    if lane.advance() {
                        run.push_until(&mut lane, u64::MAX)?;
                    }
                    run.end_of(lane);
                }
            }
        }
        Ok(run.finish())
    }
}

/// One reading under way.
struct Run<'d, 'a, 's, S: Sink + ?Sized> {
    dat: &'d TraceDat<'a>,
    kinds: Kinds<'d, 'a>,
    report: ReadReport,
    sink: &'s mut S,
}

impl<S: Sink + ?Sized> Run<'_, '_, '_, S> {
    fn by_time(&mut self, mut lanes: Vec<Lane<'_>>) -> io::Result<()> {
        // Equal times go by CPU, then by the instance's place in the file.
        let mut heap = BinaryHeap::new();
        for (i, lane) in lanes.iter_mut().enumerate() {
            if lane.advance() {
                heap.push(Reverse((lane.place.ts, lane.cpu, i)));
            }
        }
        while let Some(Reverse((_, cpu, i))) = heap.pop() {
            // Events come in runs of one CPU: push until another CPU's time has come.
            let limit = match heap.peek() {
                Some(Reverse((ts, other, j))) if (*other, *j) < (cpu, i) => ts.saturating_sub(1),
                Some(Reverse((ts, ..))) => *ts,
                None => u64::MAX,
            };
            let lane = &mut lanes[i];
            if self.push_until(lane, limit)? {
                heap.push(Reverse((lane.place.ts, cpu, i)));
            }
        }
        for lane in lanes {
            self.end_of(lane);
        }
        Ok(())
    }

    /// Pushes the lane's current record and those after it up to `limit`, ns of the page's clock. Whether more are left.
    fn push_until(&mut self, lane: &mut Lane<'_>, limit: u64) -> io::Result<bool> {
        let mut count = CpuCount::default();
        let first = self.dat.options.time.apply(lane.place.ts);
        self.report.first_ts = Some(self.report.first_ts.map_or(first, |t| t.min(first)));
        let mut last = first;
        let endian = self.dat.layout.endian;
        let more = loop {
            if let Some(missed) = lane.missed.take() {
                match missed {
                    Missed::Count(lost) => count.lost = count.lost.saturating_add(lost),
                    Missed::Unknown => count.gaps += 1,
                }
                self.sink.lost(lane.cpu, if let Missed::Count(n) = missed { Some(n) } else { None })?;
            }
            let record = lane.record();
            if let Some(common) = self.kinds.common(record) {
                let id = self.kinds.of(common.id, self.sink)?;
                last = self.dat.options.time.apply(lane.place.ts);
                let event = Event {
                    ts: last,
                    cpu: lane.cpu,
                    tid: common.tid,
                    kind: id,
                    flags: common.flags,
                    preempt_count: common.preempt_count,
                    comm: None,
                    tgid: None,
                    payload: Payload::Raw { data: record, endian },
                };
                self.sink.event(&event, &self.kinds.met[id.0 as usize])?;
                count.events += 1;
            }
            if !lane.advance() {
                break false;
            }
            if lane.place.ts > limit {
                break true;
            }
        };
        self.report.last_ts = self.report.last_ts.max(Some(last));
        let sum = self.report.cpus.entry(lane.cpu).or_default();
        sum.events += count.events;
        sum.lost = sum.lost.saturating_add(count.lost);
        sum.gaps += count.gaps;
        Ok(more)
    }

    /// Takes what a lane that was read to its end has to say.
    fn end_of(&mut self, lane: Lane<'_>) {
        let untold = lane.damage_untold();
        self.report.damage.extend(lane.damage);
        if untold > 0 {
            let offset = self.report.damage.last().map_or(0, |d| d.offset);
            let what = format!("CPU {}: {untold} more damaged places", lane.cpu);
            self.report.damage.push(Damage { offset, what });
        }
    }

    fn finish(self) -> ReadReport {
        let mut report = self.report;
        for stat in &self.dat.options.stats {
            // The kernel's own count holds what the pages say, and what was lost after the last page too.
            if let Some(count) = report.cpus.get_mut(&stat.cpu) {
                count.lost = count.lost.max(stat.lost);
            }
        }
        if self.dat.options.extra.excerpt {
            let left_out = report.lost();
            for count in report.cpus.values_mut() {
                (count.lost, count.gaps) = (0, 0);
            }
            if left_out > 0 {
                report.notes.push(format!(
                    "{left_out} events had no room in the buffer, which was to keep the last ones or the first ones only"
                ));
            }
        }
        report.damage.splice(0..0, self.dat.damage.iter().cloned());
        let unknown = self.kinds.damage;
        if unknown.len() > MAX_UNKNOWN_TOLD {
            let what = format!("events of {} ids have no format", unknown.len());
            report.damage.push(Damage { offset: 0, what });
        } else {
            report.damage.extend(unknown.into_iter().map(|what| Damage { offset: 0, what }));
        }
        report.notes.extend(self.dat.notes.iter().cloned());
        report
    }
}

/// Lines of a number, a space and something.
fn number_lines(text: &[u8]) -> impl Iterator<Item = (i32, &[u8])> {
    text.split(|b| *b == b'\n' || *b == 0).filter_map(|line| {
        let line = line.trim_ascii();
        let space = line.iter().position(|b| *b == b' ')?;
        let number = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        Some((number, &line[space + 1..]))
    })
}
