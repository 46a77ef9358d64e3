//! `adb live`: a recording that is shown while it runs, with a WebSocket in a browser's place.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Child, Command, Ran};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

use crate::adb::{self, Device};
use crate::desk::command;
use crate::settings::{assert_same, settings};

/// How long a test waits for a message, and for one among others.
const LIMIT: Duration = Duration::from_secs(120);

/// A live recording that runs, with the authority and the path of its page's address.
struct Shown {
    child: Child,
    authority: String,
    path: String,
}

impl Shown {
    /// Starts a recording, and waits until it tells its address and the device records.
    fn start(device: &Device, dir: &tempfile::TempDir) -> Shown {
        let words = ["live", "sched", "--open", "none"];
        let mut child = command(device.serial(), dir.path(), &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned())).unwrap();
        // What it says later has a reader, too.
        std::thread::spawn(move || lines.for_each(|line| eprintln!("adb live: {line}")));
        let (authority, path) = address.split_once('/').unwrap();
        support::until("the device to record", || device.soon(&adb::RECORDING));
        Shown { child, authority: authority.to_owned(), path: format!("/{path}") }
    }

    fn connect(&self, origin: &str) -> Option<Follower> {
        let address = format!("ws://{}{}live", self.authority, self.path);
        let mut request = address.into_client_request().unwrap();
        request.headers_mut().insert("Origin", origin.parse().unwrap());
        let stream = TcpStream::connect(&self.authority).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        tungstenite::client(request, stream).ok().map(|(socket, _)| Follower(socket))
    }

    /// The page's own connection.
    fn follow(&self) -> Follower {
        self.connect(&format!("http://{}", self.authority)).unwrap()
    }

    /// The status of a GET of the page with this field `Host`.
    fn status(&self, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        write!(stream, "GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", self.path).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap().to_owned()
    }

    /// Has the page end the recording, and waits for that.
    fn end(self, mut page: Follower) -> Ran {
        page.ask(json!({ "do": "stop" }));
        page.wait_for("the end", |message| message["state"] == "ended");
        self.child.finish()
    }
}

/// The connection of a page.
struct Follower(WebSocket<TcpStream>);

impl Follower {
    fn ask(&mut self, command: Value) {
        self.0.send(Message::text(command.to_string())).unwrap();
    }

    /// Reads messages until one of them is meant: a JSON object, of a batch that before its columns.
    #[track_caller]
    fn wait_for(&mut self, what: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            let message: Value = match self.0.read().unwrap() {
                Message::Text(text) => serde_json::from_str(&text).unwrap(),
                Message::Binary(batch) => {
                    let (length, rest) = batch.split_first_chunk().unwrap();
                    serde_json::from_slice(&rest[..u32::from_le_bytes(*length) as usize]).unwrap()
                }
                _ => continue,
            };
            if is_meant(&message) {
                return message;
            }
            assert_ne!(message["kind"], "error", "while {what} is waited for: {message}");
        }
        panic!("waited {} s for {what}", LIMIT.as_secs());
    }

    /// Sets a marker, and waits until it has come back from the device.
    #[track_caller]
    fn mark(&mut self, name: &str) {
        self.ask(json!({ "do": "mark", "name": name }));
        self.wait_for("the marker", |message| {
            message["strings"].as_array().is_some_and(|strings| strings.contains(&name.into()))
        });
    }

    /// Saves what is kept.
    #[track_caller]
    fn save(&mut self) {
        self.ask(json!({ "do": "save", "format": "dat" }));
        self.wait_for("the file", |message| message["kind"] == "saved");
    }
}

/// The events in the saved file, as text.
fn saved_events(dir: &tempfile::TempDir) -> String {
    let ran =
        support::tracebridge().args(["convert", "live.dat", "-o", "x.txt"]).current_dir(dir.path()).run();
    ran.exited(0);
    std::fs::read_to_string(dir.path().join("x.txt")).unwrap()
}

