//! Counts the context switches that a recording lacks. Some kernels (Linux 6.18) leave out every switch from
//! the idle task of a CPU.

use rustc_hash::FxHashMap;

use crate::formats::{Event, EventType};
use crate::ids::{Cpu, Tid};

/// Follows the switches of each CPU of one recording. The events of a CPU come in the order of time.
#[derive(Debug, Default)]
pub(crate) struct MissingSwitches {
    /// The fields `prev_pid` and `next_pid`, by event type; `None` for other events than `sched_switch`.
    fields: Vec<Option<[usize; 2]>>,
    /// The thread that the last switch gave each CPU to.
    entered: FxHashMap<Cpu, Tid>,
    /// How often a thread left an idle CPU.
    times: u64,
}

impl MissingSwitches {
    /// Adds the recording's next event type.
    pub(crate) fn add_event_type(&mut self, kind: &EventType) {
        let is_switch = kind.name == "sched_switch";
        let fields = is_switch.then(|| kind.field("prev_pid").zip(kind.field("next_pid"))).flatten();
        self.fields.push(fields.map(|(left, entered)| [left, entered]));
    }

    /// Adds an event of the type with this number.
    #[inline]
    pub(crate) fn add(&mut self, event: &Event<'_>, kind: &EventType, number: usize) {
        if let Some(Some([left, entered])) = self.fields.get(number) {
            self.add_switch(event.cpu, event.tid_at(kind, *left), event.tid_at(kind, *entered));
        }
    }

    fn add_switch(&mut self, cpu: Cpu, left: Option<Tid>, entered: Option<Tid>) {
        let before = match entered {
            Some(entered) => self.entered.insert(cpu, entered),
            None => self.entered.remove(&cpu),
        };
        let is_idle_left_by_thread = before == Some(Tid::IDLE) && left.is_some_and(Tid::is_thread);
        self.times += u64::from(is_idle_left_by_thread);
    }

    /// Events of a CPU are lost: the next switch need not fit the last one.
    pub(crate) fn lost(&mut self, cpu: Cpu) {
        self.entered.remove(&cpu);
    }

    /// How many switches are missing.
    pub(crate) fn times(&self) -> u64 {
        self.times
    }

    /// The sentence about `times` missing switches.
    pub(crate) fn sentence(times: u64) -> Option<String> {
        (times > 0).then(|| {
            format!(
                "{times} switches from an idle CPU are missing: who ran there is known from the events that \
                 followed"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_leaves_an_idle_cpu_lacks_a_switch() {
        let mut switches = MissingSwitches::default();
        let mut switch = |cpu, left, entered| {
            switches.add_switch(Cpu(cpu), Some(Tid(left)), Some(Tid(entered)));
            switches.times()
        };
        assert_eq!([switch(0, 5, 0), switch(1, 6, 0), switch(0, 0, 7), switch(0, 7, 0)], [0; 4]);
        assert_eq!([switch(0, 7, 0), switch(0, 8, 9), switch(1, 0, 6)], [1, 2, 2]);
        switch(1, 6, 0);
        switches.lost(Cpu(1));
        switches.add_switch(Cpu(1), Some(Tid(6)), Some(Tid(0)));
        assert_eq!(switches.times(), 2);
        assert!(MissingSwitches::sentence(2).unwrap().starts_with("2 switches"));
        assert_eq!(MissingSwitches::sentence(0), None);
    }
}
