//! A judgement for people, for scripts and for CI: as text, Markdown, JSON, JUnit and an HTML page.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::condition::{Limit, Size, Unit};
use super::judge::{GateOutcome, JudgedCondition, JudgedMeasure, Judgement, LEVEL, MeasureVerdict};
use crate::console::printable;
use crate::formats::Loss;
use crate::markup::escape_attribute;
use crate::measure::WHOLE_SHARE;
use crate::why::Difference;

/// The rows of a condition that people read, beside those that close the gate. JSON and JUnit have all.
const ROWS: usize = 12;
/// The rows that close the gate.
const CLOSING_ROWS: usize = 50;

/// The titles of the columns.
const TITLES: [&str; 8] =
    ["measure", "baseline", "candidate", "change", "95 % interval", "p", "runs", "verdict"];

/// The cells of a measure.
fn cells_of(condition: &JudgedCondition, measure: &JudgedMeasure) -> [String; 8] {
    let JudgedMeasure { runs: [old_runs, new_runs], medians: [old, new], change, .. } = measure;
    let interval = change.interval.map(|ends| ends.map(|ns| size(condition, measure, ns)).join(" to "));
    [
        measure.name.clone(),
        if *old_runs > 0 { value(measure.unit, *old as f64) } else { "-".into() },
        if *new_runs > 0 { value(measure.unit, *new as f64) } else { "-".into() },
        if old_runs.min(new_runs) > &0 { size(condition, measure, change.estimate) } else { "-".into() },
        interval.unwrap_or_else(|| "-".into()),
        measure.p_adjusted.map_or("-".into(), p_value),
        format!("{old_runs}, {new_runs}"),
        measure.finding().to_string(),
    ]
}

/// A change in the unit of the condition: of percent where the baseline takes any time.
fn size(condition: &JudgedCondition, measure: &JudgedMeasure, change: f64) -> String {
    let (Limit::Slower(size) | Limit::Faster(size)) = condition.condition.limit;
    match (size, measure.percent(change)) {
        (Size::Percent(_), Some(percent)) => format!("{percent:+.1} %"),
        _ if measure.unit == Unit::Share => format!("{:+.2} pp", points(change)),
        _ => format!("{:+.3} ms", change / 1e6),
    }
}

/// A measured value.
fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{:.2} %", points(value)),
        Unit::Time | Unit::Overrun => format!("{:.3} ms", value / 1e6),
    }
}

/// A share in percent.
fn points(share: f64) -> f64 {
    share * 100.0 / WHOLE_SHARE as f64
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The measures of a condition that people read, and how many others there are.
fn shown(condition: &JudgedCondition) -> (&[JudgedMeasure], usize) {
    let closing =
        condition.measures.iter().filter(|measure| measure.verdict == MeasureVerdict::Closes).count();
    let rows = ROWS.max(closing.min(CLOSING_ROWS)).min(condition.measures.len());
    (&condition.measures[..rows], condition.measures.len() - rows)
}

/// The outcome in one sentence.
fn outcome(judgement: &Judgement) -> String {
    let closing = judgement.count(|verdict| *verdict == MeasureVerdict::Closes);
    let undecided = judgement.count(|verdict| matches!(verdict, MeasureVerdict::Undecided { .. }));
    let all = judgement.count(|_| true);
    let of = |some: usize| match all {
        1 => "the measure".to_owned(),
        all => format!("{some} of {all} measures"),
    };
    match judgement.outcome() {
        GateOutcome::Open => format!(
            "The gate is open: {} passed.",
            if all == 1 { of(1) } else { of(judgement.count(|verdict| *verdict == MeasureVerdict::Passes)) }
        ),
        GateOutcome::Closed => format!("The gate is closed by {}.", of(closing)),
        GateOutcome::Undecided if undecided > 0 => {
            format!("The gate cannot decide: there are too few runs for {}.", of(undecided))
        }
        GateOutcome::Undecided => {
            "The gate cannot decide: too few of the runs have what a condition names.".to_owned()
        }
    }
}

/// The two sides: `baseline: lab (build=1233), 20 runs`.
fn sides(judgement: &Judgement) -> [String; 2] {
    let line = |side: usize, name: &str| {
        let title = &judgement.titles[side];
        let runs = judgement.runs[side];
        format!("{name}: {title}, {runs} run{}", if runs == 1 { "" } else { "s" })
    };
    [line(0, "baseline"), line(1, "candidate")]
}

impl Judgement {
    /// The judgement in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = sides(self).to_vec();
        for judged in &self.conditions {
            lines.push(String::new());
            lines.push(printable(&judged.condition.text).into_owned());
            let (shown, more) = shown(judged);
            let titles = TITLES.map(str::to_owned);
            // A line feed in a name would break the table.
            let row = |measure| cells_of(judged, measure).map(|cell| printable(&cell).into_owned());
            let rows: Vec<[String; 8]> = std::iter::once(titles).chain(shown.iter().map(row)).collect();
            let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let widths: [usize; 8] = std::array::from_fn(width);
            for row in &rows {
                let cell = |(at, cell): (usize, &String)| match at {
                    // Names and words begin together, figures end together.
                    0 | 7 => format!("{cell:<0$}", widths[at]),
                    _ => format!("{cell:>0$}", widths[at]),
                };
                let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
                lines.push(format!("  {}", cells.join("  ")).trim_end().to_owned());
            }
            if more > 0 {
                lines.push(format!("  … and {more} more (--json has all)"));
            }
        }
        let grown = self.grown_lines();
        if !grown.is_empty() {
            lines.extend([String::new(), "what grew in the launches".to_owned()]);
            lines.extend(grown.iter().map(|line| format!("  {}", printable(line))));
        }
        lines.push(String::new());
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        if self.tested > 1 {
            lines.push(format!(
                "{} measures were tested together: p is corrected for that (Holm).",
                self.tested
            ));
        }
        lines.push(outcome(self));
        lines
    }
}

