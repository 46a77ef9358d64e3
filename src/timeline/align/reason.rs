//! Why an input lies where it does on the timeline: the facts, and the sentences that are displayed of them.

use std::fmt;

use serde::{Serialize, Serializer};

use super::sample_offset::InsideCount;
use crate::clock::{Clock, Timestamp};

/// Why an input lies where it does on the timeline. Displayed and serialized as a sentence for people.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlaceReason {
    /// The main reason.
    pub basis: PlaceBasis,
    /// How many events another recording holds too, at the same times.
    pub shared_events: u64,
}

/// The main reason for the place of an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum PlaceBasis {
    /// The input has no place yet.
    #[default]
    NotPlaced,
    /// The recording's clock is the timeline's: it is of the same boot, or its times are the timeline's.
    TimelineClock(Clock),
    /// The recording names the timeline's clock, and nothing shows that both are of one boot.
    SameClockName(Clock),
    /// The recording is of another machine, to which nothing relates the timeline's clock.
    OtherMachine(String),
    /// The manifest of an archive relates the recording to another one.
    Manifest {
        /// The path of the other recording in the archive.
        other: String,
        /// The ns that the other clock reads more.
        offset_ns: i64,
    },
    /// Snapshots convert the recording's clock.
    Snapshots {
        /// The recording's clock.
        from: Clock,
        /// The timeline's clock.
        to: Clock,
        /// Snapshots show that the recording is of the timeline's boot.
        is_of_one_boot: bool,
        /// The recording does not name its clock, and has the usual one.
        is_taken_for_mono: bool,
    },
    /// No snapshot relates the recording's clock to the timeline's.
    Unrelated {
        /// The recording's clock.
        from: Clock,
        /// The timeline's clock.
        to: Clock,
    },
    /// The recording is of another boot, and CLOCK_REALTIME relates both boots.
    OtherBoot {
        /// The wall time at this boot less that at the timeline's boot, ns.
        shift_ns: i64,
        /// How far the snapshots of a boot differ, ns.
        error_ns: u64,
    },
    /// The packets of the only input are copied.
    CopiedPackets,
    /// The events of the only input are written at their own times.
    SameTimes,
    /// The user gave the offset.
    OffsetOption,
    /// The user gave the clock.
    ClockOption,
    /// There is no recording to compare a method trace with.
    NoRecording {
        /// Whether the times of each thread are its CPU time.
        is_cpu_time: bool,
    },
    /// A place fits, and another one near it fits about as well.
    NearTie {
        /// The clock of the place that was chosen.
        clock: Clock,
        /// The clock of the other place.
        other: Clock,
        /// The distance of both places, ns.
        distance_ns: u64,
    },
    /// A place fits clearly better than all others.
    Fits {
        /// Whether a clock leads to the place; else markers alone do.
        has_clock: bool,
        /// How much was compared.
        compared: ComparedAmount,
        /// Geometric mean of the residuals, ns; `None` where only records were compared.
        residual_ns: Option<f64>,
        /// How many times better it fits than the next place, and the clock of that.
        runner_up: Option<(u64, Clock)>,
    },
    /// A trace without wall time: its start has a place by this clock, and its records have none.
    OnlyStart(Clock),
    /// The clock that the runtime's source names. The contents do not contradict it, and do not prove it.
    RuntimeClock {
        /// The clock.
        clock: Clock,
        /// How much was compared.
        compared: ComparedAmount,
    },
    /// Samples lie where their threads had a CPU.
    SamplesFit {
        /// Whether a clock leads to the place; else it was found by the samples alone.
        has_clock: bool,
        /// How well they fit.
        inside: SamplesInside,
    },
    /// The usual clock of such files, and nothing can be compared.
    UsualClock(Clock),
    /// Only this clock puts the start into the recording, and nothing else can be compared.
    OnlyClock,
}

/// How much of a method trace was compared with recordings. Displayed as a list of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedAmount {
    /// Enters and exits that have a marker.
    pub markers: usize,
    /// Stretches off the CPU.
    pub gaps: usize,
    /// The trace begins within ART's marker of the suspension for its begin.
    pub starts_in_marker: bool,
    /// Records, and those among them that lie where their thread had a CPU.
    pub records: InsideCount,
}

