use std::io::Read;
use std::sync::mpsc;

use tungstenite::client::IntoClientRequest;
use tungstenite::{Error, Message, WebSocket};

use super::*;
use crate::live::kept::KeptError;

/// How long a test waits for what has to come.
const LIMIT: Duration = Duration::from_secs(60);

/// A recording that keeps a page and hands its commands on.
struct TestHost(Mutex<mpsc::Sender<LiveCommand>>);

impl LiveHost for TestHost {
    fn kept_page(&self, from_ns: Option<u64>, to_ns: Option<u64>) -> Result<Vec<u8>, KeptError> {
        if from_ns == Some(13) {
            Err(KeptError::Nothing)
        } else {
            Ok(format!("kept {from_ns:?} {to_ns:?}").into())
        }
    }

    fn command(&self, command: LiveCommand) {
        self.0.lock().unwrap().send(command).unwrap();
    }
}

fn server() -> (LiveServer, mpsc::Receiver<LiveCommand>) {
    let (sender, receiver) = mpsc::channel();
    let host = Arc::new(TestHost(Mutex::new(sender)));
    (LiveServer::start(0, LIMIT, host).unwrap(), receiver)
}

/// The answer to this text, which is sent as it is.
fn raw(server: &LiveServer, request: &[u8]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.shared.port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // The server may have refused before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The answer to a GET of what is behind the number, with the right field `Host` and these further fields.
fn get(server: &LiveServer, below: &str, fields: &str) -> String {
    let SharedServer { port, token, .. } = &*server.shared;
    raw(server, format!("GET /{token}/{below} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n").as_bytes())
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// The fields with which a browser asks for a WebSocket, for a page of this origin.
fn socket_fields(origin: &str) -> String {
    format!(
        "Origin: {origin}\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
}

fn connect(server: &LiveServer) -> Result<WebSocket<TcpStream>, Error> {
    let SharedServer { port, token, .. } = &*server.shared;
    let mut request = format!("ws://127.0.0.1:{port}/{token}/live").into_client_request()?;
    request.headers_mut().insert("Origin", format!("http://127.0.0.1:{port}").parse().unwrap());
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let client = tungstenite::client(request, stream);
    client.map(|(socket, _)| socket).map_err(|error| match error {
        tungstenite::HandshakeError::Failure(error) => error,
        interrupted @ tungstenite::HandshakeError::Interrupted(_) => panic!("{interrupted}"),
    })
}

fn text(socket: &mut WebSocket<TcpStream>) -> String {
    socket.read().unwrap().into_text().unwrap().to_string()
}

#[test]
fn the_page_of_the_number_alone_is_served_and_no_other_origin_may_read_it() {
    let (server, _commands) = server();
    let port = server.shared.port;
    let page = get(&server, "", "");
    assert_eq!(status(&page), "200");
    let policy =
        format!("default-src 'none'; connect-src 'self' ws://127.0.0.1:{port} ws://localhost:{port};");
    assert!(page.contains(&policy) && !page.contains("@TRACEBRIDGE_DATA@"));
    let head = page.split("\r\n\r\n").next().unwrap();
    for field in [
        "Cross-Origin-Resource-Policy: same-origin",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
    ] {
        assert!(head.contains(field), "{head}");
    }
    assert!(!head.to_lowercase().contains("access-control"), "{head}");
    assert_eq!(server.address(), format!("http://127.0.0.1:{port}/{}/", server.shared.token));
    assert_eq!(server.shared.token.to_string().len(), 32);
    let host = format!("Host: 127.0.0.1:{port}\r\n\r\n");
    let flipped: String =
        server.shared.token.to_string().chars().map(|c| if c == 'a' { 'b' } else { 'a' }).collect();
    for path in ["/", "//", "/live", "/kept", &format!("/{flipped}/"), &format!("/{}", server.shared.token)] {
        assert_eq!(
            status(&raw(&server, format!("GET {path} HTTP/1.1\r\n{host}").as_bytes())),
            "404",
            "{path}"
        );
    }
    for below in ["x", "kept/", "kept?", "kept?from=-1", "kept?from=1&path=/etc/passwd", "live/", "../"] {
        assert_eq!(status(&get(&server, below, "")), "404", "{below}");
    }
}

#[test]
fn what_is_kept_is_served_for_the_times_that_are_asked_for() {
    let (server, _commands) = server();
    assert!(get(&server, "kept", "").ends_with("\r\n\r\nkept None None"));
    assert!(get(&server, "kept?from=5&to=9", "").ends_with("\r\n\r\nkept Some(5) Some(9)"));
    let not_yet = get(&server, "kept?from=13", "");
    assert!(status(&not_yet) == "503" && not_yet.ends_with("nothing has been recorded yet\n"), "{not_yet}");
}

#[test]
fn other_names_other_origins_and_other_sites_are_refused() {
    let (server, _commands) = server();
    let SharedServer { port, token, .. } = &*server.shared;
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "[::1]", "127.0.0.1:1", ""] {
        for below in ["", "kept", "live"] {
            let fields = socket_fields(&format!("http://127.0.0.1:{port}"));
            let request = format!("GET /{token}/{below} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
            assert_eq!(status(&raw(&server, request.as_bytes())), "403", "{host}: {below}");
        }
    }
    let without_host = format!("GET /{token}/ HTTP/1.1\r\n\r\n");
    assert_eq!(status(&raw(&server, without_host.as_bytes())), "403");
    for origin in ["null", "http://evil.example", "https://127.0.0.1", &format!("http://evil.example:{port}")]
    {
        assert_eq!(status(&get(&server, "live", &socket_fields(origin))), "403", "{origin}");
        assert_eq!(status(&get(&server, "kept", &format!("Origin: {origin}\r\n"))), "403", "{origin}");
    }
    // A fetch without CORS of another page names no origin.
    for site in ["cross-site", "same-site"] {
        assert_eq!(status(&get(&server, "kept", &format!("Sec-Fetch-Site: {site}\r\n"))), "403", "{site}");
    }
    let without_origin = socket_fields("x").replacen("Origin", "X-Origin", 1);
    assert_eq!(status(&get(&server, "live", &without_origin)), "403");
    let own = format!("http://localhost:{port}");
    assert_eq!(status(&get(&server, "live", &format!("Origin: {own}\r\n"))), "400", "no WebSocket");
    let post = format!("POST /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    assert_eq!(status(&raw(&server, post.as_bytes())), "405");
    assert_eq!(server.clients(), 0);
}

#[test]
fn a_request_without_measure_is_refused() {
    let (server, _commands) = server();
    let huge = format!("GET /{} HTTP/1.1\r\n", "x".repeat(1 << 20));
    // Where the rest of the request is still under way, the answer may get lost with the connection.
    assert!(matches!(status(&raw(&server, huge.as_bytes())), "431" | ""));
    let answer = get(&server, "", &"A: b\r\n".repeat(9_000));
    assert!(matches!(status(&answer), "431" | ""), "{answer}");
    assert_eq!(status(&get(&server, "", "")), "200", "it goes on");
}

#[test]
fn a_request_that_never_ends_is_given_up() {
    let (server, _commands) = server();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.shared.port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), "408");
}

#[test]
fn browsers_get_the_messages_and_those_that_come_late_what_they_have_missed() {
    let (server, _commands) = server();
    server.send_text(r#"{"kind":"hello","title":"old"}"#);
    server.send_text(r#"{"kind":"hello","title":"new"}"#);
    server.send_text(r#"{"kind":"state","state":"recording"}"#);
    server.send_text(r#"{"kind":"numbers"}"#);
    server.send_text(r#"{"kind":"mark","name":"a"}"#);
    server.send_batch(b"one".to_vec().into());
    let mut socket = connect(&server).unwrap();
    assert_eq!(text(&mut socket), r#"{"kind":"hello","title":"new"}"#);
    assert_eq!(text(&mut socket), r#"{"kind":"state","state":"recording"}"#);
    assert_eq!(text(&mut socket), r#"{"kind":"mark","name":"a"}"#);
    assert_eq!(socket.read().unwrap().into_data(), b"one".as_slice());
    server.send_batch(b"two".to_vec().into());
    assert_eq!(socket.read().unwrap().into_data(), b"two".as_slice());
    server.send_text(r#"{"kind":"state","state":"ended"}"#);
    server.finish(LIMIT);
    assert_eq!(text(&mut socket), r#"{"kind":"state","state":"ended"}"#);
    assert!(matches!(socket.read(), Ok(Message::Close(_)) | Err(_)));
}

#[test]
fn commands_arrive_and_others_are_answered_with_the_reason() {
    let (server, commands) = server();
    let mut socket = connect(&server).unwrap();
    for hostile in [r#"{"do":"mark","name":"a\nb"}"#, r#"{"do":"exec"}"#, &"x".repeat(5000)] {
        socket.send(Message::text(hostile)).unwrap();
        assert!(text(&mut socket).starts_with(r#"{"kind":"error","text":"#));
    }
    socket.send(Message::text(r#"{"do":"mark","name":"</script>"}"#)).unwrap();
    let name = "</script>".to_owned();
    assert_eq!(commands.recv_timeout(LIMIT).unwrap(), LiveCommand::Mark { name });
    socket.send(Message::binary(vec![0; 100])).unwrap();
    socket.send(Message::text(r#"{"do":"stop"}"#)).unwrap();
    assert_eq!(commands.recv_timeout(LIMIT).unwrap(), LiveCommand::Stop {});
    // A message without measure ends the connection, and nothing else.
    let _ = socket.send(Message::text("x".repeat(1 << 20)));
    while socket.read().is_ok() {}
    assert!(connect(&server).is_ok());
}

#[test]
fn a_ninth_browser_is_refused_until_one_goes() {
    let (server, _commands) = server();
    let mut sockets: Vec<_> = (0..MAX_CLIENTS).map(|_| connect(&server).unwrap()).collect();
    let Err(Error::Http(answer)) = connect(&server) else { panic!("a ninth one is served") };
    assert_eq!(answer.status().as_u16(), 503);
    sockets.pop().unwrap().close(None).unwrap();
    let deadline = Instant::now() + LIMIT;
    while server.clients() == MAX_CLIENTS {
        assert!(Instant::now() < deadline, "the place of a browser that is gone does not become free");
        std::thread::sleep(POLL_INTERVAL);
    }
    connect(&server).unwrap();
}

#[test]
fn connections_that_send_nothing_do_not_use_the_machine_up() {
    let (server, _commands) = server();
    let address = (Ipv4Addr::LOCALHOST, server.shared.port);
    let silent: Vec<_> = (0..3 * MAX_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(status(&get(&server, "", "")), "200", "the page keeps a place");
    for mut stream in silent {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(matches!(status(&answer), "408" | ""), "{answer}");
    }
    assert_eq!(server.shared.connections.load(Ordering::Relaxed), 0);
}

#[test]
fn a_browser_that_reads_nothing_takes_bounded_memory_and_is_told_what_it_has_missed() {
    let (server, _commands) = server();
    let mut socket = connect(&server).unwrap();
    let batch: Arc<[u8]> = vec![7; 1 << 20].into();
    for _ in 0..200 {
        server.send_batch(batch.clone());
    }
    server.send_text(r#"{"kind":"state","state":"ended"}"#);
    let mut got = 0;
    let mut skipped = 0;
    while got + skipped < 200 {
        match socket.read().unwrap() {
            Message::Binary(bytes) => {
                assert_eq!(bytes.len(), 1 << 20);
                got += 1;
            }
            Message::Text(text) => {
                let message: serde_json::Value = serde_json::from_str(&text).unwrap();
                skipped += message["batches"].as_u64().unwrap_or(0);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got + skipped, 200);
    assert!(skipped >= 100, "{skipped} of 200 MiB did not wait in memory");
}
