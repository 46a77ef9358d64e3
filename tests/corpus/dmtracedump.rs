//! Compares the product's `dmtracedump` with the original program, on every file that the original reads.

use std::path::Path;
use support::Command;

/// Runs a program and returns its standard output; `None` where it failed. Exit status 3 is success on a
/// damaged file.
fn output(command: &mut Command) -> Option<String> {
    let out = command.output().unwrap();
    matches!(out.status.code(), Some(0 | 3)).then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

fn numbers(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).count()
}

/// Compares both outputs for one file byte for byte, and returns how many values were compared. `None` where
/// the original program does not read the file.
fn compare(path: &Path, options: &[&str]) -> Option<usize> {
    let theirs = output(Command::new("dmtracedump").args(options).arg(path))?;
    if theirs.is_empty() {
        return None;
    }
    let ours = output(support::tracebridge().arg("dmtracedump").args(options).arg(path));
    let ours = ours.unwrap_or_else(|| panic!("{} {options:?}: failed", path.display()));
    for (n, (a, b)) in theirs.lines().zip(ours.lines()).enumerate() {
        assert_eq!(a, b, "{} {options:?} line {}", path.display(), n + 1);
    }
    assert_eq!(theirs.len(), ours.len(), "{} {options:?}", path.display());
    Some(numbers(&theirs))
}

#[test]
fn dmtracedump_prints_what_the_old_one_prints() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("dmtracedump") {
        return support::skip("dmtracedump", "no dmtracedump on PATH (Debian package dmtracedump)");
    }
    let mut files = 0;
    let mut values = 0;
    for entry in std::fs::read_dir(corpus.join("method-trace")).unwrap() {
        let path = entry.unwrap().path();
        // Its records are no records: the old tool prints empty tables for it, we say what is wrong and exit
        // with 3.
        if path.ends_with("tadfisher__platform_tools_base__header.trace") {
            continue;
        }
        let Some(profile) = compare(&path, &[]) else { continue };
        files += 1;
        values += profile + compare(&path, &["-o"]).unwrap_or(0);
    }
    println!("{files} files: {values} values equal");
    assert!(files >= 8 && values > 100_000, "{files} files, {values} values");
}

/// The numbers that a page shows, in their order, from the text `from` on: not those of the script, the style
/// and the tags. A difference below 0, which the old tool prints modulo 2^64, has its own value.
fn shown_numbers(page: &str, from: &str) -> Vec<String> {
    let mut text = page[page.find(from).unwrap()..].to_owned();
    for element in ["script", "style"] {
        while let Some(start) = text.find(&format!("<{element}")) {
            let close = format!("</{element}>");
            let end = text[start..].find(&close).map_or(text.len(), |end| start + end + close.len());
            text.replace_range(start..end, " ");
        }
    }
    // The old page names both files once more between its tables.
    text = text.lines().filter(|line| !line.starts_with("Run ")).collect::<Vec<_>>().join("\n");
    let mut plain = String::new();
    for part in text.split('<') {
        plain += part.split_once('>').map_or(part, |(_, shown)| shown);
        plain.push(' ');
    }
    let plain = plain.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let words = plain.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let numbers = words.map(|word| word.trim_matches('.')).filter(|word| !word.is_empty());
    let own = |word: &str| match word.parse::<u64>() {
        Ok(wrapped) if wrapped > u64::MAX / 2 => wrapped.wrapping_neg().to_string(),
        _ => word.to_owned(),
    };
    numbers.map(own).collect()
}

/// Compares the numbers of both pages, and returns how many they are. `None` where the original program
/// does not read the file.
fn compare_pages(path: &Path, options: &[&str], from: &str) -> Option<usize> {
    let theirs = output(Command::new("dmtracedump").args(options).arg(path))?;
    if theirs.is_empty() {
        return None;
    }
    let ours = output(support::tracebridge().arg("dmtracedump").args(options).arg(path)).unwrap();
    let (theirs, ours) = (shown_numbers(&theirs, from), shown_numbers(&ours, from));
    for (n, (a, b)) in theirs.iter().zip(&ours).enumerate() {
        let near = n.saturating_sub(3)..(n + 3).min(theirs.len()).min(ours.len());
        let (theirs, ours) = (&theirs[near.clone()], &ours[near]);
        assert_eq!(a, b, "{} {options:?} number {n}: {theirs:?} {ours:?}", path.display());
    }
    assert_eq!(theirs.len(), ours.len(), "{} {options:?}", path.display());
    Some(theirs.len())
}

#[test]
fn each_number_of_the_old_pages_is_on_ours_in_the_same_order() {
    let Some(corpus) = support::corpus() else { return };
    if !support::has_program("dmtracedump") {
        return support::skip("dmtracedump", "no dmtracedump on PATH (Debian package dmtracedump)");
    }
    let dir = corpus.join("method-trace");
    let (mut files, mut values, mut compared) = (0, 0, 0);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        // See above.
        if path.ends_with("tadfisher__platform_tools_base__header.trace") {
            continue;
        }
        let Some(count) = compare_pages(&path, &["-h"], "Total cycles") else { continue };
        files += 1;
        values += count;
        let earlier = dir.join("tadfisher__platform_tools_base__basic.trace");
        compared += compare_pages(&path, &["-h", "-d", earlier.to_str().unwrap()], "<table").unwrap_or(0);
    }
    println!("{files} pages: {values} numbers equal; {compared} in comparisons");
    assert!(files >= 8 && values > 60_000 && compared > 5_000, "{files} {values} {compared}");
}

#[test]
fn a_streaming_file_and_its_gzip_twin_print_the_same() {
    let Some(corpus) = support::corpus() else { return };
    for name in [
        "firefox-devtools__profiler__art-trace-streaming.trace",
        "firefox-devtools__profiler__art-trace-regular.trace",
    ] {
        let path = corpus.join("method-trace").join(name);
        let plain = output(support::tracebridge().arg("dmtracedump").arg(&path)).unwrap();
        let gzip =
            output(support::tracebridge().arg("dmtracedump").arg(path.with_extension("trace.gz"))).unwrap();
        assert!(plain.len() > 100_000 && plain == gzip, "{name}");
    }
}
