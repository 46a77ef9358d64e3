//! Report pages of every text and every method trace of the corpus hold what the files hold: the counts of
//! texts are compared with a count of their lines, those of method traces with `profile`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use support::report_page::Page;

fn convert(args: &[&Path]) {
    support::tracebridge().args(args).run().exited_with_one_of(&[0, 3]);
}

/// Facts from the lines of a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    processes: usize,
    threads: usize,
    slices: usize,
    async_slices: usize,
    instants: usize,
    counters: usize,
    frequencies: usize,
}

/// Counts the lines of a text. Nothing of the product's readers is used.
fn counts_of_text(text: &[u8]) -> Counts {
    let text = String::from_utf8_lossy(text);
    let mut counts = Counts::default();
    let mut threads: BTreeSet<i64> = BTreeSet::new();
    // The process of each thread, and whether the line says so, or only a marker.
    let mut process_of: HashMap<i64, (i64, bool)> = HashMap::new();
    let mut processes: BTreeSet<i64> = BTreeSet::new();
    let mut open: HashMap<(char, i64, String, String), usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // `comm-tid (tgid) [cpu] flags time: name: fields`; names of threads hold any character.
        let Some((head, rest)) = split_at_cpu(line) else { continue };
        let mut words = rest.splitn(3, ": ");
        let (Some(_), Some(name)) = (words.next(), words.next()) else { continue };
        let fields = words.next().unwrap_or("");
        let (task, tgid) = head.trim_end().rsplit_once(" (").unwrap();
        let tid: i64 = task.trim_end().rsplit_once('-').unwrap().1.parse().unwrap();
        let tgid = tgid.trim_end_matches(')').trim().parse::<i64>().ok();
        threads.insert(tid);
        if let Some(tgid) = tgid.filter(|_| tid > 0) {
            process_of.insert(tid, (tgid, true));
        }
        let field = |key: &str| {
            let at = fields.find(&format!("{key}="))? + key.len() + 1;
            let end = fields[at..].find(|c: char| !c.is_ascii_digit()).map_or(fields.len(), |end| at + end);
            fields[at..end].parse::<i64>().ok()
        };
        match name {
            "sched_switch" => threads.extend(field("prev_pid").into_iter().chain(field("next_pid"))),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => threads.extend(field(" pid")),
            "cpu_frequency" => counts.frequencies += 1,
            "tracing_mark_write" => {
                let parts: Vec<&str> = fields.split('|').collect();
                let pid = parts.get(1).and_then(|pid| pid.trim().parse::<i64>().ok()).filter(|pid| *pid > 0);
                if let Some(pid) = pid.filter(|_| parts[0].len() == 1) {
                    process_of.entry(tid).or_insert((pid, false));
                    if matches!(parts[0], "S" | "F" | "G" | "H" | "N" | "C") {
                        processes.insert(pid);
                    }
                }
                let key =
                    |kind, name: &str, cookie: &str| (kind, pid.unwrap_or(0), name.into(), cookie.into());
                match (parts[0], parts.len()) {
                    ("B", 2..) => counts.slices += 1,
                    ("E", _) => {}
                    ("S", 4) => {
                        counts.async_slices += 1;
                        *open.entry(key('S', parts[2], parts[3])).or_default() += 1;
                    }
                    ("G", 5) => {
                        counts.async_slices += 1;
                        *open.entry(key('G', parts[2], parts[4])).or_default() += 1;
                    }
                    ("F", 4) | ("H", 4..=5) => {
                        let kind = if parts[0] == "F" { 'S' } else { 'G' };
                        let open = open.entry(key(kind, parts[2], parts[parts.len() - 1])).or_default();
                        // An end without a begin is a slice that began before the text.
                        counts.async_slices += usize::from(*open == 0);
                        *open = open.saturating_sub(1);
                    }
                    ("C", 4..) => counts.counters += 1,
                    _ => counts.instants += 1,
                }
            }
            _ => {}
        }
    }
    threads.remove(&0);
    threads.retain(|tid| *tid > 0);
    processes.extend(process_of.values().map(|(pid, _)| *pid).filter(|pid| *pid > 0));
    Counts { threads: threads.len(), processes: processes.len(), ..counts }
}

