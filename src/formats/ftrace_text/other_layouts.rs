//! Texts whose lines have another layout, rewritten to lines of the common one: the latency format, and that
//! of the function graph tracer (`lat_print_generic()` in kernel/trace/trace_output.c, and
//! kernel/trace/trace_functions_graph.c).

use std::io::{self, Write};

use super::event_line::{self, FLAG_LETTERS, FLAGS};
use crate::formats::spill::{FileBytes, SpillWriter};
use crate::formats::text_lines::lines;

/// A text of the common layout, and the name of the layout that it had.
pub(super) struct EventLines {
    pub(super) layout: &'static str,
    pub(super) text: FileBytes,
}

const FUNCTION_GRAPH: &str = "a text of the function graph tracer";

/// How many lines at the start of a text show its layout.
const HEADER_LINES: usize = 40;

/// Whether a text is one of the function graph tracer in which no entry has a time and a task.
pub(super) fn lacks_times(head: &[u8]) -> bool {
    let graph =
        as_event_lines(head.trim_ascii_start()).ok().flatten().filter(|text| text.layout == FUNCTION_GRAPH);
    graph.is_some_and(|graph| lines(&graph.text).all(|(_, line)| event_line::parse(line).is_none()))
}

/// The text in the common layout; `None` where it has that layout already.
///
/// # Errors
/// Those of a temporary file, in which a long text is.
pub(super) fn as_event_lines(text: &[u8]) -> io::Result<Option<EventLines>> {
    let header =
        || lines(text).map(|(_, line)| line).take(HEADER_LINES).take_while(|line| line.starts_with(b"#"));
    let header_has = |part: &[u8]| header().any(|line| memchr::memmem::find(line, part).is_some());
    if header_has(b" latency trace v") {
        return rewrite(text, "a text in latency format", latency_line).map(Some);
    }
    if header_has(b"tracer: function_graph") {
        let mut tasks = Vec::new();
        return rewrite(text, FUNCTION_GRAPH, |line| graph_line(line, &mut tasks)).map(Some);
    }
    Ok(None)
}

fn rewrite(
    text: &[u8],
    layout: &'static str,
    mut rewritten: impl FnMut(&str) -> Option<String>,
) -> io::Result<EventLines> {
    let mut out = SpillWriter::default();
    for (_, line) in lines(text) {
        match std::str::from_utf8(line).ok().and_then(&mut rewritten) {
            Some(line) => out.write_all(line.as_bytes())?,
            None => out.write_all(line)?,
        }
        out.write_all(b"\n")?;
    }
    Ok(EventLines { layout, text: out.finish()? })
}

/// A line of the latency format: `      ls-2230    3d...    0us+: _raw_spin_lock <-ata_scsi_queuecmd`, whose
/// times are µs since the trace began.
fn latency_line(line: &str) -> Option<String> {
    if let Some(counts) = line.strip_prefix("# latency: ") {
        // `# latency: 100 us, #4/4, CPU#3 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)`
        let (entries, rest) = counts.split_once(" #")?.1.split_once(',')?;
        let cpus = rest.split_once("#P:").map_or("", |(_, cpus)| cpus.trim_end_matches(')'));
        return Some(format!("# entries-in-buffer/entries-written: {entries}   #P:{cpus}"));
    }
    let (place, rest) = line.split_once(": ")?;
    let before_unit = place.trim_end_matches([' ', '+', '!', '#', '*', '@', '$']).strip_suffix("us")?;
    let (place, micros) = before_unit.rsplit_once(' ')?;
    let micros: u64 = micros.parse().ok()?;
    let place = place.trim_end();
    let (task, place) = place.rsplit_once(' ')?;
    let cpu = &place[..place.find(|c: char| !c.is_ascii_digit())?];
    let flags = &place[cpu.len()..];
    let cpu: u32 = cpu.parse().ok()?;
    let name = entry_name(rest);
    let seconds = micros / 1_000_000;
    let fraction = micros % 1_000_000;
    Some(format!("{} [{cpu:03}] {flags} {seconds}.{fraction:06}: {name}{rest}", task.trim_end()))
}

/// The name of an entry that the latency format prints without one.
fn entry_name(rest: &str) -> &'static str {
    let words = || rest.split_ascii_whitespace();
    if rest.starts_with("<stack trace>") {
        "kernel_stack: "
    } else if rest.contains(" <-") {
        "function: "
    } else if words().any(|word| word == "==>") && words().next().is_some_and(|word| word.contains(':')) {
        "context_switch: "
    } else if words().any(|word| word == "+") && words().next().is_some_and(|word| word.contains(':')) {
        "wakeup: "
    } else {
        ""
    }
}

/// The task that each CPU runs, `comm-tid`, by the last line that names it.
type TaskOfCpu = Vec<(u32, String)>;

