//! The tools: what each is for, its arguments, and the work that answers a call.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rmcp::model::JsonObject;
use schemars::{Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracebridge_core::cli::units;

use super::answer::{self, LEAST_BYTES, MOST_BYTES, TRACE_TEXTS, USUAL_BYTES};
use super::arguments::{
    AnswerArguments, DeviceArguments, FilesArguments, GateArguments, LaunchArguments, NoArguments,
    ProfileArguments, QueryArguments, QuestionArguments, RecordArguments, ReportArguments, TableArguments,
    WhyAgainstArguments, WhyArguments,
};
use super::commands::{self, ChildEnd, DEVICE_GRACE, FILE_GRACE};
use super::error::ToolError;
use super::limit::CallLimit;
use super::traces::ReadTraces;
use crate::dataset::table_files;
use crate::export::explain::ReadTrace;
use crate::file_access::Roots;
use crate::formats::Loss;
use crate::output_file::ScratchDir;
use crate::tables::TABLES;
use crate::why::{Question, TableQuestion, difference};

/// A call takes so long at most, where the client names no other time, and where it names any.
const USUAL_TIME: Duration = Duration::from_secs(30);
const MOST_TIME: Duration = Duration::from_secs(600);
/// A recording takes so long at most, s.
const MOST_RECORDED_S: u64 = 60;
/// An app is launched so often at most.
const MOST_RUNS: u32 = 20;
/// The memory of a query, which keeps nothing on disk. DuckDB says when it does not suffice.
const QUERY_MEMORY: &str = "1GiB";
/// The threads of a query.
const QUERY_THREADS: u32 = 2;
/// So many ways to causes are summed up.
const WAYS: usize = 8;
/// A profile has so many rows, where the client asks for no other number.
const PROFILE_ROWS: u32 = 20;

/// The things that all tools share.
pub(super) struct Workplace {
    pub roots: Roots,
    pub traces: ReadTraces,
    pub allows_devices: bool,
    /// This program.
    pub program: PathBuf,
    /// The program of DuckDB, where it is installed.
    pub duckdb: Option<PathBuf>,
}

/// A tool.
pub(super) struct Tool {
    pub name: &'static str,
    /// Its purpose, and when to use which arguments.
    pub description: &'static str,
    /// Whether it works on devices.
    pub of_devices: bool,
    /// Whether it leaves files and devices as they are.
    pub is_read_only: bool,
    arguments: fn() -> Schema,
    answer: AnswerSchema,
    run: fn(&Workplace, Value, &CallLimit) -> Result<Value, ToolError>,
}

/// The form of an answer: that of a command's `--json`, where docs/schemas has it.
enum AnswerSchema {
    /// The tool's own, which the description tells.
    Own,
    /// The command's object.
    Object(&'static str),
    /// The command's object for each of several files.
    Files(&'static str),
}

const INFO_SCHEMA: &str = include_str!("../../docs/schemas/info.json");
const WHY_SCHEMA: &str = include_str!("../../docs/schemas/why.json");
const PROFILE_SCHEMA: &str = include_str!("../../docs/schemas/profile.json");
const GATE_SCHEMA: &str = include_str!("../../docs/schemas/gate.json");

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "info",
        description: "Says what files hold: format, clock, events by kind, threads, launches, lost events and damage. \
                      Begin here.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(FilesArguments),
        answer: AnswerSchema::Files(INFO_SCHEMA),
        run: info,
    },
    Tool {
        name: "launches",
        description: "Lists the launches of apps, as Android's own tools count them: type, total time, TTID, TTFD and \
                      stages, in ns. Ask `why` with launch=N next.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(FilesArguments),
        answer: AnswerSchema::Own,
        run: launches,
    },
    Tool {
        name: "frames",
        description: "Lists each app's frames in figures (count, janky, slow, percentiles of duration and overrun as \
                      androidx's benchmarks have them) and its late frames. Ask `why` with frame=NUMBER or frame=late next.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(FilesArguments),
        answer: AnswerSchema::Own,
        run: frames,
    },
    Tool {
        name: "why",
        description: "Says why a launch, a frame, a slice, a method call or a stretch of a thread took as long as it \
                      did: `by_cause` sums up causes along the critical path (`lock > disk`: it waited for a lock whose \
                      holder waited for the disk), largest first; `causes` has them by thread and subject, and adds up to \
                      the duration. `unexplained` and `not recorded` are causes of their own; `missing` says what would have to be \
                      recorded to know more. Rules: tracebridge://docs/why.md.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(WhyArguments),
        answer: AnswerSchema::Object(WHY_SCHEMA),
        run: why,
    },
    Tool {
        name: "why_against",
        description: "Splits the difference between newer and older runs over causes: `against.causes` has ns before, \
                      ns now and the change, largest first, which add up to the change of the mean.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(WhyAgainstArguments),
        answer: AnswerSchema::Object(WHY_SCHEMA),
        run: why_against,
    },
    Tool {
        name: "profile",
        description: "Profiles a method trace or samples: the methods (classes, packages, threads) that took longest, or \
                      callers and callees of one method.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(ProfileArguments),
        answer: AnswerSchema::Object(PROFILE_SCHEMA),
        run: profile,
    },
    Tool {
        name: "slices",
        description: "Lists slices (trace sections) by name and thread: count, total and longest time, when the longest \
                      one was; within a time, a thread or a process where asked. `methods` lists method calls.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(TableArguments),
        answer: AnswerSchema::Own,
        run: slices,
    },
    Tool {
        name: "thread_states",
        description: "Lists how long threads were running, runnable (waiting for a CPU), sleeping, or in uninterruptible \
                      sleep, within a time where asked; those that ran longest first.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(TableArguments),
        answer: AnswerSchema::Own,
        run: thread_states,
    },
    Tool {
        name: "query",
        description: "Asks a dataset of many traces (`tracebridge dataset`) in SQL. It needs DuckDB's program, version \
                      1.2 or newer. Tables: tracebridge://docs/dataset.md.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(QueryArguments),
        answer: AnswerSchema::Own,
        run: query,
    },
    Tool {
        name: "gate",
        description: "Decides whether the candidate's runs are slower than the baseline's, by conditions such as \
                      `launch.total > +3%`, with a test that tells changes from noise. `status` says whether it closed.",
        of_devices: false,
        is_read_only: true,
        arguments: || schema_for!(GateArguments),
        answer: AnswerSchema::Object(GATE_SCHEMA),
        run: gate,
    },
    Tool {
        name: "report",
        description: "Writes the trace as one page that opens offline, for a person to look at.",
        of_devices: false,
        is_read_only: false,
        arguments: || schema_for!(ReportArguments),
        answer: AnswerSchema::Own,
        run: report,
    },
    Tool {
        name: "devices",
        description: "Lists the attached devices and what each permits.",
        of_devices: true,
        is_read_only: true,
        arguments: || schema_for!(NoArguments),
        answer: AnswerSchema::Own,
        run: devices,
    },
    Tool {
        name: "doctor",
        description: "Says what a device permits and which categories work there, and what would change that.",
        of_devices: true,
        is_read_only: true,
        arguments: || schema_for!(DeviceArguments),
        answer: AnswerSchema::Own,
        run: doctor,
    },
    Tool {
        name: "record",
        description: "Records a device for a time and writes the recording. Ask `info` and `why` about it next.",
        of_devices: true,
        is_read_only: false,
        arguments: || schema_for!(RecordArguments),
        answer: AnswerSchema::Own,
        run: record,
    },
    Tool {
        name: "launch",
        description: "Launches an app on a device, records kernel and methods, and writes both on one clock.",
        of_devices: true,
        is_read_only: false,
        arguments: || schema_for!(LaunchArguments),
        answer: AnswerSchema::Own,
        run: launch,
    },
];

impl Tool {
    /// The schema of the answer, where it is that of a command.
    pub(super) fn answer_schema(&self) -> Option<JsonObject> {
        let text = match self.answer {
            AnswerSchema::Own => return None,
            AnswerSchema::Object(text) | AnswerSchema::Files(text) => text,
        };
        let mut schema: JsonObject = serde_json::from_str(text).ok()?;
        if let AnswerSchema::Files(_) = self.answer {
            let definitions = schema.remove("$defs");
            let files = json!({ "type": "array", "items": schema });
            schema = JsonObject::new();
            schema.insert("properties".to_owned(), json!({ "files": files }));
            schema.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
        }
        schema.insert("type".to_owned(), json!("object"));
        Some(schema)
    }

    /// The schema of the arguments, with those that all tools have.
    pub(super) fn arguments_schema(&self) -> JsonObject {
        let mut schema = object((self.arguments)());
        let common = object(schema_for!(AnswerArguments));
        if let Value::Object(own) = schema.entry("properties").or_insert_with(|| json!({}))
            && let Some(Value::Object(common)) = common.get("properties")
        {
            own.extend(common.clone());
        }
        schema
    }
}

fn object(schema: Schema) -> JsonObject {
    match schema.to_value() {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

impl AnswerArguments {
    /// Takes the arguments that all tools have out of a call's.
    pub(super) fn take(arguments: &mut JsonObject) -> Result<AnswerArguments, ToolError> {
        let mut own = JsonObject::new();
        for name in ["max_bytes", "timeout_s"] {
            if let Some(value) = arguments.remove(name) {
                own.insert(name.to_owned(), value);
            }
        }
        parsed(Value::Object(own))
    }

    /// When the answer is due.
    pub(super) fn until(&self) -> Instant {
        Instant::now() + self.timeout_s.map_or(USUAL_TIME, Duration::from_secs).min(MOST_TIME)
    }

    fn bytes(&self) -> usize {
        self.max_bytes.unwrap_or(USUAL_BYTES).clamp(LEAST_BYTES, MOST_BYTES)
    }
}

/// Answers a call: an object of at most as many bytes as were asked for.
pub(super) fn call(
    work: &Workplace,
    name: &str,
    arguments: JsonObject,
    common: &AnswerArguments,
    limit: &CallLimit,
) -> Result<Value, ToolError> {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| ToolError::Unknown(answer::bounded(&answer::visible(name), 40)))?;
    if tool.of_devices && !work.allows_devices {
        return Err(ToolError::Devices);
    }
    let schema = tool.arguments_schema();
    let known = |name: &String| schema["properties"].get(name).is_some();
    if let Some(unknown) = arguments.keys().find(|name| !known(name)) {
        let names: Vec<&str> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        return Err(ToolError::Arguments(format!("{unknown:?} is none of {}", names.join(", "))));
    }
    let mut again = arguments.clone();
    again.insert("max_bytes".to_owned(), json!((common.bytes() * 4).min(MOST_BYTES)));
    let mut answer = (tool.run)(work, Value::Object(arguments), limit)?;
    if let Value::Object(members) = &mut answer {
        members.insert("trace_texts".to_owned(), json!(TRACE_TEXTS.join(" ")));
    }
    // The arguments are the client's own; those with hidden characters are not repeated.
    let text = serde_json::to_string(&again).unwrap_or_default();
    let again = if text.len() <= 300 && answer::visible(&text) == text {
        json!({"tool": name, "arguments": again})
    } else {
        json!("the same call with a larger max_bytes")
    };
    Ok(answer::fitted(answer, common.bytes(), &again))
}

fn parsed<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError::Arguments(error.to_string()))
}

