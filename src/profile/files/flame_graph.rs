//! The flame graph: folded stacks drawn by inferno, with the roots on top, colours by the origin of the code,
//! and labels that keep the method's name where there is little room.

use std::io::{self, Write};

use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection};

use super::folded::{FoldedStacks, clean, write_folded};
use crate::art::CodeOrigin;
use crate::markup::escape_html;

/// Replaces inferno's labels, and chooses the frame that the picture opens at.
const SCRIPT: &str = include_str!("flame_graph.js");
/// The colours of code, with their names in the legend.
const COLORS: [(CodeOrigin, &str, [u8; 3]); 3] = [
    (CodeOrigin::App, "app", [240, 150, 70]),
    (CodeOrigin::Library, "libraries", [140, 190, 110]),
    (CodeOrigin::Framework, "Android and Java", [130, 175, 220]),
];
/// The colour of threads, of sums, and of methods without a name.
const OTHER: [u8; 3] = [200, 200, 200];
/// The largest amount by which a colour is made lighter or darker, to tell frames beside each other apart.
const SHADES: u8 = 24;
/// The width of the frames before the page's script runs, in pixels: inferno's 1,200 without its margins.
const FRAMES_WIDTH: f64 = 1_180.0;
/// The width of a character of inferno's font, in pixels.
const CHARACTER_WIDTH: f64 = 12.0 * 0.59;

/// The title, the unit and the colours of a flame graph.
pub(super) struct FlameGraph<'a> {
    /// The file, the threads and the clock.
    pub title: &'a str,
    /// The unit of the times (`µs`).
    pub unit: &'a str,
    /// The packages of the app; empty to guess them.
    pub app: &'a [String],
    /// The frame that fills the picture at first. `None` shows all frames.
    pub opens_at: Option<&'a str>,
    /// Whether the stacks compare two profiles. Colours then show which frames became slower or faster.
    pub compared: bool,
}

impl FlameGraph<'_> {
    /// Draws the paths with at most `max_depth` names. One of them takes time.
    pub(super) fn draw(&self, stacks: &FoldedStacks, max_depth: u32, out: &mut impl Write) -> io::Result<()> {
        let mut folded = Vec::new();
        write_folded(stacks, max_depth, self.compared, &mut folded)?;
        let folded = String::from_utf8(folded).map_err(io::Error::other)?;
        let mut colors = self.colors(stacks);
        let mut options = Options::default();
        options.title = clean(self.title);
        // Reserves the line that becomes the legend.
        options.subtitle = Some(String::new());
        options.count_name = self.unit.to_owned();
        options.name_type = String::new();
        options.direction = Direction::Inverted;
        options.text_truncate_direction = TextTruncateDirection::Right;
        // inferno sorts lines as text, and then draws `a.run` and `a.run;…` as two frames where `a.run$1`
        // lies between them. As a chart it takes the lines as they come, the last line first.
        options.flame_chart = true;
        options.palette_map = Some(&mut colors);
        let mut svg = Vec::new();
        inferno::flamegraph::from_lines(&mut options, folded.lines().rev(), &mut svg)
            .map_err(io::Error::other)?;
        self.finish(&String::from_utf8(svg).map_err(io::Error::other)?, out)
    }

    fn colors(&self, stacks: &FoldedStacks) -> PaletteMap {
        let mut colors = PaletteMap::default();
        colors.insert("", color(OTHER, ""));
        for (name, is_method) in stacks.names() {
            let base = if is_method && !name.starts_with('(') {
                let origin = CodeOrigin::from_method_name(name, self.app);
                COLORS.iter().find(|(of, ..)| *of == origin).map_or(OTHER, |(.., color)| *color)
            } else {
                OTHER
            };
            colors.insert(name, color(base, name));
        }
        colors
    }

    /// Writes inferno's picture with the legend, the labels and the script.
    fn finish(&self, svg: &str, out: &mut impl Write) -> io::Result<()> {
        let svg = svg.strip_suffix("</svg>").unwrap_or(svg);
        let mut parts = svg.split("<g><title>");
        let head = parts.next().unwrap_or_default();
        match head.split_once("<text id=\"subtitle\"") {
            Some((before, rest)) => {
                let after = rest.split_once("</text>").map_or("", |(_, after)| after);
                write!(out, "{before}{}{after}", self.legend())?;
            }
            None => out.write_all(head.as_bytes())?,
        }
        for frame in parts {
            match relabelled(frame) {
                Some((before, label, after)) => {
                    write!(out, "<g><title>{before}{}{after}", escape_html(&label))?;
                }
                None => write!(out, "<g><title>{frame}")?,
            }
        }
        let opens_at = serde_json::to_string(&self.opens_at)?;
        writeln!(out, "<script><![CDATA[\nvar opens_at = {opens_at};\n{SCRIPT}]]></script></svg>")
    }

    /// The legend, as the text of one line.
    fn legend(&self) -> String {
        let mut text = String::from("<text x=\"10\" y=\"48\">");
        let mut entry = |[r, g, b]: [u8; 3], name: &str| {
            text += &format!("<tspan fill=\"rgb({r},{g},{b})\">\u{25a0}</tspan> {name}\u{2003}");
        };
        if self.compared {
            entry([255, 90, 90], "slower");
            entry([90, 90, 255], "faster");
        } else {
            COLORS.iter().for_each(|(_, name, color)| entry(*color, name));
            entry(OTHER, "threads and sums");
        }
        text + "</text>"
    }
}

