//! Every link between the pages leads somewhere: to a file of the repository and, with an anchor, to a
//! heading of that page. Addresses of other sites are not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use support::Command;

use super::root;

/// Two screens: the most lines that the README may have.
const README_MAX_LINES: usize = 125;

/// The first screen of the README, in lines.
const FIRST_SCREEN_LINES: usize = 40;

#[test]
fn every_link_leads_to_a_tracked_file_and_to_a_heading_in_it() {
    let repository = Repository::read();
    let broken = repository.broken_links();
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

#[test]
fn every_page_and_picture_of_docs_is_reached_from_the_readme() {
    let repository = Repository::read();
    let reached = repository.reached_from("README.md");
    let is_shown = |file: &&String| [".md", ".png", ".svg"].iter().any(|ending| file.ends_with(ending));
    let in_docs = repository.files.iter().filter(|file| file.starts_with("docs/")).filter(is_shown);
    let missed: Vec<&String> = in_docs.filter(|file| !reached.contains(*file)).collect();
    assert!(missed.is_empty(), "no links lead there from README.md: {missed:#?}");
}

/// mdBook takes the pages of the site from this list: a page that is missing there is missing in the site.
#[test]
fn every_page_of_docs_stands_in_the_summary_of_the_site_once() {
    let repository = Repository::read();
    let summary = "docs/SUMMARY.md";
    let listed: Vec<String> = links(&repository.pages[summary])
        .into_iter()
        .filter_map(|link| repository.follow(summary, &link.target).ok().flatten())
        .collect();
    let in_docs = repository.pages.keys().filter(|page| page.starts_with("docs/") && *page != summary);
    for page in in_docs.chain([&"README.md".to_owned(), &"CHANGELOG.md".to_owned()]) {
        assert_eq!(listed.iter().filter(|one| *one == page).count(), 1, "{summary}: {page}");
    }
}

#[test]
fn the_readme_fits_two_screens_and_begins_with_what_a_user_needs() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines: Vec<&str> = readme.lines().collect();
    assert!(lines.len() <= README_MAX_LINES, "README.md has {} lines", lines.len());
    let first_screen = lines[..FIRST_SCREEN_LINES].join("\n");
    for wanted in ["](docs/demo.png)", "tracebridge adb launch ", "./scripts/demo", "./scripts/test"] {
        assert!(first_screen.contains(wanted), "the first {FIRST_SCREEN_LINES} lines lack {wanted}");
    }
}

/// The files that git tracks, and the texts of the pages among them.
struct Repository {
    files: BTreeSet<String>,
    pages: BTreeMap<String, String>,
}

impl Repository {
    fn read() -> Repository {
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).run();
        assert!(listed.status.success(), "git ls-files: {}", listed.stderr);
        let names = listed.stdout;
        let files: BTreeSet<String> = names.split_terminator('\0').map(str::to_owned).collect();
        let text_of = |page: &String| fs::read_to_string(root().join(page)).unwrap();
        let pages = files.iter().filter(|file| file.ends_with(".md"));
        let pages = pages.map(|page| (page.clone(), text_of(page))).collect();
        Repository { files, pages }
    }

    /// The links of all pages that lead to no file or to no heading, each with its page, line and fault.
    fn broken_links(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (page, text) in &self.pages {
            for link in links(text) {
                if let Err(fault) = self.follow(page, &link.target) {
                    broken.push(format!("{page}:{}: {}: {fault}", link.line, link.target));
                }
            }
        }
        broken
    }

    /// The file or directory that a link of `page` leads to. None for an address of another site.
    fn follow(&self, page: &str, target: &str) -> Result<Option<String>, &'static str> {
        if target.contains("://") || target.starts_with("mailto:") {
            return Ok(None);
        }
        let (path, anchor) = match target.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (target, None),
        };
        let file = if path.is_empty() { page.to_owned() } else { resolve(page, path)? };
        if !self.files.contains(&file) && !self.is_directory(&file) {
            return Err("git tracks no such file");
        }
        if let Some(anchor) = anchor {
            let text = self.pages.get(&file).ok_or("only pages have headings")?;
            if !anchors(text).contains(anchor) {
                return Err("the page has no such heading");
            }
        }
        Ok(Some(file))
    }

    fn is_directory(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        self.files.range(below.clone()..).next().is_some_and(|file| file.starts_with(&below))
    }

    /// The files that links lead to, from `start` on. A link to a directory shows its README.md.
    fn reached_from(&self, start: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::from([start.to_owned()]);
        let mut next = vec![start.to_owned()];
        while let Some(page) = next.pop() {
            let Some(text) = self.pages.get(&page) else { continue };
            for link in links(text) {
                let Ok(Some(mut file)) = self.follow(&page, &link.target) else { continue };
                if self.is_directory(&file) {
                    file = format!("{}/README.md", file.trim_end_matches('/'));
                }
                if reached.insert(file.clone()) {
                    next.push(file);
                }
            }
        }
        reached
    }
}

/// The path of a file that `page` names relative to itself.
fn resolve(page: &str, path: &str) -> Result<String, &'static str> {
    if path.starts_with('/') {
        return Err("the path is not relative");
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop().ok_or("the path leads out of the repository")?),
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

struct Link {
    /// Counted from 1.
    line: usize,
    target: String,
}