impl ComparedAmount {
    /// Whether nothing was compared.
    pub fn is_nothing(&self) -> bool {
        self.markers == 0 && self.gaps == 0 && !self.starts_in_marker && self.records.compared == 0
    }
}

impl fmt::Display for ComparedAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InsideCount { compared, inside } = self.records;
        let parts = [
            (self.markers > 0).then(|| format!("{} markers", self.markers)),
            (self.gaps > 0).then(|| format!("{} stretches off the CPU", self.gaps)),
            self.starts_in_marker.then(|| "ART's marker of the start".to_owned()),
            (compared > 0)
                .then(|| format!("{inside} of {compared} records lie where their thread had a CPU")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            return f.write_str("nothing to compare");
        }
        f.write_str(&parts.join(", "))
    }
}

impl From<PlaceBasis> for PlaceReason {
    fn from(basis: PlaceBasis) -> PlaceReason {
        PlaceReason { basis, ..PlaceReason::default() }
    }
}

impl fmt::Display for PlaceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.basis)?;
        if self.shared_events > 0 {
            let count = self.shared_events;
            write!(f, "; {count} of its events are in another recording too, at the same times")?;
        }
        Ok(())
    }
}

impl Serialize for PlaceReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How well samples fit their place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplesInside {
    /// Samples that lie where their thread had a CPU.
    pub inside: u64,
    /// Samples that were compared.
    pub compared: u64,
    /// How many times more samples miss the next place.
    pub times_better: Option<u64>,
    /// How exactly the place is known, ns to both sides, where it was found by the samples alone.
    pub within_ns: Option<u64>,
}

impl fmt::Display for SamplesInside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SamplesInside { inside, compared, .. } = self;
        write!(f, "{inside} of {compared} samples lie where their thread had the CPU")?;
        if let Some(times) = self.times_better {
            write!(f, ", {times} times fewer miss it than any other place")?;
        }
        match self.within_ns {
            Some(ns) => write!(f, "; sure within {:.1} µs", ns as f64 / 1e3),
            None => Ok(()),
        }
    }
}

