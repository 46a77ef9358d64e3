//! A thread of a profile: its samples, and its tables from the index of a stack to functions.

use rustc_hash::FxHashMap;

use super::columns::{GeckoColumn, GeckoTable, index};
use crate::clock::Timestamp;
use crate::formats::json::{JsonText, Value, elements, float, member, members_of_cut};
use crate::formats::samples::{FrameIndex, FrameKind, NO_STACK, SampleModule, SampleTables, readable};

/// The kind of the samples' weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum GeckoWeight {
    /// Numbers of samples.
    Samples,
    /// Times.
    Time,
    /// Bytes of memory.
    Bytes,
}

impl GeckoWeight {
    /// The name of the event type.
    pub(super) fn name(self) -> &'static str {
        match self {
            GeckoWeight::Samples => "samples",
            GeckoWeight::Time => "time",
            GeckoWeight::Bytes => "bytes",
        }
    }
}

/// A library of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct GeckoLibrary {
    pub(super) path: String,
    /// The build id where the profile has one, as samply writes it.
    pub(super) build_id: String,
}

/// The tables that threads of a process share.
pub(super) struct GeckoTables<'t, 'a> {
    pub(super) libraries: &'t [GeckoLibrary],
    /// The names of the categories.
    pub(super) categories: &'t [String],
    pub(super) shared: &'t ThreadMembers<'a>,
}

/// The members of a thread, or of what threads share.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadMembers<'a> {
    members: Vec<(JsonText<'a>, Value<'a>)>,
    pub(super) pid: Option<Value<'a>>,
    pub(super) tid: Option<Value<'a>>,
    pub(super) is_cut: bool,
}

impl<'a> ThreadMembers<'a> {
    pub(super) fn new(thread: &'a [u8]) -> ThreadMembers<'a> {
        if thread.is_empty() {
            return ThreadMembers::default();
        }
        let (members, is_cut) = members_of_cut(thread);
        let mut out = ThreadMembers { members, is_cut, ..ThreadMembers::default() };
        out.pid = out.member("pid");
        out.tid = out.member("tid");
        out
    }

    fn member(&self, name: &str) -> Option<Value<'a>> {
        self.members.iter().find(|(member, _)| member.raw() == name.as_bytes()).map(|(_, value)| *value)
    }

    pub(super) fn name(&self) -> String {
        match self.member("name") {
            Some(Value::Text(text)) => text.to_text(),
            _ => String::new(),
        }
    }

    /// The number of the thread's markers: the rows of its table, as Firefox or as the profiler writes it.
    pub(super) fn markers(&self) -> u64 {
        let Some(Value::Object(markers)) = self.member("markers") else { return 0 };
        let rows = ["data", "startTime"].into_iter().filter_map(|column| match member(markers, column) {
            Some(Value::Array(rows)) => Some(elements(rows).count() as u64),
            _ => None,
        });
        rows.max().unwrap_or(0)
    }