/// A shade of `base` that depends on the name alone.
fn color(base: [u8; 3], name: &str) -> Color {
    let hash = name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    let shade = (hash % u32::from(SHADES)) as u8;
    let [r, g, b] = base.map(|channel| channel.saturating_add(shade).saturating_sub(SHADES / 2));
    Color { r, g, b }
}

/// Splits inferno's text of a frame, behind `<title>`, at the frame's label, and gives the label to put
/// there.
fn relabelled(frame: &str) -> Option<(&str, String, &str)> {
    let (title, rest) = frame.split_once("</title>")?;
    let (name, _) = title.rsplit_once(" (")?;
    let width = rest.split_once(" width=\"")?.1.split_once("%\"")?.0.parse::<f64>().ok()?;
    let end = frame.rfind("</text>")?;
    let start = frame[..end].rfind('>')? + 1;
    let room = (width / 100.0 * FRAMES_WIDTH - 6.0).max(0.0) / CHARACTER_WIDTH;
    Some((&frame[..start], label(&unescape(name), room as usize), &frame[end..]))
}

/// Shortens `package.Class.method` to `room` characters. The package is dropped first, then the class.
fn label(name: &str, room: usize) -> String {
    let dots: Vec<usize> = name.rmatch_indices('.').map(|(at, _)| at).collect();
    let from = |dot: usize| dots.get(dot).map_or(name, |at| &name[at + 1..]);
    let class = from(1);
    let method = from(0);
    match [name, class, method].into_iter().find(|form| form.chars().count() <= room) {
        Some(form) => form.to_owned(),
        None if room < 3 => String::new(),
        None => method.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// The text that was escaped for XML.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_loses_its_package_before_its_class_and_its_class_before_its_method() {
        let name = "android.os.Looper.loopOnce";
        assert_eq!(label(name, 26), name);
        assert_eq!(label(name, 25), "Looper.loopOnce");
        assert_eq!(label(name, 14), "loopOnce");
        assert_eq!(label(name, 5), "loop…");
        assert_eq!(label(name, 2), "");
        assert_eq!(label("main", 3), "ma…");
    }

    #[test]
    fn the_label_in_the_picture_is_that_of_the_whole_name() {
        let frame = "a.B&lt;C&gt;.&lt;init&gt; (1 µs, 2.00%)</title><rect x=\"0.0000%\" y=\"9\" width=\"10.0000%\" \
             height=\"15\" fill=\"rgb(1,2,3)\" fg:x=\"0\" fg:w=\"1\"/><text x=\"1%\" y=\"8.00\">a.B&lt;..</text></g>";
        let (before, label, after) = relabelled(frame).unwrap();
        assert!(before.ends_with("y=\"8.00\">") && after == "</text></g>");
        assert_eq!(label, "a.B<C>.<init>");
    }
}