impl Judgement {
    /// The judgement as Markdown with tables (GitHub Flavored Markdown), for the comment of a bot or the
    /// summary of a job.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("### {}\n\n", escape_markdown(&outcome(self)));
        for side in sides(self) {
            text += &format!("- {}\n", escape_markdown(&side));
        }
        for judged in &self.conditions {
            text += &format!("\n**{}**\n\n", escape_markdown(&judged.condition.text));
            text += &format!("| {} |\n", TITLES.join(" | "));
            text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
            let (shown, more) = shown(judged);
            for measure in shown {
                let cells = cells_of(judged, measure).map(|cell| escape_markdown(&cell));
                text += &format!("| {} |\n", cells.join(" | "));
            }
            if more > 0 {
                text += &format!("\n… and {more} more.\n");
            }
        }
        let grown = self.grown_lines();
        if !grown.is_empty() {
            text += "\n**What grew in the launches**\n\n";
        }
        for line in grown {
            text += &format!("- {}\n", escape_markdown(line.trim_start()));
        }
        if self.tested > 1 {
            text += &format!(
                "\n{} measures were tested together: p is corrected for that (Holm).\n",
                self.tested
            );
        }
        if !self.notes.is_empty() {
            text += "\n";
        }
        for note in &self.notes {
            text += &format!("- {}\n", escape_markdown(note));
        }
        text
    }
}

/// Text that Markdown shows as it is: every character that could be markup gets a backslash, and control
/// characters are replaced.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        match char {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '(' | ')' | '#' | '|' | '~'
            | '!' | '&' | '@' => escaped.extend(['\\', char]),
            char if char.is_control() => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

impl Judgement {
    /// The object of `gate --json`.
    pub fn json<'j>(&'j self) -> JudgementJson<'j> {
        let side = |side: usize| GateSideJson {
            title: &self.titles[side],
            runs: self.runs[side],
            losses: self.losses[side].iter().collect(),
        };
        let condition = |JudgedCondition { condition, measures }: &'j JudgedCondition| ConditionJson {
            condition: &condition.text,
            measures: measures.iter().map(MeasureJson::new).collect(),
        };
        JudgementJson {
            outcome: self.outcome(),
            level: LEVEL,
            baseline: side(0),
            candidate: side(1),
            tested_together: self.tested,
            conditions: self.conditions.iter().map(condition).collect(),
            grown: self.grown.as_ref(),
            notes: &self.notes,
            lossy: self.is_lossy(),
        }
    }
}

/// The judgement for scripts: times in ns.
#[derive(Serialize, JsonSchema)]
pub struct JudgementJson<'a> {
    /// closed: exit status 4; undecided: 3; open: 0, or 3 where lossy is true.
    outcome: GateOutcome,
    /// The share of comparisons of unchanged sets in which the gate may close.
    level: f64,
    baseline: GateSideJson<'a>,
    candidate: GateSideJson<'a>,
    /// The number of measures for which `p_adjusted` is corrected (Holm).
    tested_together: usize,
    conditions: Vec<ConditionJson<'a>>,
    /// Where the gate is closed and the runs are files: what grew in the launches; else null.
    grown: Option<&'a Difference>,
    /// Sentences about runs that lack something.
    notes: &'a [String],
    /// Whether there are notes.
    lossy: bool,
}

