//! The videos of the screen on a page: where the page finds each one, and at which of the trace's times it
//! shows which frame.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Component, Path, absolute};

use serde_json::{Value, json};

use super::blocks::BlockWriter;
use super::columns::EncodedColumns as _;
use super::tracks::{Owner, PageTrack, TrackColumns, TrackRole};
use crate::clock::Timestamp;
use crate::file_access;
use crate::formats::ScreenVideo;
use crate::formats::input::Input;
use crate::formats::screen_video::VIDEO_TRACK;
use crate::formats::{FormatId, has_format};
use crate::output_file::is_stdout;
use crate::text::file_name;
use crate::timeline::MergeSummary;

/// The bytes of a video that go into one block.
const PIECE_BYTES: usize = 2 << 20;

/// The videos among the inputs of a page.
#[derive(Debug, Default)]
pub struct PageVideos<'a> {
    list: Vec<PageVideo<'a>>,
}

/// A video among the inputs, and the place of its pictures.
#[derive(Debug)]
struct PageVideo<'a> {
    /// Its number among the inputs.
    input: usize,
    place: PicturePlace<'a>,
}

/// The place where a page finds the pictures of a video.
#[derive(Debug, PartialEq, Eq)]
enum PicturePlace<'a> {
    /// A file of its own, at this URL from the page on.
    Beside(String),
    /// The page itself holds the file.
    Inside(&'a [u8]),
    /// The page cannot name the file.
    Nowhere,
}

