//! The callers and callees of each method, with their calls and times.

use std::collections::{BTreeMap, HashMap};

use crate::profile::count::graph::CallGraph;
use crate::profile::count::time_pair::add;
use crate::profile::count::tree::ROOT;
use crate::profile::figures::percent;
use crate::profile::names::TraceNames;
use crate::profile::shown_name::ShownName;

/// The callers and callees of all methods.
pub(in crate::profile) struct CallRelations {
    /// By dense method index: callers and callees, those with the longest time first.
    lists: HashMap<u32, [Vec<CallRelation>; 2]>,
}

/// One caller or callee of a method.
#[derive(Debug, Clone, Copy)]
pub(in crate::profile) struct CallRelation {
    /// Dense method index of the caller or callee; [`ROOT`] outside of all calls.
    pub method: u32,
    /// Calls between the two methods.
    pub calls: u64,
    /// All calls of the callee, from wherever.
    pub callee_calls: u64,
    /// Whether all the calls are within another call of the callee, whose time has theirs in it.
    pub is_recursive: bool,
    /// Time of those calls, ns.
    pub total: [u64; 2],
    /// Share of the method's inclusive time that those calls take, percent.
    pub share: f64,
}

impl CallRelations {
    /// The relations in `graph`, sorted by `clock`.
    pub(in crate::profile) fn new(graph: &CallGraph, tick_ns: u64, clock: usize) -> CallRelations {
        let mut sums: BTreeMap<(u32, usize, u32), CallRelation> = BTreeMap::new();
        for (key, edge) in &graph.edges {
            for (list, this, other) in [(0, key.callee, key.caller), (1, key.caller, key.callee)] {
                let callee_calls = graph.methods.get(key.callee as usize).map_or(0, |m| m.calls.iter().sum());
                let empty = CallRelation {
                    method: other,
                    calls: 0,
                    callee_calls,
                    is_recursive: true,
                    total: [0; 2],
                    share: 0.0,
                };
                let sum = sums.entry((this, list, other)).or_insert(empty);
                sum.calls += edge.calls;
                // The time of a recursive call is part of the outermost call's time.
                if !key.callee_recursive {
                    sum.is_recursive = false;
                    add(&mut sum.total, edge.total.map(|t| t.saturating_mul(tick_ns)));
                }
            }
        }
        let mut lists: HashMap<u32, [Vec<CallRelation>; 2]> = HashMap::new();
        for ((this, list, _), mut relative) in sums {
            let inclusive = graph.methods.get(this as usize).map_or(0, |stat| stat.inclusive[clock]);
            relative.share = percent(relative.total[clock], inclusive.saturating_mul(tick_ns));
            lists.entry(this).or_default()[list].push(relative);
        }
        for list in lists.values_mut().flatten() {
            list.sort_by_key(|relative| std::cmp::Reverse(relative.total[clock]));
        }
        CallRelations { lists }
    }

    /// The callers and the callees of a method.
    pub(in crate::profile) fn of(&self, method: u32) -> [&[CallRelation]; 2] {
        self.lists.get(&method).map_or([&[], &[]], |[callers, callees]| [callers, callees])
    }
}

/// The caller of calls that no traced method makes.
const OUTSIDE: &str = "(outside of traced methods)";

impl CallRelation {
    /// The name of the caller or callee in JSON.
    pub(in crate::profile) fn name(&self, names: &TraceNames<'_, '_>) -> String {
        if self.method == ROOT { OUTSIDE.to_owned() } else { names.full(self.method) }
    }

    /// The name of the caller or callee for people.
    pub(in crate::profile) fn shown(&self, names: &TraceNames<'_, '_>, descriptors: bool) -> ShownName {
        match self.method {
            ROOT => ShownName::plain(OUTSIDE),
            method if self.is_recursive => names.shown(method, descriptors).with_note(" (recursive)"),
            method => names.shown(method, descriptors),
        }
    }
}