    /// A table of the thread, or else of those that threads share.
    fn table(&self, shared: &ThreadMembers<'a>, name: &str) -> GeckoTable<'a> {
        match self.member(name).or_else(|| shared.member(name)) {
            Some(Value::Object(table)) => GeckoTable::new(table),
            _ => GeckoTable::default(),
        }
    }

    /// The strings, as `stringArray` or, in older versions, `stringTable`.
    fn strings(&self, shared: &ThreadMembers<'a>) -> Vec<JsonText<'a>> {
        let names = ["stringArray", "stringTable"];
        let array = names.iter().find_map(|name| match self.member(name).or_else(|| shared.member(name)) {
            Some(Value::Array(array)) => Some(array),
            _ => None,
        });
        let text = |value| match value {
            Value::Text(text) => text,
            _ => JsonText::default(),
        };
        elements(array.unwrap_or(&[])).map(text).collect()
    }

    /// The samples of the thread; `None` where it has none. `later` is added to their times, ns.
    pub(super) fn samples(&self, later: i64) -> Option<GeckoSamples<'a>> {
        let Some(Value::Object(samples)) = self.member("samples") else { return None };
        let table = GeckoTable::new(samples);
        let weight = match table.single("weightType") {
            Some(Value::Text(text)) if text.raw() == b"tracing-ms" => GeckoWeight::Time,
            Some(Value::Text(text)) if text.raw() == b"bytes" => GeckoWeight::Bytes,
            _ => GeckoWeight::Samples,
        };
        let has_deltas = table.has("timeDeltas");
        Some(GeckoSamples {
            stacks: table.column("stack"),
            times: table.column(if has_deltas { "timeDeltas" } else { "time" }),
            weights: table.has("weight").then(|| table.column("weight")),
            has_deltas,
            weight,
            at_ms: 0.0,
            later,
        })
    }

    /// The stacks of the thread.
    pub(super) fn stacks(
        &self,
        shared: &GeckoTables<'_, 'a>,
        tables: &mut SampleTables,
        frames: &mut FrameIndex,
        modules: &mut FxHashMap<SampleModule, u32>,
    ) -> GeckoStacks {
        let mut resolver = FrameResolver::new(self, shared);
        let table = self.table(shared.shared, "stackTable");
        let mut out = GeckoStacks::default();
        let mut prefixes = table.column("prefix");
        for (number, frame) in table.column("frame").enumerate() {
            let prefix = prefixes.next().map_or(u32::MAX, index);
            let parent = match out.stacks.get(prefix as usize) {
                Some(parent) => *parent,
                None => {
                    out.without_caller += u64::from(prefix != u32::MAX && prefix as usize >= number);
                    NO_STACK
                }
            };
            let stack = match resolver.frame(index(frame), tables, frames, modules) {
                Some(frame) => tables.stacks.child(parent, frame),
                None => parent,
            };
            out.stacks.push(stack);
        }
        out
    }
}

/// The stacks of a thread by their index.
#[derive(Debug, Default)]
pub(super) struct GeckoStacks {
    stacks: Vec<u32>,
    /// Stacks whose caller stands behind them.
    pub(super) without_caller: u64,
}

impl GeckoStacks {
    /// The stack with an index of the profile, which is `u32::MAX` for an empty one. `None` where the profile
    /// has no stack of this index.
    pub(super) fn stack(&self, index: u32) -> Option<u32> {
        if index == u32::MAX { Some(NO_STACK) } else { self.stacks.get(index as usize).copied() }
    }
}

/// Finds the functions of a thread's frames.
struct FrameResolver<'t, 'a> {
    strings: Vec<JsonText<'a>>,
    /// By frame: the function, the address in the library, and the category. In the form that Firefox writes
    /// the function's name has the frame itself.
    funcs: Vec<u32>,
    addresses: Vec<Option<u64>>,
    frame_categories: Vec<u32>,
    is_located: bool,
    /// By function: its name, its resource, and the name of its file.
    func_names: Vec<u32>,
    func_resources: Vec<u32>,
    func_files: Vec<u32>,
    /// By resource: its library.
    resource_libs: Vec<u32>,
    libraries: &'t [GeckoLibrary],
    categories: &'t [String],
    known: FxHashMap<u32, u32>,
}

impl<'t, 'a> FrameResolver<'t, 'a> {
    fn new(thread: &ThreadMembers<'a>, shared: &GeckoTables<'t, 'a>) -> FrameResolver<'t, 'a> {
        let frames = thread.table(shared.shared, "frameTable");
        let funcs = thread.table(shared.shared, "funcTable");
        let resources = thread.table(shared.shared, "resourceTable");
        let address = |value| match value {
            Value::Number(number) => float(number).filter(|n| *n >= 0.0).map(|n| n as u64),
            _ => None,
        };
        let is_located = frames.has("location");
        FrameResolver {
            strings: thread.strings(shared.shared),
            funcs: frames.indices(if is_located { "location" } else { "func" }),
            addresses: frames.column("address").map(address).collect(),
            frame_categories: frames.indices("category"),
            is_located,
            func_names: funcs.indices("name"),
            func_resources: funcs.indices("resource"),
            func_files: funcs.indices("fileName"),
            resource_libs: resources.indices("lib"),
            libraries: shared.libraries,
            categories: shared.categories,
            known: FxHashMap::default(),
        }
    }

