//! The difference of two sets of spans.

use std::collections::BTreeMap;

use serde::Serialize;

use super::explanation::{CausePart, Explanation};
use super::party::Party;
use crate::text::duration;

/// A cause that takes longer, or less long, in the one set than in the other. Times are ns a span.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub(crate) struct CauseChange {
    /// `lock: main, disk: pool-2-thread-1`.
    pub path: String,
    pub subject: String,
    pub old_ns: f64,
    pub new_ns: f64,
    pub delta_ns: f64,
}

/// The time of a party in both sets, ns a span.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub(crate) struct PartyChange {
    pub party: Party,
    pub old_ns: f64,
    pub new_ns: f64,
    pub delta_ns: f64,
}

/// The difference of two sets of spans. The differences of all causes add up to that of the spans.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub(crate) struct Difference {
    pub old_spans: usize,
    pub new_spans: usize,
    /// The mean length of a span, ns.
    pub old_ns: f64,
    pub new_ns: f64,
    pub delta_ns: f64,
    /// In the order of parties; the differences add up to that of the spans.
    pub parties: Vec<PartyChange>,
    /// The largest changes first.
    pub causes: Vec<CauseChange>,
}

/// The threads and causes of a part by their names: thread ids differ from run to run.
fn key(part: &CausePart) -> (String, String) {
    (part.path_text(), part.subject.clone())
}

/// How `new` differs from `old`.
pub(crate) fn difference(new: &[Explanation], old: &[Explanation]) -> Difference {
    let mean = |total: u64, set: &[Explanation]| total as f64 / set.len().max(1) as f64;
    let length = |set: &[Explanation]| mean(set.iter().map(|one| one.duration).sum(), set);
    let mut totals: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
    let mut of_parties: BTreeMap<Party, [u64; 2]> = BTreeMap::new();
    for (at, set) in [old, new].into_iter().enumerate() {
        for part in set.iter().flat_map(|one| &one.causes) {
            totals.entry(key(part)).or_default()[at] += part.ns;
            of_parties.entry(part.party).or_default()[at] += part.ns;
        }
    }
    let change = |((path, subject), [old_ns, new_ns]): ((String, String), [u64; 2])| {
        let old_ns = mean(old_ns, old);
        let new_ns = mean(new_ns, new);
        CauseChange { path, subject, old_ns, new_ns, delta_ns: new_ns - old_ns }
    };
    let of_party = |(party, [old_ns, new_ns]): (Party, [u64; 2])| {
        let old_ns = mean(old_ns, old);
        let new_ns = mean(new_ns, new);
        PartyChange { party, old_ns, new_ns, delta_ns: new_ns - old_ns }
    };
    let mut causes: Vec<CauseChange> = totals.into_iter().map(change).collect();
    causes.sort_by(|a, b| b.delta_ns.abs().total_cmp(&a.delta_ns.abs()).then_with(|| a.path.cmp(&b.path)));
    let old_ns = length(old);
    let new_ns = length(new);
    Difference {
        old_spans: old.len(),
        new_spans: new.len(),
        old_ns,
        new_ns,
        delta_ns: new_ns - old_ns,
        parties: of_parties.into_iter().map(of_party).collect(),
        causes,
    }
}

impl Difference {
    /// The largest changes in lines for people.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let signed = |ns: f64| {
            let sign = if ns < 0.0 { "-" } else { "+" };
            format!("{sign}{}", duration(ns.abs().round() as u64))
        };
        let ms = |ns: f64| duration(ns.round() as u64);
        let spans =
            |count: usize| if count == 1 { "1 span".to_owned() } else { format!("mean of {count} spans") };
        let mut lines = vec![format!(
            "{} now ({}), {} before ({}): {}",
            ms(self.new_ns),
            spans(self.new_spans),
            ms(self.old_ns),
            spans(self.old_spans),
            signed(self.delta_ns)
        )];
        let changed = self.parties.iter().filter(|change| change.delta_ns.abs() >= 1000.0);
        let parties = changed.map(|change| format!("{} {}", change.party.words(), signed(change.delta_ns)));
        let parties: Vec<String> = parties.collect();
        if !parties.is_empty() {
            lines.push(parties.join(" · "));
        }
        let mut shown = 0.0;
        let changed: Vec<&CauseChange> =
            self.causes.iter().filter(|change| change.delta_ns.abs() >= 1.0).collect();
        for change in changed.iter().take(limit) {
            shown += change.delta_ns;
            let subject =
                if change.subject.is_empty() { String::new() } else { format!(" ({})", change.subject) };
            lines.push(format!(
                "{:>12}  {}{subject}: {} before, {} now",
                signed(change.delta_ns),
                change.path,
                ms(change.old_ns),
                ms(change.new_ns)
            ));
        }
        if changed.len() > limit {
            let rest = changed.len() - limit;
            lines.push(format!("{:>12}  {rest} smaller changes", signed(self.delta_ns - shown)));
        }
        lines
    }
}
