//! The app's own code, monitors, and what would help.

use super::*;
use crate::timeline::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineSink};

/// A call: class, method, file, and when, µs.
type PlacedCall = (&'static str, &'static str, &'static str, std::ops::Range<u64>);

const MAIN_ACTIVITY: &str = "com.example.feed.MainActivity";
const SETTINGS: &str = "com.example.feed.SettingsStore";

/// Calls of the main thread, which lie within each other or beside each other.
fn push_calls(builder: &mut TrackBuilder<ModelCollector>, calls: &[PlacedCall]) {
    let name = "main".into();
    let tid = Some(MAIN);
    let tgid = Some(process(MAIN));
    let thread = MethodThread { index: 0, tid, tgid, name, trace_id: 1, doubt: None, edge_cost_ns: 0 };
    builder.method_thread(&thread).unwrap();
    let mut edges = Vec::new();
    for (number, (class, name, file, during)) in calls.iter().enumerate() {
        let method = MethodId(number as u32);
        let line = (*class == SETTINGS).then_some(57);
        builder.method(method, &MethodName { class, name, signature: "()V", file, line }).unwrap();
        for (us, kind) in [(during.start, EdgeKind::Enter), (during.end, EdgeKind::Exit)] {
            edges.push(Edge { ts: Timestamp(us * 1000), cpu: None, method, kind });
        }
    }
    edges.sort_by_key(|edge| edge.ts);
    builder.edges(0, &edges).unwrap();
}

/// The main thread runs from 0 to 100 ms, in the slice `work` from 1 ms on.
fn running(calls: &[PlacedCall]) -> Model {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..99_000, 0, MAIN, "work");
    lines.switch(100_000, 0, MAIN, "S", IDLE);
    lines.model_with(KeptTime::default(), |builder| push_calls(builder, calls))
}

fn explained(model: &Model) -> Explanation {
    model.explain(&model.spans(&Question::Slice("work".into())).unwrap()[0])
}

fn settings() -> Vec<PlacedCall> {
    vec![
        ("android.app.Activity", "performCreate", "", 2_000..98_000),
        (MAIN_ACTIVITY, "onCreate", "MainActivity.kt", 3_000..97_000),
        (SETTINGS, "load", "SettingsStore.kt", 10_000..90_000),
        ("com.google.gson.Gson", "fromJson", "", 11_000..89_000),
        ("com.google.gson.JsonReader", "nextString", "", 12_000..70_000),
        // A callback of the library to the app: too short to be the headline.
        ("com.example.feed.Dates", "parse", "Dates.kt", 71_000..72_000),
        ("androidx.core.Views", "inflate", "", 91_000..96_000),
    ]
}

#[test]
fn running_code_is_named_by_the_apps_own_method_and_not_by_the_innermost_one() {
    let model = running(&settings());
    let lines = lines(&explained(&model), 10);
    assert_eq!(
        lines[1..=4],
        [
            "your code 100 % · not recorded 0 %",
            "of it 80.0 ms in SettingsStore.load (SettingsStore.kt:57, called by MainActivity.onCreate), 14.0 ms in \
             MainActivity.onCreate (MainActivity.kt, called by Activity.performCreate)",
            "     80.0 ms   82 %  ran its own code in SettingsStore.load (SettingsStore.kt:57, called by MainActivity.onCreate), \
             there Gson.fromJson; most of it in JsonReader.nextString",
            "     14.0 ms   14 %  ran its own code in MainActivity.onCreate (MainActivity.kt, called by \
             Activity.performCreate), there Views.inflate 5.00 ms",
        ],
        "{lines:#?}"
    );
    let json = serde_json::to_value(ExplanationJson::new(&explained(&model))).unwrap();
    assert_eq!(
        json["causes"][0]["own"],
        serde_json::json!({
            "name": "com.example.feed.SettingsStore.load", "file": "SettingsStore.kt", "line": 57,
            "caller": {"name": "com.example.feed.MainActivity.onCreate", "file": "MainActivity.kt"},
            "callee": {"name": "com.google.gson.Gson.fromJson"},
        })
    );
    assert_eq!(json["causes"][0]["subject"], "com.google.gson.JsonReader.nextString");
    assert_eq!(
        (&json["savings"][0]["saves_ns"], &json["savings"][0]["without_ns"]),
        (&80_000_000.into(), &18_000_000.into())
    );
}

#[test]
fn the_packages_that_the_user_names_alone_are_the_apps() {
    let mut model = running(&settings());
    model.app_packages = vec!["com.google.gson".into()];
    let lines = lines(&explained(&model), 10);
    let begin = "     58.0 ms   59 %  ran its own code in JsonReader.nextString (called by Gson.fromJson)";
    assert_eq!(lines[3], begin, "{lines:#?}");
}