    fn frame(
        &mut self,
        number: u32,
        tables: &mut SampleTables,
        frames: &mut FrameIndex,
        modules: &mut FxHashMap<SampleModule, u32>,
    ) -> Option<u32> {
        if let Some(frame) = self.known.get(&number) {
            return Some(*frame);
        }
        let at = number as usize;
        let func = *self.funcs.get(at)? as usize;
        let name = if self.is_located { Some(func as u32) } else { self.func_names.get(func).copied() };
        let name =
            name.and_then(|name| self.strings.get(name as usize)).map_or(String::new(), |t| t.to_text());
        let library =
            self.func_resources.get(func).and_then(|resource| self.resource_libs.get(*resource as usize));
        let library = library.and_then(|library| self.libraries.get(*library as usize));
        let (name, located) = if self.is_located { located(&name) } else { (name.as_str(), None) };
        let file = self.func_files.get(func).and_then(|file| self.strings.get(*file as usize));
        let path = library.map(|library| library.path.clone()).or(located).or_else(|| Some(file?.to_text()));
        let build_id = library.map(|library| library.build_id.clone()).unwrap_or_default();
        let module = SampleModule { path: path.unwrap_or_default(), build_id, has_offsets: false };
        let category =
            self.frame_categories.get(at).and_then(|category| self.categories.get(*category as usize));
        let kind = kind_of(category.map_or("", String::as_str), &module.path, name);
        let module = *modules.entry(module).or_insert_with_key(|module| {
            tables.modules.push(module.clone());
            tables.modules.len() as u32 - 1
        });
        let stated = self.addresses.get(at).copied().flatten();
        let frame = match unknown_address(name) {
            Some(address) => {
                let has_file = !tables.modules[module as usize].path.is_empty();
                let address = if has_file { stated.unwrap_or(address) } else { address };
                frames.intern(tables, "", module, kind, address)
            }
            None => {
                let frame = frames.intern(tables, &readable(name), module, kind, stated.unwrap_or(0));
                // tracebridge's own files name an unknown function by its place.
                let has_symbol = !name.rsplit_once("+0x").is_some_and(|(_, digits)| is_hex(digits));
                tables.frames[frame as usize].has_symbol = has_symbol;
                frame
            }
        };
        self.known.insert(number, frame);
        Some(frame)
    }
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The address that stands in the place of a name: `0x1234`.
fn unknown_address(name: &str) -> Option<u64> {
    if name.is_empty() {
        return Some(0);
    }
    u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()
}

/// The function and the file of a frame's location, as simpleperf's `gecko_profile_generator.py` writes it:
/// `function (in file)`.
fn located(location: &str) -> (&str, Option<String>) {
    match location.strip_suffix(')').and_then(|location| location.rsplit_once(" (in ")) {
        Some((function, file)) => (function, Some(file.to_owned())),
        None => (location, None),
    }
}

/// Whether a name may be that of a method of Java with its class.
fn is_method_name(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '<' | '>' | '-');
    name.contains('.') && name.chars().all(is_part)
}

/// The owner of a function's code, by the category that writers of profiles give it.
fn kind_of(category: &str, path: &str, name: &str) -> FrameKind {
    match category {
        "Kernel" => FrameKind::Kernel,
        "Java" | "DEX" | "OAT" | "JIT" if is_method_name(name) => FrameKind::Java,
        _ => FrameKind::of_code(path, name.as_bytes()),
    }
}

/// A thread with what its samples refer to.
pub(super) struct GeckoThread<'a> {
    /// The index of the thread.
    pub(super) thread: u32,
    /// The index of the event type.
    pub(super) event: u32,
    pub(super) stacks: GeckoStacks,
    pub(super) samples: GeckoSamples<'a>,
}

impl GeckoThread<'_> {
    pub(super) fn next(&mut self) -> Option<GeckoSample> {
        self.samples.next()
    }
}

/// The samples of a thread.
pub(super) struct GeckoSamples<'a> {
    stacks: GeckoColumn<'a>,
    times: GeckoColumn<'a>,
    weights: Option<GeckoColumn<'a>>,
    /// Whether each time is the difference to the one before.
    has_deltas: bool,
    pub(super) weight: GeckoWeight,
    /// The time of the last sample, ms.
    at_ms: f64,
    later: i64,
}

/// A sample as its thread has it.
pub(super) struct GeckoSample {
    /// ns since the start of the profile.
    pub(super) time: i64,
    /// The index of the stack; `u32::MAX` for none.
    pub(super) stack: u32,
    pub(super) weight: u64,
}

impl GeckoSample {
    /// The sample's place in the recording: at the start of the profile where it is older.
    pub(super) fn placed(&self) -> Timestamp {
        Timestamp(self.time.max(0) as u64)
    }
}

fn decimal(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Number(number) => float(number),
        _ => None,
    }
}

impl Iterator for GeckoSamples<'_> {
    type Item = GeckoSample;

    fn next(&mut self) -> Option<GeckoSample> {
        let stack = index(self.stacks.next()?);
        let time =
            self.times.next().and_then(decimal).unwrap_or(if self.has_deltas { 0.0 } else { self.at_ms });
        self.at_ms = if self.has_deltas { self.at_ms + time } else { time };
        let weight = match &mut self.weights {
            Some(weights) => weights.next().and_then(decimal).unwrap_or(1.0),
            None => 1.0,
        };
        let weight = if self.weight == GeckoWeight::Time { weight * 1e6 } else { weight };
        let time = ((self.at_ms * 1e6).round() as i64).saturating_add(self.later);
        Some(GeckoSample { time, stack, weight: weight.round().max(0.0) as u64 })
    }
}

/// The integer with which a number or a text begins: some writers number threads of one id `12.1`, `12.2`.
pub(super) fn first_integer(value: Option<Value<'_>>) -> Option<i64> {
    let text = match value? {
        Value::Number(number) => String::from_utf8_lossy(number).into_owned(),
        Value::Text(text) => text.to_text(),
        _ => return None,
    };
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