/// The JSON of a struct: without maps of other keys than texts there is always one.
fn value_of(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// A command line of this program that is put together.
struct CommandLine<'w> {
    work: &'w Workplace,
    words: Vec<PathBuf>,
}

impl<'w> CommandLine<'w> {
    fn new(work: &'w Workplace, words: &[&str]) -> CommandLine<'w> {
        let mut words: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
        words.extend(work.roots.paths().flat_map(|root| ["--below".into(), root.to_owned()]));
        CommandLine { work, words }
    }

    /// A flag and its value, in one word: the value is none of another flag.
    fn flag(&mut self, flag: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.words.push(format!("{flag}={value}").into());
        }
    }

    /// A flag and the path of an input.
    fn input(&mut self, flag: &str, named: &str) -> Result<(), ToolError> {
        let path = self.work.roots.input(named)?;
        let mut word = std::ffi::OsString::from(flag);
        word.push("=");
        word.push(path);
        self.words.push(word.into());
        Ok(())
    }

    fn output(&mut self, named: &str) -> Result<PathBuf, ToolError> {
        let path = self.work.roots.output(named)?;
        self.words.extend(["-o".into(), path.clone()]);
        Ok(path)
    }

    /// The files behind all flags. Their paths are absolute, so that none is taken for a flag.
    fn files(&mut self, named: &[String]) -> Result<(), ToolError> {
        self.words.extend(inputs(self.work, named)?);
        Ok(())
    }