impl<'a> PageVideos<'a> {
    /// Finds the videos among the inputs of the page `output`, which holds them with `is_inside`, and else
    /// names their files.
    pub fn new(inputs: &'a [Input], output: &Path, is_inside: bool) -> PageVideos<'a> {
        let videos = inputs.iter().enumerate().filter(|(_, input)| has_format(input, FormatId::ScreenVideo));
        let place = |(number, input): (usize, &'a Input)| {
            let place = if is_inside {
                PicturePlace::Inside(input)
            } else if input.is_member
                || input.packed.is_some()
                || !file_access::is_file(Path::new(&input.name))
            {
                PicturePlace::Nowhere
            } else {
                let page = if is_stdout(output) { Path::new("page.html") } else { output };
                relative_url(page, Path::new(&input.name)).map_or(PicturePlace::Nowhere, PicturePlace::Beside)
            };
            PageVideo { input: number, place }
        };
        PageVideos { list: videos.map(place).collect() }
    }

    /// The directive of the page's content-security policy that lets it show its videos. A page without
    /// videos has none.
    pub fn policy(&self) -> &'static str {
        let is = |wanted: fn(&PicturePlace<'_>) -> bool| self.list.iter().any(|video| wanted(&video.place));
        if is(|place| matches!(place, PicturePlace::Beside(_))) {
            BESIDE_POLICY
        } else if is(|place| matches!(place, PicturePlace::Inside(_))) {
            INSIDE_POLICY
        } else {
            ""
        }
    }

    /// Sentences about videos whose pictures the page cannot show.
    pub fn notes(&self, summary: &MergeSummary) -> Vec<String> {
        let names = self.list.iter().filter(|video| video.place == PicturePlace::Nowhere);
        let names = names.filter_map(|video| summary.inputs.get(video.input));
        names
            .map(|input| {
                format!(
                    "{}: the page does not show its pictures, because it is no file that a browser can open: \
                     --embed-video puts it into the page",
                    file_name(&input.name)
                )
            })
            .collect()
    }

    /// Writes the videos for the index of a trace that begins at `start`. `order` holds the numbers of
    /// the tracks on the page, in their order.
    pub(super) fn write<W: Write + Send + 'static>(
        &self,
        summary: &MergeSummary,
        start: Timestamp,
        tracks: &[PageTrack],
        order: &[usize],
        blocks: &mut BlockWriter<W>,
    ) -> io::Result<Vec<Value>> {
        let mut entries = Vec::new();
        for video in &self.list {
            let Some(input) = summary.inputs.get(video.input) else { continue };
            let Some(frames) = &input.video else { continue };
            let since_start = |ts: Timestamp| i128::from(ts.0) - i128::from(start.0);
            let at: Vec<i64> = frames.frames.iter().map(|frame| since_start(frame.ts) as i64).collect();
            let times: Vec<u64> = frames.frames.iter().map(|frame| frame.video_ns).collect();
            let mut entry = json!({
                "name": file_name(&input.name),
                "track": order.iter().position(|number| is_track_of(&tracks[*number], frames)),
                "length_ns": frames.length_ns,
                "frames": blocks.json(&json!({ "at": at, "video": times }))?,
            });
            match &video.place {
                PicturePlace::Beside(url) => entry["url"] = json!(url),
                PicturePlace::Inside(bytes) => {
                    let pieces: io::Result<Vec<usize>> =
                        bytes.chunks(PIECE_BYTES).map(|piece| blocks.bytes(piece)).collect();
                    entry["blocks"] = json!(pieces?);
                }
                PicturePlace::Nowhere => {}
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The policy of a page whose videos are files. For a page that is a file itself, `'self'` are files.
const BESIDE_POLICY: &str = " media-src 'self';";
/// The policy of a page that holds its videos.
const INSIDE_POLICY: &str = " media-src blob:;";

/// Whether the page's track has the frames of this video, all of them or those in the page's part of the
/// timeline.
fn is_track_of(track: &PageTrack, video: &ScreenVideo) -> bool {
    let TrackColumns::Instants(instants) = &track.columns else { return false };
    track.role == TrackRole::Own
        && track.owner == Owner::Machine
        && track.name == VIDEO_TRACK
        && instants
            .range()
            .is_some_and(|(first, _)| video.frames.binary_search_by_key(&first, |frame| frame.ts).is_ok())
}

/// The URL of `file` from the page on; `None` where no relative one leads there.
fn relative_url(page: &Path, file: &Path) -> Option<String> {
    let page = absolute(page).ok()?;
    let file = absolute(file).ok()?;
    let directory: Vec<Component<'_>> = page.parent()?.components().collect();
    let parts: Vec<Component<'_>> = file.components().collect();
    let shared = directory.iter().zip(&parts).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return None;
    }
    let up = directory[shared..].iter().map(|_| "..".to_owned());
    let down = parts[shared..].iter().map(|part| url_part(part.as_os_str().as_encoded_bytes()));
    Some(up.chain(down).collect::<Vec<_>>().join("/"))
}

/// A part of a path as a part of a URL (RFC 3986).
fn url_part(name: &[u8]) -> String {
    let mut part = String::new();
    for byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            part.push(char::from(*byte));
        } else {
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_a_video_by_the_way_from_its_own_directory() {
        let url = |page: &str, file: &str| relative_url(Path::new(page), Path::new(file)).unwrap();
        assert_eq!(url("/a/b/x.html", "/a/b/screen.mp4"), "screen.mp4");
        assert_eq!(url("/a/b/x.html", "/a/c/my screen.mp4"), "../c/my%20screen.mp4");
        assert_eq!(url("x.html", "screen.mp4"), "screen.mp4");
        assert_eq!(
            url("x.html", "javascript:alert(1)//é\"<.mp4"),
            "javascript%3Aalert%281%29/%C3%A9%22%3C.mp4"
        );
    }

    #[test]
    fn only_a_page_with_videos_may_load_any() {
        let with = |place| PageVideos { list: vec![PageVideo { input: 0, place }] }.policy();
        assert_eq!(PageVideos::default().policy(), "");
        assert_eq!(with(PicturePlace::Nowhere), "");
        assert_eq!(with(PicturePlace::Inside(b"")), " media-src blob:;");
        assert!(with(PicturePlace::Beside("x".into())).contains("'self'"));
    }
}