/// The parts of a line before and behind its CPU, `[000]`.
fn split_at_cpu(line: &str) -> Option<(&str, &str)> {
    let cpu = line.match_indices(") [").find(|(at, _)| {
        let digits = &line[at + 3..];
        let end = digits.find(']').unwrap_or(0);
        end >= 3 && digits[..end].bytes().all(|b| b.is_ascii_digit())
    });
    let at = cpu?.0;
    let rest = &line[at + 3..];
    Some((&line[..=at], rest.split_once("] ")?.1))
}

fn counts_of_page(page: &Page) -> Counts {
    let people = |member: &str| page.index[member].as_array().unwrap();
    Counts {
        processes: people("processes").len(),
        threads: people("threads").iter().filter(|thread| thread["tid"].as_i64() > Some(0)).count(),
        slices: page.count("slices", "atrace"),
        async_slices: page.count("slices", "async"),
        instants: page.count("instants", "markers"),
        counters: page.count("counter", "counter") + page.count("counter", "vsync"),
        frequencies: page.count("counter", "frequency"),
    }
}

#[test]
fn a_page_of_each_text_holds_the_threads_slices_instants_and_counters_that_its_lines_have() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    let text = dir.path().join("a.txt");
    let page = dir.path().join("a.html");
    let mut files = 0;
    let mut slices = 0;
    let mut others = 0;
    for folder in ["systrace", "ftrace-text"] {
        for entry in fs::read_dir(corpus.join(folder)).unwrap() {
            let source = entry.unwrap().path();
            // Lists of threads and of control groups: an output would hold no event, and is refused.
            if source.to_string_lossy().ends_with("_dump") {
                continue;
            }
            convert(&[Path::new("convert"), &source, Path::new("-o"), &text]);
            convert(&[Path::new("report"), &text, Path::new("-o"), &page]);
            let lines = fs::read(&text).unwrap();
            let page = Page::read(&page);
            page.check();
            let counted = counts_of_text(&lines);
            let mut found = counts_of_page(&page);
            // Clock rates are counters of the machine.
            let rates = page.tracks();
            let rates = rates
                .iter()
                .filter(|track| track.is("counter", "counter") && track.about["process"].is_null());
            found.counters -= rates.map(|track| track.count()).sum::<usize>();
            assert_eq!(found, counted, "{}", source.display());
            let from_source = dir.path().join("b.html");
            convert(&[Path::new("report"), &source, Path::new("-o"), &from_source]);
            let from_source = counts_of_page(&Page::read(&from_source));
            assert_eq!(from_source.slices, counted.slices, "{}", source.display());
            files += 1;
            slices += counted.slices;
            others += counted.async_slices.min(1) + counted.instants.min(1) + counted.frequencies.min(1);
        }
    }
    assert!(files > 25 && slices > 5_000 && others > 10, "{files} files, {slices} slices, {others}");
}

/// The calls, inclusive and exclusive ns of each method, in wall time and in CPU time.
type Figures = BTreeMap<String, [u64; 5]>;

fn figures_of_page(page: &Page) -> Figures {
    let mut figures = Figures::new();
    for track in page.tracks().iter().filter(|track| track.about["kind"] == "calls") {
        let column = |name: &str| track.columns.get(name).cloned();
        let methods = &track.columns["method"];
        let depths = &track.columns["depth"];
        let wall = column("duration").unwrap();
        let cpu = column("cpu").unwrap_or_else(|| vec![0; wall.len()]);
        let mut open: Vec<usize> = Vec::new();
        for at in 0..track.count() {
            open.truncate(depths[at] as usize);
            let name = |at: usize| page.method(methods[at]).join("\n");
            if let Some(caller) = open.last() {
                let caller = figures.get_mut(&name(*caller)).unwrap();
                caller[2] = caller[2].wrapping_sub(wall[at] as u64);
                caller[4] = caller[4].wrapping_sub(cpu[at] as u64);
            }
            let own = figures.entry(name(at)).or_default();
            own[0] += 1;
            own[2] = own[2].wrapping_add(wall[at] as u64);
            own[4] = own[4].wrapping_add(cpu[at] as u64);
            if !open.iter().any(|outer| methods[*outer] == methods[at]) {
                own[1] += wall[at] as u64;
                own[3] += cpu[at] as u64;
            }
            open.push(at);
        }
    }
    figures
}