impl fmt::Display for PlaceBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceBasis::NotPlaced => Ok(()),
            PlaceBasis::TimelineClock(Clock::Unknown) => {
                f.write_str("it does not name its clock: its times are the timeline's")
            }
            PlaceBasis::TimelineClock(clock) => {
                write!(f, "it is recorded in {clock}, the timeline's clock")
            }
            PlaceBasis::SameClockName(Clock::Unknown) => {
                f.write_str("neither it nor the timeline names its clock: the times are taken as they are")
            }
            PlaceBasis::SameClockName(clock) => write!(
                f,
                "it is recorded in {clock} like the timeline, and no snapshots show that both are of one boot: the \
                 times are taken as they are"
            ),
            PlaceBasis::OtherMachine(machine) => write!(
                f,
                "it is of the machine {machine}, to which nothing relates the timeline's: the times are taken as \
                 they are"
            ),
            PlaceBasis::Manifest { other, offset_ns } => {
                write!(f, "by the archive's manifest: the clock of {other} reads {offset_ns} ns more")
            }
            PlaceBasis::Snapshots { from, to, is_of_one_boot, is_taken_for_mono } => {
                if *is_taken_for_mono {
                    write!(f, "it does not name its clock, which is taken for {from}: ")?;
                }
                write!(f, "{from} is turned into {to} by snapshots")?;
                let is_assumed = !is_of_one_boot && !is_taken_for_mono;
                f.write_str(if is_assumed { "; nothing shows that both are of one boot" } else { "" })
            }
            PlaceBasis::Unrelated { from: Clock::Unknown, to } => {
                write!(f, "it does not name its clock: the times are taken as they are, for times of {to}")
            }
            PlaceBasis::Unrelated { from, to } => {
                write!(f, "nothing ties {from} to {to}: the times are taken as they are")
            }
            PlaceBasis::OtherBoot { shift_ns, error_ns } => write!(
                f,
                "it is of another boot, or the wall clock was set: it is placed by CLOCK_REALTIME, {shift_ns} ns \
                 later at boot, within {error_ns} ns"
            ),
            PlaceBasis::CopiedPackets => f.write_str("its packets are copied as they are"),
            PlaceBasis::SameTimes => f.write_str("its events become packets at the same times"),
            PlaceBasis::OffsetOption => f.write_str("by --offset"),
            PlaceBasis::ClockOption => f.write_str("by --clock"),
            PlaceBasis::NoRecording { is_cpu_time: true } => {
                f.write_str("no recording to compare with; each thread's times are its own CPU time")
            }
            PlaceBasis::NoRecording { is_cpu_time: false } => {
                f.write_str("no recording to compare with: its own times are kept")
            }
            PlaceBasis::NearTie { clock, other, distance_ns } => {
                let us = *distance_ns as f64 / 1e3;
                write!(f, "{clock} fits, and {other}, which is {us:.1} µs from it, fits about as well")
            }
            PlaceBasis::Fits { has_clock, compared, residual_ns, runner_up } => {
                let fits = if *has_clock { "it fits" } else { "markers coincide most often here" };
                write!(f, "{fits}: {compared}")?;
                if let Some(ns) = residual_ns {
                    write!(f, "; typically {:.1} µs apart", ns / 1e3)?;
                }
                match runner_up {
                    Some((times, clock)) => write!(f, ", {times} times better than {clock}"),
                    None => Ok(()),
                }
            }
            PlaceBasis::OnlyStart(clock) => write!(
                f,
                "{clock} gives its start; its records have no wall time, and lie at the CPU time of their thread since \
                 the start: right in order and length, and not in place"
            ),
            PlaceBasis::RuntimeClock { clock, compared } => {
                write!(f, "{clock} is the clock of its runtime, and nothing contradicts it: {compared}")
            }
            PlaceBasis::SamplesFit { has_clock: true, inside } => write!(f, "it fits: {inside}"),
            PlaceBasis::SamplesFit { has_clock: false, inside } => {
                write!(f, "found by the context switches: {inside}")
            }
            PlaceBasis::UsualClock(clock) => {
                write!(f, "{clock} is the usual clock of such files; nothing else to compare")
            }
            PlaceBasis::OnlyClock => f.write_str(
                "the only clock whose snapshots put the start into the recording; nothing else to compare",
            ),
        }
    }
}

/// Something that was tried to place a method trace. Displayed and serialized as a line for `--explain`.
#[derive(Debug, Clone, PartialEq)]
pub enum Trial {
    /// No snapshot has a reading of this clock.
    NoSnapshot(Clock),
    /// The clock leads into the recording, but its frequency is not exact.
    RoughFrequency(Clock),
    /// The clock does not lead into the recording.
    OutsideRecording {
        /// The clock.
        clock: Clock,
        /// Where the trace would begin, in the timeline's clock.
        begins: Timestamp,
        /// The first event of the recordings, in the timeline's clock.
        first: Timestamp,
        /// Their last event, in the timeline's clock.
        last: Timestamp,
    },
    /// The clock leads to a place that was compared with the recordings.
    Place {
        /// The clock.
        clock: Clock,
        /// Where the trace begins, in the timeline's clock.
        begins: Timestamp,
        /// The result of the comparison.
        fit: PlaceFit,
        /// How much was compared.
        compared: ComparedAmount,
    },
    /// Neither the trace nor the recordings hold anything to compare.
    NothingToCompare,
    /// The clock does not lead samples into the recording.
    SamplesOutside(Clock),
    /// A place of samples that was compared with the recordings.
    SamplePlace {
        /// The clock.
        clock: Clock,
        /// Samples that lie where their thread had a CPU.
        inside: u64,
        /// Samples that were compared.
        compared: u64,
    },
}

/// How well a place fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlaceFit {
    /// Geometric mean of the residuals, ns.
    Residual(f64),
    /// The residuals are as small at places that are certainly wrong.
    Anywhere,
    /// There is nothing to compare.
    NotCompared,
}

