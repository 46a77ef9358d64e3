//! A phone that does harm to whoever talks to it: it answers adb's protocol, and does so wrongly, each time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// A kind of hostility. It lasts until the server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hostility {
    /// The list of devices is not text.
    ListIsNoText,
    /// The list of devices claims more bytes than come.
    ListIsCut,
    /// The list of devices has thousands of rows, all but one of them offline.
    ListIsLong,
    /// The list of devices has a serial of 60,000 characters, and control characters.
    ListHasLongNames,
    /// An answer of the server is neither OKAY nor FAIL.
    NeitherNor,
    /// The device is refused with 60,000 characters.
    RefusedAtLength,
    /// The features are not text.
    FeaturesAreNoText,
    /// Each command ends the connection at once.
    CommandsEnd,
    /// Each command is answered with nothing but the end, status 0.
    CommandsSayNothing,
    /// Each command ends with status 255.
    CommandsFail,
    /// Each command prints without end.
    CommandsFlood,
    /// Each command prints errors without end.
    ErrorsFlood,
    /// Each command sends packets without a byte, without end.
    EmptyPackets,
    /// A packet claims 4 GB.
    LargePacket,
    /// A packet of an unknown kind.
    UnknownPacket,
    /// The end of a command has a million bytes.
    LongEnd,
    /// The head of a packet is cut.
    CutPacket,
    /// Each command prints a line of a megabyte.
    LongLine,
    /// Each command prints control characters, NUL bytes and bytes that are not UTF-8.
    ControlCharacters,
    /// Each command prints what was asked for with numbers that are too large.
    LargeNumbers,
    /// Each command prints names that lead elsewhere.
    NamesLeadElsewhere,
    /// Each command prints JSON that is nested deeply.
    DeepJson,
    /// Each command is silent.
    CommandsAreSilent,
    /// Each command prints a byte now and then, without end.
    CommandsTrickle,
    /// Each answer to a command comes byte by byte, a byte now and then.
    PacketsTrickle,
    /// Each command sends a packet without a byte now and then, without end.
    EmptyPacketsTrickle,
    /// Answers of the server come byte by byte, a byte now and then.
    AnswersTrickle,
    /// Files are larger than any disk.
    HugeFiles,
    /// Files are larger than any disk, and what is fetched has no end.
    EndlessHugeFiles,
    /// A file that is fetched is longer than announced: it has no end.
    EndlessFiles,
    /// A file that is fetched comes byte by byte, a byte now and then.
    FilesTrickle,
    /// A file that is fetched has a piece without a byte now and then, without end.
    EmptyPiecesTrickle,
    /// Each file is a directory.
    FilesAreDirectories,
    /// No file is there.
    NoFiles,
    /// A file that is fetched has pieces without a byte, without end.
    EmptyPieces,
    /// A file that is fetched ends at once.
    FilesEnd,
    /// A piece of a file claims 4 GB.
    LargePiece,
    /// A fetched file is refused with a reason of 4 GB.
    LargeReason,
    /// A pushed file is refused before it has come.
    PushIsRefused,
    /// A pushed file is never read.
    PushIsNotRead,
    /// A pushed file is taken, and the answer to it is none of adb's.
    PushIsAnsweredWrongly,
    /// File transfers end at once.
    TransfersEnd,
}

impl Hostility {
    /// Every kind.
    pub const ALL: [Hostility; 42] = {
        use Hostility::*;
        [
            ListIsNoText,
            ListIsCut,
            ListIsLong,
            ListHasLongNames,
            NeitherNor,
            RefusedAtLength,
            FeaturesAreNoText,
            CommandsEnd,
            CommandsSayNothing,
            CommandsFail,
            CommandsFlood,
            ErrorsFlood,
            EmptyPackets,
            LargePacket,
            UnknownPacket,
            LongEnd,
            CutPacket,
            LongLine,
            ControlCharacters,
            LargeNumbers,
            NamesLeadElsewhere,
            DeepJson,
            CommandsAreSilent,
            CommandsTrickle,
            PacketsTrickle,
            EmptyPacketsTrickle,
            AnswersTrickle,
            HugeFiles,
            EndlessHugeFiles,
            EndlessFiles,
            FilesTrickle,
            EmptyPiecesTrickle,
            FilesAreDirectories,
            NoFiles,
            EmptyPieces,
            FilesEnd,
            LargePiece,
            LargeReason,
            PushIsRefused,
            PushIsNotRead,
            PushIsAnsweredWrongly,
            TransfersEnd,
        ]
    };

