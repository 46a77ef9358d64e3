//! `record --live`: this machine's recording in a page, with the flags of the page and its markers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use support::{Child, WAIT_LIMIT, tracebridge};

use crate::tracefs_fixture::Instance;

fn show(instance: &Instance, dir: &std::path::Path, args: &[&str]) -> Child {
    let name = instance.dir().file_name().unwrap().to_str().unwrap();
    let mut command = tracebridge();
    // Where the test has mounted one, it is at no place where the recorder would look for it.
    command.args(["record", "--live", "--open", "none", "--tracefs"]).arg(instance.tracefs());
    command.args(["--instance", name, "--state-dir", "."]).args(args);
    command.arg("sched/sched_process_exit").current_dir(dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_condition_of_a_recording_of_this_machine_writes_a_file_and_ends_it() {
    let Some(instance) = Instance::planned("shown") else { return };
    let dir = support::tempdir();
    let mut child =
        show(&instance, dir.path(), &["--until", "slice shown > 1ms", "--after", "100ms", "--stop"]);
    let printed = child.collect_stderr();
    printed.line_with("http://127.0.0.1:");
    let is_written = || {
        let files = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        files.into_iter().any(|name| name.to_string_lossy().ends_with(".pftrace"))
    };
    support::until("a slice to write a file", || {
        let marker = instance.dir().join("trace_marker");
        let _ = fs::write(&marker, "B|7|shown");
        std::thread::sleep(Duration::from_millis(2));
        let _ = fs::write(&marker, "E|7");
        assert!(!printed.text().contains("tracebridge:"), "{printed}");
        is_written()
    });
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(0 | 3)), "{status}: {printed}");
    assert!(!instance.dir().exists(), "the instance is removed");
}

#[test]
fn a_marker_of_the_page_comes_back_with_its_time() {
    let Some(instance) = Instance::planned("marked") else { return };
    let dir = support::tempdir();
    let mut child = show(&instance, dir.path(), &["--keep", "5s"]);
    let printed = child.collect_stderr();
    let line = printed.line_with("http://127.0.0.1:");
    let (host, token) = line.split_once("http://").unwrap().1.split_once('/').unwrap();
    let mut page = Page::open(host, token.trim_end_matches('/'));
    page.message_with("\"kind\":\"numbers\"");
    page.send(r#"{"do":"mark","name":"-x </script>"}"#);
    let mark: serde_json::Value = serde_json::from_str(&page.message_with("\"kind\":\"mark\"")).unwrap();
    assert_eq!(mark["name"], "-x </script>");
    assert!(mark["at_ns"].is_u64(), "{mark}");
    child.send(Signal::SIGINT);
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(0 | 3)), "{status}: {printed}");
}

/// A browser's end of a page's WebSocket.
struct Page(TcpStream);

impl Page {
    fn open(host: &str, token: &str) -> Page {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
        let request = format!(
            "GET /{token}/live HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.extend(Page::take(&mut stream, 1));
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
        Page(stream)
    }

    fn take(stream: &mut TcpStream, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Sends a short text. Its mask is 0.
    fn send(&mut self, text: &str) {
        let len = u8::try_from(text.len()).unwrap();
        assert!(len < 126);
        self.0.write_all(&[&[0x81, 0x80 | len, 0, 0, 0, 0], text.as_bytes()].concat()).unwrap();
    }

    /// Waits for a text message that contains `words`.
    fn message_with(&mut self, words: &str) -> String {
        loop {
            let head = Page::take(&mut self.0, 2);
            let len = match head[1] & 127 {
                126 => u16::from_be_bytes(Page::take(&mut self.0, 2).try_into().unwrap()).into(),
                127 => u64::from_be_bytes(Page::take(&mut self.0, 8).try_into().unwrap()) as usize,
                len => usize::from(len),
            };
            let payload = Page::take(&mut self.0, len);
            let text = String::from_utf8_lossy(&payload);
            if head[0] & 15 == 1 && text.contains(words) {
                return text.into_owned();
            }
        }
    }
}
