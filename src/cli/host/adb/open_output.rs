//! `--open`: shows an output in the browser. A page is opened as it is; any other output goes to the Perfetto
//! UI, which fetches it from this process, as it does from Perfetto's own `record_android_trace`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::cli::host::{browser, interrupt};
use crate::console::complain;

/// The address that the Perfetto UI may fetch from, by its own policy.
const PORT: u16 = 9001;
const UI: &str = "https://ui.perfetto.dev";
/// How long the browser has until it fetches the file.
const FETCH_TIME: Duration = Duration::from_secs(120);
/// How long a browser that has connected may be silent.
const STALL: Duration = Duration::from_secs(10);
/// Between two looks for a connection.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// The longest request that is read, bytes.
const MAX_REQUEST_BYTES: u64 = 16 << 10;

/// Opens an output in the browser, and serves it until the browser has it.
///
/// # Errors
/// If no browser can be started, the port is taken, or nothing fetches the file in time.
pub(super) fn open(output: &Path) -> anyhow::Result<()> {
    if output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")) {
        let page = output.canonicalize().with_context(|| output.display().to_string())?;
        return browser::open(page.as_os_str());
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
        .with_context(|| format!("--open: the Perfetto UI fetches from port {PORT} alone, which is taken"))?;
    let name = url_name(output);
    browser::open(format!("{UI}/#!/?url=http://127.0.0.1:{PORT}/{name}").as_ref())?;
    complain(format_args!("waiting until the browser has fetched {} (Ctrl-C ends)", output.display()));
    serve(&listener, output, &name, FETCH_TIME, &interrupt::has_come)
}

/// The file's name with what has a meaning in addresses replaced.
fn url_name(output: &Path) -> String {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Serves the file under this name until it has been fetched once.
fn serve(
    listener: &TcpListener,
    file: &Path,
    name: &str,
    time: Duration,
    has_ended: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let give_up = Instant::now() + time;
    while Instant::now() < give_up && !has_ended() {
        match listener.accept() {
            // A browser that goes away in the middle comes back, or the time is over.
            Ok((stream, _)) => match answer(stream, file, name) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| file.display().to_string());
                }
                Err(_) => {}
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK_INTERVAL),
            Err(error) => return Err(error.into()),
        }
    }
    match has_ended() {
        true => Ok(()),
        false => bail!("no browser has fetched {} within {} s", file.display(), time.as_secs()),
    }
}

/// Answers one request. Returns whether it has fetched the whole file.
fn answer(mut stream: TcpStream, file: &Path, name: &str) -> io::Result<bool> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))?;
    let mut reader = BufReader::new(stream.try_clone()?.take(MAX_REQUEST_BYTES));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut host = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((field, value)) = line.split_once(':')
            && field.eq_ignore_ascii_case("host")
        {
            host = value.trim().to_owned();
        }
    }
    let port = stream.local_addr()?.port();
    // Another name for this machine could be one that a stranger's page has given it.
    let is_ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")].contains(&host);
    let words: Vec<&str> = request.split_whitespace().collect();
    let is_get = matches!(words[..], ["GET", path, _] if path.strip_prefix('/') == Some(name));
    let head = |status: &str, length: u64| {
        format!(
            "HTTP/1.1 {status}\r\nAccess-Control-Allow-Origin: {UI}\r\nCache-Control: no-cache\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    if !is_ours || !is_get {
        stream.write_all(head("404 Not Found", 0).as_bytes())?;
        return Ok(false);
    }
    let mut file = File::open(file)?;
    stream.write_all(head("200 OK", file.metadata()?.len()).as_bytes())?;
    io::copy(&mut file, &mut stream)?;
    stream.flush()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_gets_the_file_and_nobody_anything_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("it's a.pftrace");
        std::fs::write(&file, b"events").unwrap();
        let name = url_name(&file);
        assert_eq!(name, "it_s_a.pftrace");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn({
            let (file, name) = (file.clone(), name.clone());
            move || serve(&listener, &file, &name, Duration::from_secs(60), &|| false)
        });
        let ask = |path: &str, host: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {UI}\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let host = address.to_string();
        assert!(ask("/etc/passwd", &host).starts_with("HTTP/1.1 404"));
        assert!(ask(&format!("/{name}"), "evil.example:80").starts_with("HTTP/1.1 404"));
        let answer = ask(&format!("/{name}"), &host);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nevents"), "{answer}");
        assert!(answer.contains(&format!("Access-Control-Allow-Origin: {UI}\r\n")), "{answer}");
        server.join().unwrap().unwrap();
    }

    #[test]
    fn a_browser_that_never_comes_is_told() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let error = serve(&listener, Path::new("x.pftrace"), "x", Duration::ZERO, &|| false).unwrap_err();
        assert_eq!(error.to_string(), "no browser has fetched x.pftrace within 0 s");
        serve(&listener, Path::new("x.pftrace"), "x", Duration::ZERO, &|| true).unwrap();
    }
}