#[test]
fn a_live_recording_shows_a_marker_saves_it_and_a_page_ends_it() {
    let Some(device) = Device::attached() else { return };
    let before = settings(&device);
    let dir = adb::scratch();
    let shown = Shown::start(&device, &dir);
    assert_eq!((shown.status(&shown.authority), shown.status("evil.example")), ("200".into(), "403".into()));
    assert!(shown.connect("http://evil.example").is_none());
    let mut page = shown.follow();
    let hello = page.wait_for("the first message", |message| message["kind"] == "hello");
    assert_eq!(hello["serial"], device.serial());
    page.mark("it's <b> live");
    page.save();
    let ended = shown.end(page);
    assert_eq!(ended.code(), Some(0), "{}", ended.said());
    assert!(saved_events(&dir).contains("it's <b> live"), "the marker is in the saved file");
    assert_same(&before, &settings(&device), "after the recording");
}

#[test]
fn categories_are_switched_while_a_live_recording_goes_on() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let before = settings(&device);
    let dir = adb::scratch();
    let shown = Shown::start(&device, &dir);
    let mut page = shown.follow();
    let is_list = |message: &Value| message["kind"] == "categories";
    let on = |message: &Value| -> Vec<String> {
        let categories = message["categories"].as_array().unwrap().iter();
        categories
            .filter(|one| one["on"] == true)
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let hello = page.wait_for("the categories", |message| {
        message["categories"].as_array().is_some_and(|categories| !categories.is_empty())
    });
    assert!(hello["can"].as_array().unwrap().contains(&"categories".into()), "{hello}");
    assert_eq!(on(&hello), ["sched"]);
    page.ask(json!({ "do": "categories", "on": ["irq"], "off": ["sched"] }));
    assert_eq!(on(&page.wait_for("the switch", is_list)), ["irq"]);
    let value =
        |file: &str| device.run(&format!("cat /sys/kernel/tracing/events/{file}/enable")).trim().to_owned();
    assert_eq!([value("sched/sched_switch"), value("irq/irq_handler_entry")], ["0", "1"]);
    // A refusal changes nothing, also of what it names rightly.
    page.ask(json!({ "do": "categories", "on": ["sched", "nonsense"], "off": ["irq"] }));
    let refused = page.wait_for("the refusal", |message| message["kind"] == "error");
    assert!(refused["text"].as_str().unwrap().contains("nonsense"), "{refused}");
    assert_eq!(on(&page.wait_for("the categories as they are", is_list)), ["irq"]);
    device.run_programs();
    page.mark("behind the switch");
    page.save();
    let ended = shown.end(page);
    assert_eq!(ended.code(), Some(0), "{}", ended.said());
    let events = saved_events(&dir);
    assert!(
        events.contains("irq_handler_entry:") && events.contains("sched_switch:"),
        "both are in the file"
    );
    let irq = events.find("irq_handler_entry:").unwrap();
    assert!(!events[irq..].contains("sched_switch:"), "one from the switch on, the other until then");
    assert_same(&before, &settings(&device), "after the recording");
}

#[test]
fn a_live_recording_goes_on_behind_a_lost_connection_and_shows_the_gap() {
    let Some(device) = Device::attached() else { return };
    if !device.serial().contains(':') {
        return support::skip("device", "only a device on a network is disconnected without hands");
    }
    let before = settings(&device);
    let dir = adb::scratch();
    let shown = Shown::start(&device, &dir);
    let mut page = shown.follow();
    page.mark("before");
    Command::new("adb").args(["disconnect", device.serial()]).run().exited(0);
    page.wait_for("the loss", |message| message["state"] == "no-connection");
    adb::connect(device.serial());
    let gap = page.wait_for("the gap", |message| message["kind"] == "gap");
    assert!(gap["from_ns"].as_u64() < gap["to_ns"].as_u64(), "{gap}");
    page.mark("behind");
    page.save();
    let ended = shown.end(page);
    assert_eq!(ended.code(), Some(3), "{}", ended.said());
    assert!(ended.said().contains("the connection was lost 1 times"), "{}", ended.said());
    let events = saved_events(&dir);
    assert!(events.contains("before") && events.contains("behind"), "both parts are in the file");
    assert_same(&before, &settings(&device), "after the recording");
}

#[test]
fn a_killed_desk_leaves_the_device_as_it_was() {
    let Some(device) = Device::attached_in_full_run() else { return };
    let before = settings(&device);
    let dir = adb::scratch();
    let mut shown = Shown::start(&device, &dir);
    shown.child.kill().unwrap();
    shown.child.wait().unwrap();
    device.wait_until("the recorder's end", "! ps | grep -q '[r]ecord -o -'");
    assert_same(&before, &settings(&device), "after the desk was killed");
}