#[test]
fn of_slices_those_of_the_platform_are_not_the_apps() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).slice(1000..99_000, 0, MAIN, "work");
    lines.slice(2000..98_000, 0, MAIN, "activityStart").slice(3000..97_000, 0, MAIN, "loadSettings");
    lines.slice(4000..96_000, 0, MAIN, "inflate").slice(5000..6000, 0, MAIN, "tiny");
    lines.switch(100_000, 0, MAIN, "S", IDLE);
    let said = super::lines(&explained(&lines.model()), 10);
    assert!(said[2].ends_with("ran its own code in loadSettings (within work), there inflate"), "{said:#?}");
}

const MONITOR: &str = "monitor contention with owner worker (101) at void com.example.ImageLoader.load(int)\
                       (ImageLoader.java:57) waiters=0 blocking from android.graphics.Bitmap \
                       com.example.ImageCache.get(int)(ImageCache.java:31)";

#[test]
fn a_wait_for_a_monitor_names_both_methods_also_where_it_is_followed() {
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(500, 1, IDLE, "R", WORKER);
    lines.slice(1000..90_000, 0, MAIN, "work").slice(2000..80_500, 0, MAIN, MONITOR);
    lines.slice(1500..85_000, 1, WORKER, "decode");
    lines.switch(3000, 0, MAIN, "S", IDLE).waking(80_000, 1, WORKER, MAIN);
    lines.switch(80_000, 0, IDLE, "R", MAIN).switch(95_000, 0, MAIN, "S", IDLE);
    let explained = explained(&lines.model());
    let printed = super::lines(&explained, 10);
    let blocked = "of it 77.0 ms in ImageCache.get (ImageCache.java:31), blocked by ImageLoader.load \
                   (ImageLoader.java:57) of \"worker\", ";
    assert!(printed[2].starts_with(blocked), "{printed:#?}");
    assert!(
        printed[3].ends_with(
            "87 %  waited in ImageCache.get (ImageCache.java:31) for a lock that \"worker\" held in ImageLoader.load \
             (ImageLoader.java:57), which ran its own code in decode"
        ),
        "{printed:#?}"
    );
    let json = serde_json::to_value(ExplanationJson::new(&explained)).unwrap();
    let hop = &json["causes"][0]["path"][0];
    assert_eq!(hop["lock"]["holder"]["line"], 57, "{hop}");
    assert_eq!(hop["lock"]["waiter"]["method"], "com.example.ImageCache.get", "{hop}");
}

/// Two workers are started one after the other, and joined in the same order.
#[test]
fn of_two_workers_that_are_joined_the_one_that_ends_first_saves_nothing() {
    let long = Tid(102);
    let mut lines = Lines::default();
    lines.switch(500, 0, IDLE, "R", MAIN).switch(600, 1, IDLE, "R", WORKER).switch(600, 2, IDLE, "R", long);
    lines.switch(700, 1, WORKER, "S", IDLE).switch(700, 2, long, "S", IDLE);
    lines.slice(1000..100_000, 0, MAIN, "work");
    lines.waking(2000, 0, MAIN, WORKER).switch(2010, 1, IDLE, "R", WORKER);
    lines.waking(2100, 0, MAIN, long).switch(2110, 2, IDLE, "R", long);
    lines.switch(3000, 0, MAIN, "S", IDLE);
    lines.waking(60_000, 1, WORKER, MAIN).switch(60_000, 0, IDLE, "R", MAIN);
    // Without a sign that it goes on, the second wait would be a part of the first.
    lines.slice(60_020..60_050, 0, MAIN, "joined").switch(60_100, 0, MAIN, "S", IDLE);
    lines.waking(99_000, 2, long, MAIN).switch(99_000, 0, IDLE, "R", MAIN);
    lines.switch(101_000, 0, MAIN, "S", IDLE);
    let explained = explained(&lines.model());
    let saves: Vec<_> =
        explained.savings.iter().map(|one| (one.ns / 1000, one.saves_ns / 1000, &one.beside)).collect();
    let beside = Some(explanation::Beside { thread: "t102".into(), tid: long, ends_later_ns: 39_000_000 });
    assert_eq!(saves[..2], [(57_000, 0, &beside), (38_900, 38_900, &None)]);
    let printed = super::lines(&explained, 10).join("\n");
    let words = "without the first cause 99.0 ms (nothing is won: \"t102\" ran beside it, and ended 39.0 ms later), \
                 without the second 60.1 ms, without the third";
    assert!(printed.contains(words), "{printed}");
}