/// A line of the function graph tracer with times: ` 360.774523 |   1)    sh-4802      |   0.706 us    |
/// d_free();`. The task is in the line, or in the last line ` 1)  sh-4802  =>  bash-99` of the CPU. A line
/// without a time or a task stays as it is.
fn graph_line(line: &str, tasks: &mut TaskOfCpu) -> Option<String> {
    if let Some((from, to)) = line.split_once("=>") {
        let (cpu, _) = from.split_once(')')?;
        set_task(tasks, cpu.trim().parse().ok()?, to.trim());
        return Some("#".to_owned());
    }
    if line.trim_start().starts_with("------") {
        return Some("#".to_owned());
    }
    let (time, rest) = line.split_once('|')?;
    let time = time.trim();
    time.parse::<f64>().ok().filter(|_| time.contains('.'))?;
    let (cpu, rest) = rest.split_once(')')?;
    let cpu: u32 = cpu.trim().parse().ok()?;
    let mut columns: Vec<&str> = rest.split('|').collect();
    let is_task =
        |column: &str| column.trim().rsplit_once('-').is_some_and(|(_, tid)| tid.parse::<u32>().is_ok());
    if columns.len() > 1 && is_task(columns[0]) {
        set_task(tasks, cpu, columns.remove(0).trim());
    }
    let task = &tasks.iter().find(|(of, _)| *of == cpu)?.1;
    let is_flags = |column: &&str| {
        let flags = column.trim();
        flags.len() >= FLAGS && flags.bytes().all(|byte| FLAG_LETTERS.contains(&byte))
    };
    let flags_at = columns.iter().take(2).position(is_flags);
    let flags = flags_at.map_or("....", |at| columns[at].trim());
    let at = flags_at.map_or(0, |at| at + 1);
    // The call may have bars of its own.
    let duration = columns.get(at).filter(|column| is_duration(column))?.trim();
    let call = columns[at + 1..].join("|");
    let shown = call.trim();
    let event = match shown.strip_prefix("/* ").and_then(|comment| comment.strip_suffix("*/")) {
        Some(comment) => comment_event(comment.trim_end()),
        None if shown.starts_with('}') => format!("funcgraph_exit: {duration} |{call}"),
        None => format!("funcgraph_entry: {duration} |{call}"),
    };
    Some(format!("{task} [{cpu:03}] {flags} {time}: {event}"))
}

fn set_task(tasks: &mut TaskOfCpu, cpu: u32, task: &str) {
    match tasks.iter_mut().find(|(of, _)| *of == cpu) {
        Some((_, known)) => task.clone_into(known),
        None => tasks.push((cpu, task.to_owned())),
    }
}

/// Whether a column is that of durations: `+ 11.020 us`, or blank.
fn is_duration(column: &str) -> bool {
    let text = column.trim().trim_start_matches(['+', '!', '#', '*', '@', '$', ' ']);
    text.is_empty() || text.strip_suffix("us").is_some_and(|number| number.trim().parse::<f64>().is_ok())
}

/// The event that stands in a comment: an event with its name, or the text of a marker.
fn comment_event(comment: &str) -> String {
    let is_name = |name: &str| {
        name.len() > 2 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    if comment.split_once(": ").is_some_and(|(name, _)| is_name(name)) {
        comment.to_owned()
    } else {
        format!("tracing_mark_write: {comment}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> Vec<String> {
        let lines = as_event_lines(text.as_bytes()).unwrap().unwrap();
        let text = String::from_utf8(lines.text.to_vec()).unwrap();
        let events = text.lines().filter(|line| event_line::parse(line.as_bytes()).is_some());
        events.map(str::to_owned).collect()
    }

    #[test]
    fn the_latency_format_is_read() {
        let text = "# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on 6.1\n# latency: 100 us, #5/9, CPU#3 | (M:preempt #P:4)\n\
            \x20     ls-2230    3d...    0us+: _raw_spin_lock <-ata_scsi\n\
            <idle>-0       0dNh5. 1000001us : 0:120:R   + [003] 2062: 94:R sleep\n\
            my app-7  1d..2.    12us!: 7:120:S ==> [001] 0:120:R swapper\n\
            \x20 a-1   11...1    13us : sched_switch: prev_comm=a\n a-1 1...1 14us : <stack trace>\n => x\n";
        assert_eq!(
            rewritten(text),
            [
                "      ls-2230 [003] d... 0.000000: function: _raw_spin_lock <-ata_scsi",
                "<idle>-0 [000] dNh5. 1.000001: wakeup: 0:120:R   + [003] 2062: 94:R sleep",
                "my app-7 [001] d..2. 0.000012: context_switch: 7:120:S ==> [001] 0:120:R swapper",
                "  a-1 [011] ...1 0.000013: sched_switch: prev_comm=a",
                " a-1 [001] ...1 0.000014: kernel_stack: <stack trace>",
            ]
        );
        let lines = as_event_lines(text.as_bytes()).unwrap().unwrap().text;
        assert!(String::from_utf8(lines.to_vec()).unwrap().contains("entries-written: 5/9   #P:4"));
    }

    #[test]
    fn the_function_graph_with_times_is_read() {
        let text = "# tracer: function_graph\n#\n\
            \x20 360.774522 |   1)    sh-4802      |               |  d_free() {\n\
            \x20 360.774523 |   1)    sh-4802      |   0.706 us    |    __call_rcu();\n\
            \x20 360.774526 |   1)    sh-4802      | + 11.020 us   |  } /* d_free */\n\
            \x20------------------------------------------\n   0)    sh-4802     =>  bash-99\n ------\n\
            \x20 360.774530 |   0)               |  /* sched_switch: prev_comm=sh|x */\n\
            \x20 360.774531 |   0)  | d..1. |               |  /* B|99|name */\n\
            \x20 360.774532 |   3)               |  lost();\n   0)   0.5 us    |  no_time();\n";
        assert_eq!(
            rewritten(text),
            [
                "sh-4802 [001] .... 360.774522: funcgraph_entry:  |  d_free() {",
                "sh-4802 [001] .... 360.774523: funcgraph_entry: 0.706 us |    __call_rcu();",
                "sh-4802 [001] .... 360.774526: funcgraph_exit: + 11.020 us |  } /* d_free */",
                "bash-99 [000] .... 360.774530: sched_switch: prev_comm=sh|x",
                "bash-99 [000] d..1. 360.774531: tracing_mark_write: B|99|name",
            ]
        );
    }
}