#[derive(Serialize, JsonSchema)]
struct GateSideJson<'a> {
    /// The files or the dataset that the runs were read from.
    title: &'a str,
    runs: usize,
    /// The account of missing data of this side.
    losses: Vec<Loss>,
}

#[derive(Serialize, JsonSchema)]
struct ConditionJson<'a> {
    /// As `--fail-if` has it.
    condition: &'a str,
    /// Those that close the gate first, then the undecided ones.
    measures: Vec<MeasureJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct MeasureJson<'a> {
    /// launch.total, launch.ttid, launch.ttfd, stage.NAME, slice.NAME, method.NAME, state.NAME,
    /// frame.cpu.pNN, frame.overrun.pNN or frame.janky; the type of launches may stand behind it in
    /// brackets.
    measure: &'a str,
    /// too rare: few of the runs have it, whatever their number.
    #[schemars(extend("enum" = ["passes", "closes", "undecided", "too rare"]))]
    verdict: &'static str,
    /// In the words of all comparisons: slower, faster, no change larger than x %, too few runs to tell
    /// (at least n a side).
    verdict_text: String,
    /// Of an undecided measure: the runs that each side needs.
    runs_needed: Option<usize>,
    /// The runs in which it is measured.
    baseline_runs: usize,
    candidate_runs: usize,
    /// Of an overrun negative before the deadline; null for frame.janky, which has a share in its place.
    baseline_median_ns: Option<i64>,
    candidate_median_ns: Option<i64>,
    /// Of frame.janky: the share of frames that were late, 0 to 1; null for times.
    baseline_median_share: Option<f64>,
    candidate_median_share: Option<f64>,
    /// The median of all differences between a run of the candidate and one of the baseline
    /// (Hodges-Lehmann).
    change_ns: Option<f64>,
    /// The same of frame.janky, as a difference of shares; null for times.
    change_share: Option<f64>,
    /// The same in percent of the baseline's median; null where that is 0, and for overruns.
    change_percent: Option<f64>,
    /// Where the change lies with a confidence of 95 %; null with too few runs.
    interval_ns: Option<[f64; 2]>,
    interval_share: Option<[f64; 2]>,
    interval_percent: Option<[f64; 2]>,
    /// The p-value of the Mann-Whitney test in the direction of the condition.
    p: Option<f64>,
    /// The same with Holm's correction; null where the measure was not tested.
    p_adjusted: Option<f64>,
    /// Whether `change_ns` is larger than the condition permits, by chance or not.
    is_beyond: bool,
}

