//! `StackSample`: a sample that states its thread, its counter and its weight, each in itself or by the id of
//! an interned message (protos/perfetto/trace/profiling/stack_sample.proto). Chrome's and Python's profilers
//! write such packets.

use std::collections::HashMap;

use super::fields::{
    interned_data, stack_sample as field, stack_sample_counter_descriptor,
    stack_sample_execution_context as execution, stack_sample_task_context as task,
};
use super::track_clocks::number;
use super::wire::read::fields;
use crate::ids::{Cpu, Pid, Tid};

/// The threads, places and counters that a packet sequence interns for its stack samples, by id.
#[derive(Default)]
pub(super) struct InternedContexts<'a> {
    tasks: HashMap<u64, &'a [u8]>,
    executions: HashMap<u64, &'a [u8]>,
    counters: HashMap<u64, &'a [u8]>,
}

impl<'a> InternedContexts<'a> {
    /// Reads an `InternedData`.
    pub(super) fn learn(&mut self, interned: &'a [u8]) {
        for (field, value) in fields(interned) {
            let (table, iid) = match field {
                interned_data::STACK_SAMPLE_TASK_CONTEXTS => (&mut self.tasks, task::IID),
                interned_data::STACK_SAMPLE_EXECUTION_CONTEXTS => (&mut self.executions, execution::IID),
                interned_data::STACK_SAMPLE_COUNTER_DESCRIPTORS => {
                    (&mut self.counters, stack_sample_counter_descriptor::IID)
                }
                _ => continue,
            };
            table.insert(number(value.bytes(), iid).unwrap_or(0), value.bytes());
        }
    }
}

/// The stack of a stack sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum StatedStack<'a> {
    /// The sample has none.
    #[default]
    None,
    /// The id of an interned callstack.
    Interned(u64),
    /// An `InlineCallstack`.
    Inline(&'a [u8]),
}

/// The parts of a stack sample.
#[derive(Default)]
pub(super) struct StackSampleParts<'a> {
    pub(super) pid: Option<Pid>,
    pub(super) tid: Option<Tid>,
    pub(super) cpu: Option<Cpu>,
    pub(super) stack: StatedStack<'a>,
    pub(super) is_not_unwound: bool,
    /// The `CounterDescriptor` of the sample; `None` where that of the sequence's defaults holds.
    pub(super) counter: Option<&'a [u8]>,
    pub(super) weight: Option<u64>,
    /// How many messages are named by an id that the sequence has not interned.
    pub(super) missing: u64,
}

impl<'a> StackSampleParts<'a> {
    /// Reads a `StackSample` of a sequence that has interned this.
    pub(super) fn new(message: &'a [u8], interned: &InternedContexts<'a>) -> StackSampleParts<'a> {
        let mut parts = StackSampleParts::default();
        let mut task_context = None;
        let mut execution_context = None;
        let mut missing = 0;
        let mut find = |table: &HashMap<u64, &'a [u8]>, iid: u64| {
            let found = table.get(&iid).copied();
            missing += u64::from(found.is_none());
            found
        };
        for (number, value) in fields(message) {
            match number {
                field::TASK_CONTEXT => task_context = Some(value.bytes()),
                field::TASK_CONTEXT_IID => task_context = find(&interned.tasks, value.number()),
                field::EXECUTION_CONTEXT => execution_context = Some(value.bytes()),
                field::EXECUTION_CONTEXT_IID => {
                    execution_context = find(&interned.executions, value.number());
                }
                field::CALLSTACK => parts.stack = StatedStack::Inline(value.bytes()),
                field::CALLSTACK_IID => parts.stack = StatedStack::Interned(value.number()),
                field::UNWIND_ERROR => parts.is_not_unwound = !value.bytes().is_empty(),
                field::UNWIND_ERROR_IID => parts.is_not_unwound = value.number() != 0,
                field::PRIMARY_DESCRIPTOR => parts.counter = Some(value.bytes()),
                field::PRIMARY_DESCRIPTOR_IID => parts.counter = find(&interned.counters, value.number()),
                field::PRIMARY_WEIGHT => parts.weight = Some(value.number()),
                _ => {}
            }
        }
        parts.missing = missing;
        let id = |message: &[u8], field| number(message, field).filter(|id| *id > 0).map(|id| id as i32);
        let task_context = task_context.unwrap_or_default();
        parts.pid = id(task_context, task::PID).map(Pid);
        parts.tid = id(task_context, task::TID).map(Tid);
        parts.cpu =
            execution_context.and_then(|context| number(context, execution::CPU)).map(|cpu| Cpu(cpu as u32));
        parts
    }
}
