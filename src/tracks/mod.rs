//! Builds tracks from a timeline: slices, thread states, interrupts and counters on threads and CPUs.
//!
//! The exporters of formats that know nothing of ftrace implement [`TrackSink`]. A [`TrackBuilder`]
//! follows the kernel's events, the markers and the methods, and calls the sink for each slice, state and
//! counter value.

mod async_slices;
mod both;
mod builder;
mod open_async;
mod sink;
mod slices;
#[cfg(test)]
pub(crate) mod tests;
mod thread_lives;
pub(crate) mod thread_names;
mod thread_states;

pub(crate) use self::both::Both;
pub(crate) use self::builder::{OpenTimes, TrackBuilder};
pub(crate) use self::sink::{
    Arrow, ArrowKind, AsyncEdge, AsyncSlice, CounterSample, CounterScope, CpuSwitch, MethodCall, MethodLabel,
    OpenMethod, OwnTrack, Span, TakenSample, ThreadState, TrackObserver, TrackSink, counter_number,
};
#[cfg(test)]
pub(crate) use self::thread_names::AppPackage;
pub(crate) use self::thread_names::{Task, Tasks};
pub(crate) use crate::timeline::CPU_FREQUENCY;
