//! A judgement as a JUnit report, which CI systems show: a test case for each measure.
//!
//! The format is that of Ant's `junitreport` as CI systems read it: `testsuites`, `testsuite`, `testcase`,
//! with `failure`, `error` and `skipped`.

use super::cells::{self, TITLES};
use super::judge::{Judgement, Verdict};
use crate::markup::escape_attribute;

impl Judgement {
    /// The judgement as a JUnit report. A measure that closes the gate is a failure, an undecided one is an
    /// error, and one that is not judged is skipped.
    pub fn to_junit(&self) -> String {
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
            self.count(|_| true),
            self.count(|verdict| *verdict == Verdict::Closes),
            self.count(|verdict| matches!(verdict, Verdict::Undecided { .. })),
            self.count(|verdict| *verdict == Verdict::TooRare)
        );
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"tracebridge gate\" {counts}>\n\
             <testsuite name=\"tracebridge gate\" {counts}>\n"
        );
        for judged in &self.conditions {
            for measure in &judged.measures {
                let cells = cells::cells(judged, measure);
                let all = TITLES.iter().zip(&cells).map(|(title, cell)| format!("{title}: {cell}"));
                let all = escape(&all.collect::<Vec<_>>().join(", "));
                let verdict = escape(&format!("{}: {}", cells[3], cells[7]));
                let result = match measure.verdict {
                    Verdict::Passes => format!("<system-out>{all}</system-out>"),
                    Verdict::Closes => {
                        format!("<failure message=\"{verdict}\" type=\"closes\">{all}</failure>")
                    }
                    Verdict::Undecided { .. } => {
                        format!("<error message=\"{verdict}\" type=\"undecided\">{all}</error>")
                    }
                    Verdict::TooRare => format!("<skipped message=\"{verdict}\"/>"),
                };
                let (class, name) = (escape(&judged.condition.text), escape(&measure.name));
                text += &format!("<testcase classname=\"{class}\" name=\"{name}\">{result}</testcase>\n");
            }
        }
        let notes =
            cells::sides(self).into_iter().chain(self.notes.iter().cloned()).chain(self.grown_lines());
        let notes: Vec<String> = notes.chain([cells::outcome(self)]).map(|note| escape(&note)).collect();
        text += &format!("<system-out>{}</system-out>\n</testsuite>\n</testsuites>\n", notes.join("\n"));
        text
    }
}

/// Text as the content of an element or the value of an attribute. XML 1.0 has no place for most control
/// characters, however they are written: they are replaced.
fn escape(text: &str) -> String {
    let has_place =
        |char: char| !matches!(char, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    let text: String = text.chars().map(|char| if has_place(char) { char } else { '\u{fffd}' }).collect();
    escape_attribute(&text)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_break_the_report() {
        assert_eq!(escape("a<b>&\"c\"]]>"), "a&lt;b&gt;&amp;&quot;c&quot;]]&gt;");
        assert_eq!(escape("\0\u{1b}[1m\n\u{ffff}é\u{1f600}"), "��[1m��é\u{1f600}");
    }
}