impl fmt::Display for PlaceFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceFit::Residual(ns) => write!(f, "{:.1} µs apart", ns / 1e3),
            PlaceFit::Anywhere => f.write_str("what there is to compare would fit as well anywhere"),
            PlaceFit::NotCompared => f.write_str("nothing to compare"),
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trial::NoSnapshot(clock) => write!(f, "{clock}: no snapshot ties it to the recording"),
            Trial::RoughFrequency(clock) => {
                write!(f, "{clock}: begins in the recording, but its frequency is not known well enough")
            }
            Trial::OutsideRecording { clock, begins, first, last } => {
                write!(f, "{clock}: begins at {begins} ns, but the recording is from {first} to {last}")
            }
            Trial::Place { clock, begins, fit, compared } => {
                write!(f, "{clock}: begins at {begins} ns: {fit}; {compared}")
            }
            Trial::NothingToCompare => f.write_str("no markers of traced methods, no CPU times to compare"),
            Trial::SamplesOutside(clock) => {
                write!(f, "{clock}: the samples would lie outside of the recording")
            }
            Trial::SamplePlace { clock: Clock::Unknown | Clock::TracePerf, inside, compared } => {
                write!(f, "best place: {inside} of {compared} samples where their thread had the CPU")
            }
            Trial::SamplePlace { clock, inside, compared } => {
                write!(f, "{clock}: {inside} of {compared} samples where their thread had the CPU")
            }
        }
    }
}

impl Serialize for Trial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why none of the places that were tried is chosen.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum NoPlace {
    /// The user named a clock of which the recording has no reading.
    #[error("no snapshot of that clock in the recording")]
    NoSnapshot,
    /// There is no candidate.
    #[error("no clock's start falls into the recording, and no markers coincide often enough")]
    NoCandidate,
    /// The best candidate fits badly.
    #[error("what should coincide is {:.1} µs apart at best", .residual_ns / 1e3)]
    Apart {
        /// Geometric mean of its residuals, ns.
        residual_ns: f64,
    },
    /// Two candidates that are far from each other fit.
    #[error("{0} and {1} fit about as well")]
    BothFit(Clock, Clock),
    /// Two candidates are possible, and nothing can be compared.
    #[error("{0} and {1} both fall into the recording, and nothing in it tells them apart")]
    BothPossible(Clock, Clock),
    /// The snapshots lead to a place at which nothing coincides.
    #[error("{0} fits by its snapshots, but no marker of a traced method lies where it should")]
    Contradicted(Clock),
}

/// Why samples have no place. Displayed as a part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum NoSamplePlace {
    /// The user named a clock of which the recording has no reading.
    #[error("no snapshot of that clock in the recording")]
    NoSnapshot,
    /// The recording tells no times of the sampled threads on a CPU.
    #[error("the recording has no context switches (sched_switch) of the sampled threads")]
    NothingToCompare,
    /// The clock that the file names leads to a place that the samples do not fit.
    #[error(
        "by {0}, the clock that the file names, only {1} of {2} samples lie where their thread had the CPU"
    )]
    Contradicted(Clock, u64, u64),
    /// Too few samples lie in the recording at the best place.
    #[error("only {compared} samples can be compared with its context switches, which prove nothing")]
    TooFew {
        /// The number of samples.
        compared: u64,
    },
    /// The samples fit no place.
    #[error("even at the best place only {inside} of {compared} samples lie where their thread had the CPU")]
    NoneFits {
        /// Samples that lie where they may.
        inside: u64,
        /// Samples that were compared.
        compared: u64,
    },
    /// Another place fits about as well.
    #[error(
        "at the best place {inside} of {compared} samples lie where their thread had the CPU, but elsewhere \
         {other} of {of} do"
    )]
    SeveralFit {
        /// Samples that lie where they may.
        inside: u64,
        /// Samples that were compared.
        compared: u64,
        /// The same at the next place.
        other: u64,
        /// The same at the next place.
        of: u64,
    },
    /// The threads ran so long at a time that the samples fit a wide range.
    #[error("they fit anywhere within {:.1} ms", *.within_ns as f64 / 5e5)]
    Loose {
        /// The range of offsets that fit, ns to both sides.
        within_ns: u64,
    },
}
