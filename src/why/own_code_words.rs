//! The app's own code in words: the own frame, who called it, and what it called.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::own_frame::{AppFrame, NamedOwnFrame, short_method};
use crate::text::duration;

/// Innermost frames that a line names.
const LEAVES: usize = 3;

/// The time in one own frame, by the frames around it and in it.
pub(super) struct OwnCode<'a> {
    frame: &'a AppFrame,
    ns: u64,
    samples: u64,
    callers: BTreeMap<&'a AppFrame, u64>,
    callees: BTreeMap<&'a AppFrame, u64>,
    /// By the name of the innermost frame: ns and samples.
    leaves: BTreeMap<&'a str, (u64, u64)>,
}

impl<'a> OwnCode<'a> {
    pub fn new(own: &'a NamedOwnFrame) -> OwnCode<'a> {
        let frame = &own.frame;
        OwnCode {
            frame,
            ns: 0,
            samples: 0,
            callers: BTreeMap::new(),
            callees: BTreeMap::new(),
            leaves: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, own: &'a NamedOwnFrame, leaf: &'a str, ns: u64, samples: u64) {
        self.ns += ns;
        self.samples += samples;
        if let Some(caller) = &own.caller {
            *self.callers.entry(caller).or_default() += ns;
        }
        if let Some(callee) = &own.callee {
            *self.callees.entry(callee).or_default() += ns;
        }
        let leaf = self.leaves.entry(leaf).or_default();
        leaf.0 += ns;
        leaf.1 += samples;
    }

    pub fn is_method(&self) -> bool {
        self.frame.is_method()
    }

    /// `SettingsStore.load (SettingsStore.java, called by MainActivity.onCreate)`.
    pub fn place(&self) -> String {
        let by = largest(&self.callers).map(|(caller, _)| {
            let word = if caller.is_slice() { "within" } else { "called by" };
            format!("{word} {}", caller.short())
        });
        let place: Vec<String> = self.frame.source().into_iter().chain(by).collect();
        if place.is_empty() {
            return self.frame.short().to_owned();
        }
        format!("{} ({})", self.frame.short(), place.join(", "))
    }

    /// ` in SettingsStore.load (called by MainActivity.onCreate), there Gson.fromJson; most of it in
    /// JsonReader.nextString`.
    pub fn text(&self) -> String {
        let mut text = format!(" in {}", self.place());
        let callee = largest(&self.callees);
        if let Some((callee, ns)) = callee {
            let time = if self.is_most(ns) { String::new() } else { format!(" {}", duration(ns)) };
            text.push_str(&format!(", there {}{time}", callee.short()));
        }
        let leaves = self.leaf_words(callee.map(|(callee, _)| callee));
        text + &leaves
    }

    /// So large a part of the own frame that its time need not be stated.
    fn is_most(&self, ns: u64) -> bool {
        ns >= self.ns - self.ns / LEAST_REST
    }

    fn leaf_words(&self, callee: Option<&AppFrame>) -> String {
        let mut leaves: Vec<(&str, u64, u64)> =
            self.leaves.iter().map(|(name, (ns, samples))| (*name, *ns, *samples)).collect();
        leaves.sort_by_key(|(_, ns, samples)| (Reverse(*samples), Reverse(*ns)));
        let short = |name| if self.frame.is_method() { short_method(name) } else { name };
        let own_or_callee =
            |name: &str| self.frame.name == name || callee.is_some_and(|callee| callee.name == name);
        match leaves[..] {
            [(name, ..)] if own_or_callee(name) && self.samples > 0 => format!(" ({} samples)", self.samples),
            [(name, ..)] if own_or_callee(name) => String::new(),
            _ if self.samples > 0 => {
                let sampled = leaves.iter().take(LEAVES).filter(|(.., samples)| *samples > 0).enumerate();
                let sampled = sampled.map(|(at, (name, _, samples))| {
                    let percent = *samples as f64 * 100.0 / self.samples as f64;
                    let of = if at == 0 { format!(" of {} samples", self.samples) } else { String::new() };
                    format!("{percent:.0} %{of} in {}", short(name))
                });
                format!("; {}", sampled.collect::<Vec<_>>().join(", "))
            }
            [(name, ns, _), ..] if ns > self.ns / 2 => {
                if own_or_callee(name) {
                    String::new()
                } else {
                    format!("; most of it in {}", short(name))
                }
            }
            _ => {
                let named = leaves.iter().take(LEAVES);
                let named = named.map(|(name, ns, _)| format!("{} {}", short(name), duration(*ns)));
                format!("; innermost {}", named.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// One part in this many of a time may be left unsaid.
const LEAST_REST: u64 = 20;

fn largest<'a>(times: &BTreeMap<&'a AppFrame, u64>) -> Option<(&'a AppFrame, u64)> {
    times.iter().max_by_key(|(_, ns)| **ns).map(|(frame, ns)| (*frame, *ns))
}
