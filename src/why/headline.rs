//! The sentence about a span's places: the app's own code and the monitors that held its thread longest.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cause::Cause;
use super::explanation::CausePart;
use super::lock_marker::{LockMarker, without_waiters};
use super::own_code_words::OwnCode;
use crate::text::duration;

/// Places that the sentence names.
const PLACES: usize = 2;
/// A place that holds less than one part in this many of the span is not named.
const LEAST_SHARE: u64 = 20;

/// A place in the app that held the span's own thread.
enum Place<'a> {
    Code(OwnCode<'a>),
    Monitor(LockMarker<'a>),
}

/// `of it 1290 ms in SettingsStore.load (called by MainActivity.onCreate), 117 ms in ImageCache.get
/// (ImageCache.java:31), blocked by ImageLoader.load (ImageLoader.java:57) of "pool-2-thread-1"`. `None`
/// where neither a method nor a monitor is known: then the causes alone say as much. `span_ns` is the length
/// of the span, or of all.
pub(super) fn headline(causes: &[CausePart], span_ns: u64) -> Option<String> {
    let mut places: BTreeMap<(bool, Cow<'_, str>), (u64, Place<'_>)> = BTreeMap::new();
    for part in causes {
        if let ([_], Some(own)) = (&part.path[..], &part.own) {
            let key = (false, own.frame.name.as_str().into());
            let (ns, place) = places.entry(key).or_insert_with(|| (0, Place::Code(OwnCode::new(own))));
            *ns += part.ns;
            if let Place::Code(code) = place {
                code.add(own, &part.subject, part.ns, part.samples);
            }
        } else if let Some((key, marker)) = monitor(part) {
            places.entry((true, key)).or_insert((0, Place::Monitor(marker))).0 += part.ns;
        }
    }
    let mut places: Vec<(u64, Place<'_>)> = places.into_values().collect();
    places.sort_by_key(|(ns, _)| Reverse(*ns));
    places.truncate(PLACES);
    places.retain(|(ns, _)| *ns >= (span_ns / LEAST_SHARE).max(1));
    let says_more = |place: &Place<'_>| match place {
        Place::Code(code) => code.is_method(),
        Place::Monitor(_) => true,
    };
    if !places.iter().any(|(_, place)| says_more(place)) {
        return None;
    }
    let texts = places.iter().map(|(ns, place)| {
        let text = match place {
            Place::Code(code) => code.place(),
            Place::Monitor(marker) => marker.blocked(),
        };
        format!("{} in {text}", duration(*ns))
    });
    Some(format!("of it {}", texts.collect::<Vec<_>>().join(", ")))
}

/// The monitor for which the span's own thread waits, and its text without the number of other waiting
/// threads.
fn monitor(part: &CausePart) -> Option<(Cow<'_, str>, LockMarker<'_>)> {
    let text = match &part.path[..] {
        [hop] if hop.cause == Cause::Lock => &part.subject,
        [hop, _, ..] => &hop.about,
        _ => return None,
    };
    Some((without_waiters(text), LockMarker::parse(text)?))
}