    fn run(self, limit: &CallLimit) -> Result<Value, ToolError> {
        let is_of_devices = self.words.first().is_some_and(|word| word.as_os_str() == "adb");
        let end = ChildEnd::Asked(if is_of_devices { DEVICE_GRACE } else { FILE_GRACE });
        commands::run(&self.work.program, &self.words, self.work.roots.first(), end, limit)
    }

    /// Of a command that prints one object for each file: all of them.
    fn run_on_files(self, limit: &CallLimit) -> Result<Value, ToolError> {
        let mut answer = self.run(limit)?;
        let mut whole = json!({});
        for name in ["status", "messages"] {
            if let Some(value) = answer.as_object_mut().and_then(|members| members.remove(name)) {
                whole[name] = value;
            }
        }
        whole["files"] = match answer.get_mut("answers").map(Value::take) {
            Some(several) => several,
            None => json!([answer]),
        };
        Ok(whole)
    }
}

fn inputs(work: &Workplace, named: &[String]) -> Result<Vec<PathBuf>, ToolError> {
    if named.is_empty() {
        return Err(ToolError::Arguments("no file is named".to_owned()));
    }
    Ok(named.iter().map(|file| work.roots.input(file)).collect::<Result<_, _>>()?)
}

fn info(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: FilesArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["info", "--json"]);
    command.files(&arguments.files)?;
    command.run_on_files(limit)
}