impl<'a> MeasureJson<'a> {
    fn new(measure: &'a JudgedMeasure) -> MeasureJson<'a> {
        let JudgedMeasure { runs, medians, change, .. } = measure;
        let median = |side: usize| (runs[side] > 0).then(|| medians[side]);
        let is_measured = runs[0].min(runs[1]) > 0;
        let is_share = measure.unit == Unit::Share;
        // Times are whole ns; a share is told as a number from 0 to 1.
        let ns = |value: Option<f64>| value.filter(|_| !is_share);
        let share = |value: Option<f64>| value.filter(|_| is_share).map(|value| value / WHOLE_SHARE as f64);
        let change_of = is_measured.then_some(change.estimate);
        let percent = |ns: f64| measure.percent(ns);
        let (verdict, runs_needed) = match measure.verdict {
            MeasureVerdict::Passes => ("passes", None),
            MeasureVerdict::Closes => ("closes", None),
            MeasureVerdict::TooRare => ("too rare", None),
            MeasureVerdict::Undecided { runs_needed } => ("undecided", Some(runs_needed)),
        };
        MeasureJson {
            measure: &measure.name,
            verdict,
            verdict_text: measure.finding().to_string(),
            runs_needed,
            baseline_runs: runs[0],
            candidate_runs: runs[1],
            baseline_median_ns: median(0).filter(|_| !is_share),
            candidate_median_ns: median(1).filter(|_| !is_share),
            baseline_median_share: share(median(0).map(|value| value as f64)),
            candidate_median_share: share(median(1).map(|value| value as f64)),
            change_ns: ns(change_of),
            change_share: share(change_of),
            change_percent: is_measured.then(|| percent(change.estimate)).flatten(),
            interval_ns: change.interval.filter(|_| !is_share),
            interval_share: change
                .interval
                .filter(|_| is_share)
                .map(|ends| ends.map(|end| end / WHOLE_SHARE as f64)),
            interval_percent: change.interval.and_then(|[low, high]| Some([percent(low)?, percent(high)?])),
            p: measure.p,
            p_adjusted: measure.p_adjusted,
            is_beyond: measure.is_beyond,
        }
    }
}

impl Judgement {
    /// The judgement as a JUnit report, which CI systems show: a test case for each measure. The format is
    /// that of Ant's `junitreport` as CI systems read it: `testsuites`, `testsuite`, `testcase`, with
    /// `failure`, `error` and `skipped`. A measure that closes the gate is a failure, an undecided one is an
    /// error, and one that is not judged is skipped.
    pub fn to_junit(&self) -> String {
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
            self.count(|_| true),
            self.count(|verdict| *verdict == MeasureVerdict::Closes),
            self.count(|verdict| matches!(verdict, MeasureVerdict::Undecided { .. })),
            self.count(|verdict| *verdict == MeasureVerdict::TooRare)
        );
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"tracebridge gate\" {counts}>\n\
             <testsuite name=\"tracebridge gate\" {counts}>\n"
        );
        for judged in &self.conditions {
            for measure in &judged.measures {
                let cells = cells_of(judged, measure);
                let all = TITLES.iter().zip(&cells).map(|(title, cell)| format!("{title}: {cell}"));
                let all = escape_xml(&all.collect::<Vec<_>>().join(", "));
                let verdict = escape_xml(&format!("{}: {}", cells[3], cells[7]));
                let result = match measure.verdict {
                    MeasureVerdict::Passes => format!("<system-out>{all}</system-out>"),
                    MeasureVerdict::Closes => {
                        format!("<failure message=\"{verdict}\" type=\"closes\">{all}</failure>")
                    }
                    MeasureVerdict::Undecided { .. } => {
                        format!("<error message=\"{verdict}\" type=\"undecided\">{all}</error>")
                    }
                    MeasureVerdict::TooRare => format!("<skipped message=\"{verdict}\"/>"),
                };
                let class = escape_xml(&judged.condition.text);
                let name = escape_xml(&measure.name);
                text += &format!("<testcase classname=\"{class}\" name=\"{name}\">{result}</testcase>\n");
            }
        }
        let notes = sides(self).into_iter().chain(self.notes.iter().cloned()).chain(self.grown_lines());
        let notes: Vec<String> = notes.chain([outcome(self)]).map(|note| escape_xml(&note)).collect();
        text += &format!("<system-out>{}</system-out>\n</testsuite>\n</testsuites>\n", notes.join("\n"));
        text
    }
}