    /// Whether it shows in the answers to commands, and not in those of the server or in files.
    pub fn is_of_commands(self) -> bool {
        use Hostility::*;
        matches!(
            self,
            CommandsEnd
                | CommandsSayNothing
                | CommandsFail
                | CommandsFlood
                | ErrorsFlood
                | EmptyPackets
                | LargePacket
                | UnknownPacket
                | LongEnd
                | CutPacket
                | LongLine
                | ControlCharacters
                | LargeNumbers
                | NamesLeadElsewhere
                | DeepJson
                | CommandsAreSilent
                | CommandsTrickle
                | PacketsTrickle
                | EmptyPacketsTrickle
        )
    }

    /// Answers a request to the server. `None` where it is answered as it should be, else whether the
    /// connection goes on.
    pub(crate) fn serve(self, stream: &mut TcpStream, service: &str) -> Option<bool> {
        use Hostility::*;
        let is_list = service == "host:devices-l";
        let list = |text: &str| format!("OKAY{:04x}{text}", text.len().min(0xffff)).into_bytes();
        let reply = match self {
            ListIsNoText if is_list => [b"OKAY0100", &[0xff; 256][..]].concat(),
            ListIsCut if is_list => b"OKAYffffS1 device".to_vec(),
            ListIsLong if is_list => {
                let rows = (0..1_500).map(|n| format!("off-{n} offline transport_id:{n}\n"));
                list(&(rows.collect::<String>() + "S1 device transport_id:1\n"))
            }
            ListHasLongNames if is_list => {
                list(&format!("{} device model:\x1b[31mx\x1b]0;x\x07\nS1 device\n", "s".repeat(60_000)))
            }
            NeitherNor if service.starts_with("host:transport") => b"WHAT".to_vec(),
            RefusedAtLength if service.starts_with("host:transport") => {
                format!("FAIL{:04x}{}", 60_000, "no ".repeat(20_000)).into_bytes()
            }
            AnswersTrickle if is_list => {
                trickle(stream, &[&list("S1 device transport_id:1\n")[..], &[b' '; 1000]].concat(), 1);
                return Some(false);
            }
            FeaturesAreNoText if service.ends_with(":features") => [b"OKAY0040", &[0x80; 64][..]].concat(),
            _ => return None,
        };
        let _ = stream.write_all(&reply);
        Some(false)
    }

