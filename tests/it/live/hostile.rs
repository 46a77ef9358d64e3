//! Streams that no recorder sends: each is an error with its place, and memory stays bounded.

use support::recorder_streams::{DatParts, frame, marker_stream};
use support::scenario::{PID, Random};
use tracebridge::internals::live::Live;

use super::feed::{Told, launch, options};

#[test]
fn bytes_that_are_no_stream_are_an_error_that_names_their_place() {
    let parts = DatParts::of(&launch());
    let begin = parts.begin();
    let page = vec![0; parts.page_size];
    let at = begin.len();
    let cases: Vec<(&str, Vec<u8>, usize)> = vec![
        ("not a stream", b"GET / HTTP/1.1\r\n".to_vec(), 0),
        ("sound head", [b"TBSTRM1\n", &frame(b'P', 0, &page)[..]].concat(), 8),
        ("sound head", [b"TBSTRM1\n", &frame(b'H', 0, &[0; 31])[..]].concat(), 17),
        ("second head", [&begin[..], &frame(b'H', 0, &[0; 64])].concat(), at),
        ("no frame", [&begin[..], b"Xaaaabbbb"].concat(), at),
        ("no frame", [&begin[..], b"P\0\0\0\0\xff\xff\xff\xff"].concat(), at),
        ("part of a page", [&begin[..], &frame(b'P', 0, &page[1..])].concat(), at),
        ("unknown CPU", [&begin[..], &frame(b'P', 4000, &page)].concat(), at),
        ("without its time", [&begin[..], &frame(b'R', 0, &[0; 7])].concat(), at),
        ("without an offset", [&begin[..], &frame(b'W', 0, &[0; 7])].concat(), at + 9),
        ("outside of the head", [&begin[..], &frame(b'W', 0, &[0xff; 9])].concat(), at + 9),
        ("outside of the head", [&begin[..], b"W\0\0\0\0\0\0\0\x0f"].concat(), at),
        ("longer than its place", [&begin[..], &frame(b'E', 0, &vec![b' '; 1 << 20])].concat(), at),
    ];
    for (what, bytes, place) in cases {
        for size in [1, 7, bytes.len()] {
            let mut live = Live::new(options(1));
            let error = bytes.chunks(size).find_map(|piece| live.feed(piece).err()).unwrap();
            let text = error.to_string();
            assert!(text.contains(what) && text.contains(&format!("at byte {place}:")), "{what}: {text}");
            let again = live.feed(b"P").unwrap_err().to_string();
            assert_eq!(again, text, "what follows is not taken for frames");
        }
    }
}

#[test]
fn a_head_without_event_formats_says_so() {
    let parts = DatParts::of(&launch());
    let mut begin = parts.begin();
    let formats = begin.windows(11).position(|window| window == b"header_page").unwrap();
    begin[formats] = b'X';
    let error = Live::new(options(1)).feed(&begin).unwrap_err().to_string();
    assert!(error.contains("header_page") && error.contains("head of the recorder's stream"), "{error}");
}

#[test]
fn any_bytes_behind_a_head_are_taken_or_refused() {
    let parts = DatParts::of(&launch());
    let stream = parts.stream(&mut Random(1)).concat();
    let begin = parts.begin().len();
    let mut refused = 0;
    for seed in 0..support::rounds(40, 200) {
        let mut random = Random(seed * 2 + 1);
        let mut bytes = stream.clone();
        for _ in 0..random.range(1, 400) {
            let at = random.range(begin as u64, bytes.len() as u64) as usize;
            bytes[at] = random.range(0, 256) as u8;
        }
        let mut live = Live::new(options(1));
        let mut told = Told::default();
        for piece in bytes.chunks(random.range(100, 100_000) as usize) {
            if live.feed(piece).is_err() {
                refused += 1;
                break;
            }
            told.add(live.batch(false));
        }
        told.add(live.batch(true));
        let _ = live.kept().dat();
    }
    assert!(refused > 0, "a damaged frame is an error");
}

/// Markers of threads, in rounds of some 2 ms.
fn markers(events: impl Iterator<Item = (i32, String)>) -> Vec<Vec<u8>> {
    marker_stream(0, events, 2_000_000)
}

/// The sizes of the batches, bytes, and the messages about what was given up.
fn follow(pieces: &[Vec<u8>]) -> (Vec<usize>, Told) {
    let mut live = Live::new(options(1));
    let mut sizes = Vec::new();
    let mut told = Told::default();
    for piece in pieces {
        live.feed(piece).unwrap();
        let messages = live.batch(false);
        sizes.extend(messages.iter().filter_map(|message| match message {
            tracebridge::internals::live::LiveMessage::Batch(bytes) => Some(bytes.len()),
            _ => None,
        }));
        told.add(messages);
    }
    told.add(live.batch(true));
    (sizes, told)
}

#[test]
fn what_never_ends_is_given_up_and_told() {
    let threads = (0..120_000).map(|n| (PID + n, format!("B|{PID}|begun")));
    let names = (0..120_000).map(|n| (PID, format!("S|{PID}|name {n}|{n}")));
    let one_thread = (0..120_000).map(|_| (PID, format!("B|{PID}|begun")));
    let one_name = (0..120_000).map(|n| (PID, format!("S|{PID}|name|{n}")));
    for (what, pieces) in [
        ("threads", markers(threads)),
        ("names", markers(names)),
        ("one thread", markers(one_thread)),
        ("one name", markers(one_name)),
    ] {
        let (sizes, told) = follow(&pieces);
        // The batches do not grow: the second half of them is no larger than the first.
        let half = sizes.len() / 2;
        assert!(half > 2, "{what}");
        let largest = |sizes: &[usize]| sizes.iter().copied().max().unwrap();
        assert!(largest(&sizes[half..]) < 2 * largest(&sizes[..half]), "{what}: {sizes:?}");
        let errors = told.of_kind("error");
        let is_told = |text: &&&serde_json::Value| text["text"].as_str().unwrap().contains("given up");
        assert_eq!(errors.iter().filter(is_told).count(), 1, "{what}: {errors:?}");
    }
}

#[test]
fn without_rounds_a_batch_has_everything_that_has_come() {
    let parts = DatParts::of(&super::feed::frames(10));
    let mut live = Live::new(options(3600));
    live.feed(&parts.begin()).unwrap();
    let mut told = Told::default();
    let mut events = 0;
    for (number, page) in parts.cpus[0].iter().enumerate() {
        live.feed(&frame(b'P', 0, page)).unwrap();
        told.add(live.batch(false));
        let now = told.batches.iter().map(|batch| batch.number("events")).sum();
        // The first half second might be one before the first round.
        assert!(now > events || number < 5, "the events of page {number}");
        events = now;
    }
    assert!(told.batches.len() > 3);
}