/// Text as the content of an element or the value of an attribute. XML 1.0 has no place for most control
/// characters, however they are written: they are replaced.
fn escape_xml(text: &str) -> String {
    let has_place =
        |char: char| !matches!(char, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    let text: String = text.chars().map(|char| if has_place(char) { char } else { '\u{fffd}' }).collect();
    escape_attribute(&text)
}

// A judgement as one HTML page that opens offline, with the runs of both sides drawn: to hang on a pull
// request.

/// The size of the drawing of a measure's runs, and the space at its left and right, CSS pixels.
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 30.0;
const MARGIN: f64 = 6.0;
/// The height of the row of each side.
const ROW_Y: [f64; 2] = [9.0, 21.0];

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1f2328;background:#fff}\
h1{font-size:1.5rem;padding-left:.7rem;border-left:.4rem solid #9a6700}h1.open{border-color:#1a7f37}\
h1.closed{border-color:#cf222e}h2{font:600 1rem ui-monospace,monospace;margin-top:2rem}\
table{border-collapse:collapse}th,td{padding:.3rem .7rem;border-bottom:1px solid #d1d9e0;text-align:right}\
th:first-child,td:first-child,td:last-child,th:last-child{text-align:left}td:first-child{overflow-wrap:anywhere}\
tr.closes td{background:#ffebe9}.old{fill:#59636e}.new{fill:#0969da}svg{display:block}\
@media(prefers-color-scheme:dark){body{color:#f0f6fc;background:#0d1117}th,td{border-color:#3d444d}\
tr.closes td{background:#491c1c}.old{fill:#9198a1}.new{fill:#4493f8}}";

impl Judgement {
    /// The judgement as a page.
    pub fn to_html(&self) -> String {
        let title = escape_xml(&outcome(self));
        let class = match self.outcome() {
            GateOutcome::Open => "open",
            GateOutcome::Closed => "closed",
            GateOutcome::Undecided => "undecided",
        };
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
             <style>{STYLE}</style></head><body>\n<h1 class=\"{class}\">{title}</h1>\n<ul>\n"
        );
        for (side, class) in sides(self).iter().zip(["old", "new"]) {
            page += &format!("<li>{} {}</li>\n", dot(class), escape_xml(side));
        }
        page += "</ul>\n";
        for judged in &self.conditions {
            page += &format!("<h2>{}</h2>\n<table><tr>", escape_xml(&judged.condition.text));
            for heading in [&TITLES[..1], &["each run"], &TITLES[1..]].concat() {
                page += &format!("<th>{heading}</th>");
            }
            page += "</tr>\n";
            let (measures, more) = shown(judged);
            for measure in measures {
                let row = if measure.verdict == MeasureVerdict::Closes { " class=\"closes\"" } else { "" };
                let cells = cells_of(judged, measure).map(|cell| format!("<td>{}</td>", escape_xml(&cell)));
                page +=
                    &format!("<tr{row}>{}<td>{}</td>{}</tr>\n", cells[0], runs(measure), cells[1..].concat());
            }
            page += "</table>\n";
            if more > 0 {
                page += &format!("<p>… and {more} more (<code>--json</code> has all)</p>\n");
            }
        }
        page += &list("What grew in the launches", &self.grown_lines());
        page += &list("Notes", &self.notes);
        if self.tested > 1 {
            page += &format!(
                "<p>{} measures were tested together: p is corrected for that (Holm).</p>\n",
                self.tested
            );
        }
        page + "</body></html>\n"
    }
}

/// A title and its lines; empty where there are none.
fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String =
        lines.iter().map(|line| format!("<li>{}</li>\n", escape_xml(line.trim_start()))).collect();
    format!("<h2>{title}</h2>\n<ul>\n{lines}</ul>\n")
}

/// The mark of a side.
fn dot(class: &str) -> String {
    format!(
        "<svg style=\"display:inline\" width=\"10\" height=\"10\"><circle class=\"{class}\" cx=\"5\" cy=\"5\" r=\"4\"/></svg>"
    )
}

/// The runs of both sides as dots on one scale, the baseline above, with a stroke at each median.
fn runs(measure: &JudgedMeasure) -> String {
    let all = || measure.values.iter().flatten().copied();
    let (Some(least), Some(most)) = (all().min(), all().max()) else { return String::new() };
    let span = (most - least).max(1) as f64;
    let x = |value: i64| MARGIN + (WIDTH - 2.0 * MARGIN) * ((value - least) as f64 / span);
    let mut picture =
        format!("<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">", label(measure));
    for (side, class) in ["old", "new"].into_iter().enumerate() {
        let y = ROW_Y[side];
        for value in &measure.values[side] {
            let _ = write!(
                picture,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"3\" fill-opacity=\".5\"/>",
                x(*value)
            );
        }
        if !measure.values[side].is_empty() {
            let at = x(measure.medians[side]) - 1.0;
            let _ = write!(
                picture,
                "<rect class=\"{class}\" x=\"{at:.1}\" y=\"{}\" width=\"2\" height=\"12\"/>",
                y - 6.0
            );
        }
    }
    picture + "</svg>"
}

/// The scale of a drawing in words.
fn label(measure: &JudgedMeasure) -> String {
    let end = |value_: Option<i64>| value_.map_or(String::new(), |number| value(measure.unit, number as f64));
    let all = || measure.values.iter().flatten().copied();
    let kind = if measure.unit == Unit::Share { "shares" } else { "times" };
    format!("{kind} of all runs, from {} to {}", end(all().min()), end(all().max()))
}

#[cfg(test)]
mod tests {
    use super::{escape_markdown, escape_xml};

    #[test]
    fn names_cannot_break_the_report() {
        assert_eq!(escape_xml("a<b>&\"c\"]]>"), "a&lt;b&gt;&amp;&quot;c&quot;]]&gt;");
        assert_eq!(escape_xml("\0\u{1b}[1m\n\u{ffff}é\u{1f600}"), "��[1m��é\u{1f600}");
    }

    #[test]
    fn names_cannot_break_a_table_or_bring_markup() {
        assert_eq!(
            escape_markdown("a|b\n<img src=x> [x](y) `c` d"),
            r"a\|b�\<img src=x\> \[x\]\(y\) \`c\` d"
        );
        assert_eq!(escape_markdown("slice.draw 95 %, +5.0 -"), "slice.draw 95 %, +5.0 -");
    }
}