fn figures_of_profile(said: &Value) -> Figures {
    let mut figures = Figures::new();
    for row in said["rows"].as_array().unwrap() {
        let number = |key: &str| row[key].as_u64().unwrap_or(0);
        let full = row["name"].as_str().unwrap();
        let class = row["class"].as_str().unwrap();
        let (name, signature) = full.split_once(' ').unwrap_or((full, ""));
        let name = name.strip_prefix(&format!("{class}.")).unwrap_or(name);
        // A method that is in no list has its number as a name.
        let key = match full.strip_prefix("(unknown ") {
            Some(number) => ["", number.trim_end_matches(')'), ""],
            None => [class, name, signature],
        };
        let own = figures.entry(key.join("\n")).or_default();
        let wall = ["wall_inclusive_ns", "wall_exclusive_ns"].map(number);
        let cpu = ["cpu_inclusive_ns", "cpu_exclusive_ns"].map(number);
        for (sum, value) in own.iter_mut().zip([
            number("calls") + number("recursive_calls"),
            wall[0],
            wall[1],
            cpu[0],
            cpu[1],
        ]) {
            *sum += value;
        }
    }
    figures
}

#[test]
fn a_page_of_each_method_trace_has_the_calls_and_times_of_its_profile() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    let page = dir.path().join("a.html");
    let mut traces = 0;
    let mut methods = 0;
    for entry in fs::read_dir(corpus.join("method-trace")).unwrap() {
        let source: PathBuf = entry.unwrap().path();
        let said = support::tracebridge().args(["profile", "--json"]).arg(&source).output().unwrap();
        let Ok(said) = serde_json::from_slice::<Value>(&said.stdout) else { continue };
        let report = support::tracebridge().arg("report").arg(&source).arg("-o").arg(&page).run();
        // A head alone has no call to show.
        if report.stderr.contains("no event, call, sample or frame could be read") {
            continue;
        }
        assert!(matches!(report.code(), Some(0 | 3)), "{report:?}");
        let page = Page::read(&page);
        page.check();
        let problems = &said["problems"];
        // A profile also counts the calls that began before the trace, for which a timeline has no place.
        // Times that step back, or that the timeline's range ends at, are told in different ways.
        let start: u64 = page.index["start_ns"].as_str().unwrap().parse().unwrap();
        let is_in_range = start < i64::MAX as u64 / 2;
        let before = problems["exits_without_enter"].as_u64().unwrap();
        if before > 0 || !is_in_range || problems["time_steps_back"] != 0 {
            let calls: u64 = figures_of_profile(&said).values().map(|own| own[0]).sum();
            assert_eq!(calls - before, page.count("calls", "methods") as u64, "{}", source.display());
            continue;
        }
        let mut ours = figures_of_page(&page);
        let mut theirs = figures_of_profile(&said);
        if page.index["times"] == "cpu" {
            // The trace has one clock, whose times are the page's.
            theirs.values_mut().for_each(|own| (own[1], own[2]) = (own[3], own[4]));
        }
        ours.retain(|_, own| own[0] > 0);
        theirs.retain(|_, own| own[0] > 0);
        assert_eq!(ours.len(), theirs.len(), "{}", source.display());
        for (name, own) in &ours {
            assert_eq!(Some(own), theirs.get(name), "{}: {name}", source.display());
        }
        traces += 1;
        methods += ours.len();
    }
    assert!(traces >= 5 && methods > 500, "{traces} traces, {methods} methods");
}