/// Of what `info` says of files, these members.
fn of_info(
    work: &Workplace,
    arguments: Value,
    limit: &CallLimit,
    members: &[&str],
) -> Result<Value, ToolError> {
    let arguments: FilesArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["info", "--json", "--frames"]);
    command.files(&arguments.files)?;
    let mut answer = command.run_on_files(limit)?;
    for file in answer["files"].as_array_mut().into_iter().flatten() {
        if let Value::Object(file) = file {
            let losses = file.get("report").and_then(|report| report.get("losses")).cloned();
            file.retain(|name, _| members.contains(&name.as_str()));
            file.extend(losses.map(|losses| ("losses".to_owned(), losses)));
        }
    }
    Ok(answer)
}

fn launches(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    of_info(work, arguments, limit, &["path", "clock", "launches", "cancelled_launches"])
}

fn frames(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let mut answer = of_info(work, arguments, limit, &["path", "clock", "frames", "every_frame"])?;
    if let Value::Array(files) = &mut answer["files"] {
        for file in files {
            if let Some(Value::Array(every)) = file.get_mut("every_frame") {
                every.retain(|frame| frame["janky"] == json!(true) || frame["slow"] == json!(true));
            }
        }
    }
    Ok(answer)
}

fn question(asked: &QuestionArguments) -> Result<Question, ToolError> {
    let given = [&asked.launch, &asked.frame, &asked.slice, &asked.method, &asked.thread];
    if given.iter().filter(|value| value.is_some()).count() > 1 {
        let message = "launch, frame, slice, method and thread are questions of their own: give one";
        return Err(ToolError::Arguments(message.to_owned()));
    }
    if let Some(launch) = &asked.launch {
        return Ok(Question::of_launch(launch));
    }
    if let Some(frame) = &asked.frame {
        return Question::of_frame(frame)
            .ok_or_else(|| ToolError::Arguments("frame is a number or the word late".to_owned()));
    }
    if let Some(name) = &asked.slice {
        return Ok(Question::Slice(name.clone()));
    }
    if let Some(name) = &asked.method {
        return Ok(Question::Method(name.clone()));
    }
    Ok(match &asked.thread {
        Some(thread) => Question::Stretch {
            thread: thread.clone(),
            from_ns: time("from", asked.from.as_deref())?,
            to_ns: time("to", asked.to.as_deref())?,
        },
        None => Question::Usual,
    })
}

/// A time in ns.
fn time(name: &str, text: Option<&str>) -> Result<Option<u64>, ToolError> {
    let parse =
        |text| units::nanoseconds(text).map_err(|error| ToolError::Arguments(format!("{name}: {error}")));
    text.map(parse).transpose()
}

fn why(work: &Workplace, arguments: Value, _: &CallLimit) -> Result<Value, ToolError> {
    let arguments: WhyArguments = parsed(arguments)?;
    let question = question(&arguments.question)?;
    let trace = work.traces.read(&inputs(work, &arguments.files.files)?)?;
    let explained = trace.explain(&question)?;
    let mut answer = value_of(&explained.json(None));
    let spans = answer["spans"].as_array_mut().into_iter().flatten();
    for (span, explanation) in spans.zip(&explained.explanations) {
        let ways = explanation.ns_by_way().into_iter();
        span["by_cause"] = ways.take(WAYS).map(|(way, ns)| json!({ "cause": way, "ns": ns })).collect();
    }
    Ok(answer)
}