/// The targets of a page's links and images: `[text](target)`, `[name]: target`, `src="target"` and
/// `href="target"`.
fn links(text: &str) -> Vec<Link> {
    let text = without_code_spans(&without_fenced_code(text));
    let mut found = Vec::new();
    for (before, ends) in [("](", &[')', ' '][..]), ("src=\"", &['"']), ("href=\"", &['"'])] {
        for (at, _) in text.match_indices(before) {
            let rest = &text[at + before.len()..];
            let target = rest.split(ends).next().unwrap_or_default().to_owned();
            found.push(Link { line: text[..at].matches('\n').count() + 1, target });
        }
    }
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            let target = target.split(' ').next().unwrap_or_default().to_owned();
            found.push(Link { line: number + 1, target });
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them: the heading's text in lower case, without
/// everything but letters, digits, `_`, `-` and spaces, and with `-` for each space. A second heading of one
/// anchor has `-1` behind it, a third `-2`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for heading in without_fenced_code(text).lines().filter_map(heading_text) {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|one| !anchors.contains(one));
        anchors.extend(free);
    }
    anchors
}

/// The text of a line that is a heading; of a link in it only the words that are shown.
fn heading_text(line: &str) -> Option<String> {
    let text = line.trim_start_matches('#');
    if !(1..=6).contains(&(line.len() - text.len())) || !text.starts_with(' ') {
        return None;
    }
    let mut shown = text.trim().trim_end_matches('#').trim_end().to_owned();
    while let Some(from) = shown.find("](") {
        let to = shown[from..].find(')').map_or(shown.len(), |length| from + length + 1);
        shown.replace_range(from..to, "");
    }
    Some(shown)
}

/// The text with empty lines in place of fenced code.
fn without_fenced_code(text: &str) -> String {
    let mut fence = None;
    let mut kept = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        let is_fence = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match fence {
            None if is_fence.is_none() => kept.push_str(line),
            None => fence = is_fence,
            Some(opened) if start.trim_end() == opened => fence = None,
            Some(_) => {}
        }
        kept.push('\n');
    }
    kept
}

/// The text with spaces in place of code in backticks. Its lines stay where they are.
fn without_code_spans(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(from) = rest.find('`') {
        kept.push_str(&rest[..from]);
        let marks = rest[from..].len() - rest[from..].trim_start_matches('`').len();
        let inside = &rest[from + marks..];
        let paragraph = inside.find("\n\n").unwrap_or(inside.len());
        // Where no backticks of the same number follow in the paragraph, the backticks are text.
        let code = closing_backticks(&inside[..paragraph], marks).map_or(marks, |at| marks + at + marks);
        let blank = |c: char| if c == '\n' { c } else { ' ' };
        kept.extend(rest[from..from + code].chars().map(blank));
        rest = &rest[from + code..];
    }
    kept + rest
}

/// Where a run of exactly so many backticks begins.
fn closing_backticks(text: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let from = at + found;
        let run = text[from..].len() - text[from..].trim_start_matches('`').len();
        if run == marks {
            return Some(from);
        }
        at = from + run;
    }
    None
}

/// A repository of these pages and other files.
fn repository(pages: &[(&str, &str)], others: &[&str]) -> Repository {
    let pages: BTreeMap<String, String> =
        pages.iter().map(|(p, text)| ((*p).into(), (*text).into())).collect();
    let files = pages.keys().cloned().chain(others.iter().map(|file| (*file).into())).collect();
    Repository { files, pages }
}

#[test]
fn a_wrong_link_and_a_wrong_anchor_are_found() {
    let page = "# A page\n\
        [good](docs/x.md), [the\ngood](docs/x.md#the-heading), [own](#a-page), ![good](docs/p.png \"title\")\n\
        [directory](docs/), [site](https://example.com/none#none), [mail](mailto:a@example.com)\n\
        [wrong](docs/none.md), ![wrong](none.png), <img src=\"none.svg\">\n\
        [wrong](docs/x.md#none) and [wrong](#none), [out](../x), [root](/docs/x.md), [none](docs/p.png#x)\n\
        [reference]: docs/none2.md\n";
    let other = "## The heading\n[back](../README.md#a-page), [wrong](README.md)\n";
    let repository = repository(&[("README.md", page), ("docs/x.md", other)], &["docs/p.png"]);
    assert_eq!(
        repository.broken_links(),
        [
            "README.md:5: docs/none.md: git tracks no such file",
            "README.md:5: none.png: git tracks no such file",
            "README.md:6: docs/x.md#none: the page has no such heading",
            "README.md:6: #none: the page has no such heading",
            "README.md:6: ../x: the path leads out of the repository",
            "README.md:6: /docs/x.md: the path is not relative",
            "README.md:6: docs/p.png#x: only pages have headings",
            "README.md:5: none.svg: git tracks no such file",
            "README.md:7: docs/none2.md: git tracks no such file",
            "docs/x.md:2: README.md: git tracks no such file",
        ]
    );
}

#[test]
fn code_holds_no_links_and_no_headings() {
    let page = "`[a](b)` and ``[`a`](b)``, a lone ` here\n\n`\n```sh\n# none\n[a](b)\n```\n~~~\n[a](b)\n~~~\n\n[c](d)\n";
    let found: Vec<(usize, String)> = links(page).into_iter().map(|link| (link.line, link.target)).collect();
    assert_eq!(found, [(12, "d".to_owned())]);
    assert!(anchors(page).is_empty());
}

#[test]
fn anchors_are_those_that_github_makes() {
    let page =
        "# C and C++\n## `--compress`, or [a link](x.md): no!\n## Limits\n### Limits ##\n## Maße_2\n#none\n";
    let expected = ["c-and-c", "--compress-or-a-link-no", "limits", "limits-1", "maße_2"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into());
}

#[test]
fn pages_are_reached_over_other_pages_and_directories() {
    let pages =
        [("README.md", "[a](docs/)"), ("docs/README.md", "[b](b.md)"), ("docs/b.md", ""), ("docs/c.md", "")];
    let reached = repository(&pages, &[]).reached_from("README.md");
    assert_eq!(reached, ["README.md", "docs/README.md", "docs/b.md"].map(str::to_owned).into());
}
