//! A stream of `record -o - --live` in pieces: whatever the bytes are, they are refused, or batches of them
//! lie within their columns and what is kept is a recording.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::internals::live::{Live, LiveMessage, LiveOptions};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, stream)) = bytes.split_first() else { return };
    let triggers = ["frame.overrun > 1ms", "slice * > 1ns", "launch"];
    let triggers = triggers.iter().filter_map(|text| text.parse().ok()).collect();
    let keep = Duration::from_millis(u64::from(*first));
    let mut live = Live::new(LiveOptions { keep, app: Some("a".into()), triggers, title: "x".into() });
    let mut messages = Vec::new();
    for piece in stream.chunks(usize::from(*first).max(1) * 16) {
        let fed = live.feed(piece);
        messages.extend(live.batch(false));
        if fed.is_err() {
            break;
        }
        if first % 64 == 63 {
            live.connection_lost("lost");
        }
    }
    messages.extend(live.batch(true));
    for message in messages {
        match message {
            LiveMessage::Batch(batch) => check(&batch),
            LiveMessage::Text(text) => drop(serde_json::from_str::<serde_json::Value>(&text).expect("JSON")),
            LiveMessage::Triggered(_) => {}
        }
    }
    if let Ok(dat) = live.kept().dat() {
        TraceDat::open(&dat).expect("what is kept is a recording");
    }
});

fn check(batch: &[u8]) {
    let (len, rest) = batch.split_first_chunk().expect("the length of the text");
    let (head, columns) = rest.split_at(u32::from_le_bytes(*len) as usize);
    let head: serde_json::Value = serde_json::from_slice(head).expect("JSON");
    assert!(head["from_ns"].as_u64() <= head["to_ns"].as_u64());
    for track in head["tracks"].as_array().expect("tracks") {
        assert!(track["offset"].as_u64().is_some_and(|offset| (offset as usize) < columns.len()));
        assert!(track["open"].as_u64() <= track["count"].as_u64());
    }
}