fn why_against(work: &Workplace, arguments: Value, _: &CallLimit) -> Result<Value, ToolError> {
    let arguments: WhyAgainstArguments = parsed(arguments)?;
    let question = question(&arguments.question)?;
    let new = work.traces.explain_runs(&inputs(work, &arguments.new)?, &question)?;
    let old = work.traces.explain_runs(&inputs(work, &arguments.old)?, &question)?;
    Ok(value_of(&new.json(Some(&difference(&new.explanations, &old.explanations)))))
}

fn table(arguments: TableArguments) -> Result<TableQuestion, ToolError> {
    Ok(TableQuestion {
        name: arguments.name.unwrap_or_default(),
        thread: arguments.thread,
        process: arguments.process,
        from_ns: time("from", arguments.from.as_deref())?,
        to_ns: time("to", arguments.to.as_deref())?,
        methods: arguments.methods,
    })
}

/// The account of missing data.
fn losses(trace: &ReadTrace) -> Vec<Loss> {
    trace.losses().iter().collect()
}

fn slices(work: &Workplace, arguments: Value, _: &CallLimit) -> Result<Value, ToolError> {
    let arguments: TableArguments = parsed(arguments)?;
    let trace = work.traces.read(&inputs(work, &arguments.files.files)?)?;
    let slices = trace.model.slice_totals(&table(arguments)?)?;
    let rule = "a slice's time holds that of the slices in it";
    Ok(json!({ "slices": slices, "losses": losses(&trace), "lossy": trace.is_lossy(), "rule": rule }))
}

fn thread_states(work: &Workplace, arguments: Value, _: &CallLimit) -> Result<Value, ToolError> {
    let arguments: TableArguments = parsed(arguments)?;
    let trace = work.traces.read(&inputs(work, &arguments.files.files)?)?;
    let threads = trace.model.state_totals(&table(arguments)?)?;
    let rule = "by sched_switch and sched_wakeup; time that no event tells is not there";
    Ok(json!({ "threads": threads, "losses": losses(&trace), "lossy": trace.is_lossy(), "rule": rule }))
}

fn profile(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: ProfileArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["profile", "--json"]);
    for (flag, value) in [
        ("--thread", &arguments.thread),
        ("--method", &arguments.method),
        ("--by", &arguments.by),
        ("--sort", &arguments.sort),
        ("--clock", &arguments.clock),
    ] {
        command.flag(flag, value.as_deref());
    }
    command.flag("--top", Some(&arguments.top.unwrap_or(PROFILE_ROWS).to_string()));
    if let Some(mapping) = &arguments.mapping {
        command.input("--mapping", mapping)?;
    }
    command.files(std::slice::from_ref(&arguments.file))?;
    command.run(limit)
}

fn gate(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: GateArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["gate", "--json"]);
    for (flag, paths) in [("--baseline", &arguments.baseline), ("--candidate", &arguments.candidate)] {
        for path in paths {
            command.input(flag, path)?;
        }
    }
    for (flag, values) in [
        ("--fail-if", &arguments.fail_if),
        ("--baseline-tag", &arguments.baseline_tags),
        ("--candidate-tag", &arguments.candidate_tags),
    ] {
        for value in values {
            command.flag(flag, Some(value));
        }
    }
    command.run(limit)
}

fn report(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: ReportArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["report", "--json"]);
    if !arguments.output.ends_with(".html") {
        return Err(ToolError::Arguments("output is the name of a page: it ends in .html".to_owned()));
    }
    let page = command.output(&arguments.output)?;
    for file in &arguments.against {
        command.input("--against", file)?;
    }
    command.files(&arguments.files.files)?;
    with_file(command.run(limit)?, &page)
}

/// The answer, with the path of the file that was written.
fn with_file(mut answer: Value, path: &Path) -> Result<Value, ToolError> {
    answer["written"] = json!(path.display().to_string());
    Ok(answer)
}

fn devices(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let NoArguments {} = parsed(arguments)?;
    CommandLine::new(work, &["adb", "devices", "--json"]).run(limit)
}

fn doctor(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: DeviceArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["adb", "doctor", "--json"]);
    command.flag("--serial", arguments.serial.as_deref());
    command.run(limit)
}

