//! How fast each CPU is at a frequency, beside the fastest CPU at its highest.

use std::collections::BTreeMap;

use crate::ids::Cpu;
use crate::trace_dat::{CpuSpeed, MachineFacts};

/// The capacity that the kernel gives the fastest CPU, and what a unit of it is worth here.
const UNITS_OF_CAPACITY: u64 = 1_000_000;

/// The speeds of CPUs: numbers that compare with each other alone.
#[derive(Debug, Default)]
pub(super) struct CpuSpeeds {
    known: BTreeMap<Cpu, CpuSpeed>,
    /// The highest frequency in the timeline, kHz.
    highest_seen: Option<u32>,
    /// Whether the capacity of each CPU is known, so that small cores count as slow.
    has_capacities: bool,
}

impl CpuSpeeds {
    pub fn new(facts: Option<&MachineFacts>) -> CpuSpeeds {
        let known: BTreeMap<Cpu, CpuSpeed> =
            facts.iter().flat_map(|facts| &facts.cpus).map(|speed| (speed.cpu, *speed)).collect();
        let has_capacities =
            !known.is_empty() && known.values().all(|speed| speed.capacity.is_some_and(|it| it > 0));
        CpuSpeeds { known, highest_seen: None, has_capacities }
    }

    /// A frequency that a CPU has had, kHz.
    pub fn saw(&mut self, khz: u32) {
        self.highest_seen = self.highest_seen.max(Some(khz));
    }

    /// The speed of the fastest CPU at its highest frequency; `None` where neither is known.
    pub fn highest(&self) -> Option<u64> {
        let capacity = self.known.values().filter_map(|speed| speed.capacity).max();
        if self.has_capacities {
            return capacity.map(|capacity| u64::from(capacity) * UNITS_OF_CAPACITY);
        }
        let khz = self.known.values().filter_map(|speed| speed.max_khz).max();
        khz.max(self.highest_seen).filter(|khz| *khz > 0).map(u64::from)
    }

    /// The speed of a CPU at a frequency, kHz; where that is not known, at its highest.
    pub fn at(&self, cpu: Cpu, khz: Option<u32>) -> Option<u64> {
        let speed = self.known.get(&cpu);
        if !self.has_capacities {
            return khz.map(u64::from);
        }
        let full = u64::from(speed?.capacity?) * UNITS_OF_CAPACITY;
        let highest = speed?.max_khz.filter(|khz| *khz > 0).or(self.highest_seen);
        let (Some(khz), Some(highest)) = (khz, highest) else { return Some(full) };
        let part = u128::from(full) * u128::from(khz.min(highest)) / u128::from(highest.max(1));
        u64::try_from(part).ok()
    }

    /// Whether the CPU is slower than the fastest even at its highest frequency.
    pub fn is_small(&self, cpu: Cpu) -> bool {
        self.has_capacities && self.at(cpu, None).zip(self.highest()).is_some_and(|(own, most)| own < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(cpus: &[(u32, Option<u32>, Option<u32>)]) -> MachineFacts {
        let cpus = cpus.iter().map(|(cpu, capacity, max_khz)| CpuSpeed {
            cpu: Cpu(*cpu),
            capacity: *capacity,
            max_khz: *max_khz,
        });
        MachineFacts { cpus: cpus.collect(), ..MachineFacts::default() }
    }

    #[test]
    fn a_small_core_is_slow_at_its_highest_frequency_too() {
        let known = facts(&[(0, Some(256), Some(2_000_000)), (4, Some(1024), Some(2_800_000))]);
        let speeds = CpuSpeeds::new(Some(&known));
        let share = |cpu, khz| speeds.at(cpu, khz).unwrap() as f64 / speeds.highest().unwrap() as f64;
        assert_eq!((share(Cpu(0), None), share(Cpu(0), Some(1_000_000))), (0.25, 0.125));
        assert_eq!((share(Cpu(4), Some(2_800_000)), share(Cpu(4), Some(1_400_000))), (1.0, 0.5));
        assert_eq!((speeds.is_small(Cpu(0)), speeds.is_small(Cpu(4))), (true, false));
    }

    #[test]
    fn without_capacities_frequencies_are_compared() {
        let mut speeds = CpuSpeeds::new(Some(&facts(&[(0, None, Some(2_000_000))])));
        speeds.saw(500_000);
        assert_eq!((speeds.at(Cpu(0), Some(500_000)), speeds.highest()), (Some(500_000), Some(2_000_000)));
        assert_eq!((speeds.at(Cpu(0), None), speeds.is_small(Cpu(0))), (None, false));
        assert_eq!(CpuSpeeds::new(None).highest(), None);
    }
}