    /// Answers a command of the shell. Returns whether it has: the connection is over then.
    pub(crate) fn shell(self, stream: &mut TcpStream) -> bool {
        use Hostility::*;
        let packet =
            |kind: u8, bytes: &[u8]| [&[kind][..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
        let end = packet(3, &[0]);
        let says = |bytes: &[u8]| [packet(1, bytes), end.clone()].concat();
        let reply = match self {
            CommandsEnd => Vec::new(),
            CommandsSayNothing => end,
            CommandsFail => packet(3, &[255]),
            CommandsFlood => return flood(stream, &packet(1, &[b'x'; 64 << 10])),
            ErrorsFlood => return flood(stream, &packet(2, &[b'\n'; 64 << 10])),
            CommandsTrickle => return trickle(stream, &packet(1, b"x").repeat(10_000), 6),
            PacketsTrickle => return trickle(stream, &packet(1, &[b'x'; 10_000]), 1),
            EmptyPacketsTrickle => return trickle(stream, &packet(2, &[]).repeat(10_000), 5),
            EmptyPackets => return flood(stream, &packet(1, &[]).repeat(4096)),
            LargePacket => [&[1][..], &[0xff; 4], b"and then nothing"].concat(),
            UnknownPacket => packet(9, b"what"),
            LongEnd => packet(3, &vec![0; 1_000_000]),
            CutPacket => vec![1, 7, 0],
            LongLine => says(&vec![b'a'; 1 << 20]),
            ControlCharacters => says(b"\x1b]0;owned\x07\x1b[2J\0\0\xff\xfe=\r\n\x9b31m\n"),
            LargeNumbers => {
                let number = "9".repeat(40);
                let names = ["uid", "abi", "sdk", "hash", "free", "status", "pid", "bytes", "size", "cpus"];
                let lines = names.map(|name| format!("{name}={number}\n"));
                says((lines.concat() + &number + "\n").as_bytes())
            }
            NamesLeadElsewhere => says(
                b"abi=../../../../tmp\nhash=../x\n../../etc/passwd\n/etc/passwd\nid=../../../x\noutput=../package.json\n",
            ),
            DeepJson => says(&b"{\"a\":[".repeat(100_000)),
            CommandsAreSilent => {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
                while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
                return true;
            }
            _ => return false,
        };
        let _ = stream.write_all(&reply);
        // What the other side sends is read: else the system takes the reply away with the connection.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        true
    }

    /// Answers a request for a file. Returns whether it has: the connection is over then.
    pub(crate) fn sync(self, stream: &mut TcpStream, request: &[u8; 4]) -> bool {
        use Hostility::*;
        let stat = |mode: u32, size: u64| {
            let error = u32::from(mode == 0).to_le_bytes();
            let mode = mode.to_le_bytes();
            match request {
                b"STA2" => {
                    [&request[..], &error, &[0; 16], &mode, &[0; 12], &size.to_le_bytes(), &[0; 24]].concat()
                }
                _ => [&request[..], &mode, &(size as u32).to_le_bytes(), &[0; 4]].concat(),
            }
        };
        let is_stat = matches!(request, b"STAT" | b"STA2");
        let is_fetch = request == b"RECV";
        let is_push = request == b"SEND";
        let reply = match self {
            HugeFiles | EndlessHugeFiles if is_stat => stat(0o100_644, u64::MAX),
            FilesAreDirectories if is_stat => stat(0o040_755, 4096),
            NoFiles if is_stat => stat(0, 0),
            EndlessFiles | EndlessHugeFiles if is_fetch => {
                let piece = [&b"DATA\0\0\x01\0"[..], &[7; 64 << 10]].concat();
                return flood(stream, &piece);
            }
            FilesTrickle if is_fetch => return trickle(stream, &b"DATA\x01\0\0\0x".repeat(10_000), 9),
            EmptyPiecesTrickle if is_fetch => return trickle(stream, &b"DATA\0\0\0\0".repeat(10_000), 8),
            PushIsNotRead if is_push => {
                thread::sleep(Duration::from_secs(60));
                return true;
            }
            EmptyPieces if is_fetch => return flood(stream, &b"DATA\0\0\0\0".repeat(4096)),
            FilesEnd if is_fetch => b"DONE\0\0\0\0".to_vec(),
            LargePiece if is_fetch => b"DATA\xff\xff\xff\xffx".to_vec(),
            LargeReason if is_fetch || is_push => b"FAIL\xff\xff\xff\xffx".to_vec(),
            PushIsRefused if is_push => b"FAIL\x02\0\0\0no".to_vec(),
            PushIsAnsweredWrongly if is_push => b"YEAH\0\0\0\0".to_vec(),
            TransfersEnd => Vec::new(),
            _ => return false,
        };
        let _ = stream.write_all(&reply);
        if is_stat && self != TransfersEnd {
            // Further requests may come.
            return true;
        }
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
        true
    }
}

/// Sends `bytes` by `step` at a time, with a pause after each, until the other side has enough.
fn trickle(stream: &mut TcpStream, bytes: &[u8], step: usize) -> bool {
    drain(stream);
    for piece in bytes.chunks(step) {
        if stream.write_all(piece).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(300));
    }
    true
}

/// Reads what the other side sends, which nobody needs.
fn drain(stream: &TcpStream) {
    if let Ok(mut input) = stream.try_clone() {
        thread::spawn(move || while input.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {});
    }
}

/// Sends `bytes` again and again, until the other side has enough.
fn flood(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    drain(stream);
    while stream.write_all(bytes).is_ok() {}
    true
}