fn record(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: RecordArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["adb", "record", "--json"]);
    command.flag("--serial", arguments.device.serial.as_deref());
    if time("time", Some(&arguments.time))?.is_none_or(|ns| ns > MOST_RECORDED_S * 1_000_000_000) {
        return Err(ToolError::Arguments(format!("time is at most {MOST_RECORDED_S} s")));
    }
    command.flag("--time", Some(&arguments.time));
    command.flag("--app", arguments.app.as_deref());
    let written = command.output(&arguments.output)?;
    let usual = ["sched".to_owned()];
    let categories = if arguments.categories.is_empty() { &usual[..] } else { &arguments.categories };
    words_of(&mut command, categories)?;
    with_file(command.run(limit)?, &written)
}

fn launch(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: LaunchArguments = parsed(arguments)?;
    let mut command = CommandLine::new(work, &["adb", "launch", "--json"]);
    command.flag("--serial", arguments.device.serial.as_deref());
    let runs = arguments.runs.unwrap_or(1);
    if runs == 0 || runs > MOST_RUNS {
        return Err(ToolError::Arguments(format!("runs is 1 to {MOST_RUNS}")));
    }
    command.flag("--runs", Some(&runs.to_string()));
    if arguments.warm {
        command.words.push("--warm".into());
    }
    let written = command.output(&arguments.output)?;
    words_of(&mut command, std::slice::from_ref(&arguments.package))?;
    with_file(command.run(limit)?, &written)
}

/// Names behind the flags: none of them is a flag.
fn words_of(command: &mut CommandLine<'_>, words: &[String]) -> Result<(), ToolError> {
    if let Some(word) = words.iter().find(|word| word.starts_with('-') || word.is_empty()) {
        return Err(ToolError::Arguments(format!("{word:?} is no name")));
    }
    command.words.extend(words.iter().map(PathBuf::from));
    Ok(())
}

fn query(work: &Workplace, arguments: Value, limit: &CallLimit) -> Result<Value, ToolError> {
    let arguments: QueryArguments = parsed(arguments)?;
    let dataset = work.roots.input(&arguments.dataset)?;
    let Some(duckdb) = &work.duckdb else {
        return Err(ToolError::Command(vec![
            "duckdb is not installed (no program of this name in PATH)".to_owned(),
        ]));
    };
    let statement = arguments.sql.trim().trim_end_matches(';');
    // One statement, which is a part of a SELECT, so that it writes nothing. A line of the program's own
    // commands begins with a point.
    if statement.contains(';') || statement.lines().any(|line| line.trim_start().starts_with('.')) {
        return Err(ToolError::Arguments("sql is one SELECT, without a semicolon in it".to_owned()));
    }
    let scratch = ScratchDir::create(&std::env::temp_dir()).map_err(ToolError::Start)?;
    let settings = scratch.path().join("settings.sql");
    std::fs::write(&settings, query_settings(&dataset, statement)?).map_err(ToolError::Start)?;
    let select = format!("SET lock_configuration=true; SELECT * FROM (\n{statement}\n);");
    let words = ["-json", "-no-stdin", "-init"].iter().map(PathBuf::from);
    let words = words.chain([settings, ":memory:".into(), "-c".into(), select.into()]);
    commands::run(duckdb, &words.collect::<Vec<_>>(), work.roots.first(), ChildEnd::Killed, limit)
}

/// The settings of DuckDB: the query reads the files of the tables that it names and nothing else, and cannot
/// permit itself more.
fn query_settings(dataset: &Path, statement: &str) -> Result<String, ToolError> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut allowed = Vec::new();
    let mut views = String::new();
    for table in TABLES.iter().filter(|table| statement.contains(table.name)) {
        let files = table_files(dataset, table)?;
        // A path in which no character stands for others.
        let plain = |path: &PathBuf| {
            let wild = |char: char| {
                if matches!(char, '*' | '?' | '[') { format!("[{char}]") } else { char.to_string() }
            };
            quoted(&path.display().to_string().chars().map(wild).collect::<String>())
        };
        if !files.is_empty() {
            let list = files.iter().map(plain).collect::<Vec<_>>().join(",");
            views.push_str(&format!(
                "CREATE TEMP VIEW {} AS SELECT * FROM read_parquet([{list}], hive_partitioning=false, union_by_name=true);\n",
                table.name
            ));
        }
        allowed.extend(files.iter().map(|file| quoted(&file.display().to_string())));
    }
    Ok(format!(
        "SET memory_limit='{QUERY_MEMORY}'; SET threads={QUERY_THREADS}; SET temp_directory='';\n\
         SET allowed_paths=[{}]; SET enable_external_access=false;\n{views}",
        allowed.join(",")
    ))
}
