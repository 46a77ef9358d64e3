//! The names of methods and threads in the output: as traced, or as a mapping file of R8 or ProGuard restores
//! them; and how names in tables and trees become shorter where they do not fit.
//!
//! One rule holds for all names that become shorter: their parts are dropped in this order, and a `…` stands
//! in the place of what is dropped. First the methods that R8 has inlined. Then the package, segment by
//! segment from the left (`…gecko.GeckoThread.run(String)`). Then the parameters (`GeckoThread.run(…)`), but
//! of a method with overloads only after the class. Then the class, from the left (`…Thread.run(…)`).
//!
//! The method's own name is never cut. Where it does not fit, it stands on a line of its own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use super::source::ProfileSource;
use crate::art::{MappedMethod, Mapping, MappingError};
use crate::console::printable;
use crate::formats::art_method::{Method, TracedThread};
use crate::formats::samples::is_kernel_file;
use crate::text::file_name;

/// The names of a trace's methods and threads.
#[derive(Debug)]
pub(super) struct TraceNames<'t, 'a> {
    methods: &'t [Method<'a>],
    threads: &'t [TracedThread<'a>],
    mapped: HashMap<u32, MappedMethod>,
    /// By method: the signature that the mapping file has restored.
    signatures: HashMap<u32, String>,
    /// By name: the number of threads that have it.
    thread_names: HashMap<&'t str, u32>,
    /// The parameters of methods with overloads; see [`TraceNames::overloads`].
    overloads: OnceLock<HashMap<u32, String>>,
}

impl<'t, 'a> TraceNames<'t, 'a> {
    /// Names as traced.
    pub(super) fn new(trace: ProfileSource<'t, 'a>) -> Self {
        let mut thread_names = HashMap::new();
        for thread in trace.threads().iter().filter(|thread| !thread.name.is_empty()) {
            *thread_names.entry(thread.name.as_ref()).or_default() += 1;
        }
        TraceNames {
            methods: trace.methods(),
            threads: trace.threads(),
            mapped: HashMap::new(),
            signatures: HashMap::new(),
            thread_names,
            overloads: OnceLock::new(),
        }
    }

    /// Names as the mapping file with the content `mapping` restores them. Methods that are not in the
    /// file keep their traced names.
    pub(super) fn mapped(trace: ProfileSource<'t, 'a>, mapping: &[u8]) -> Result<Self, MappingError> {
        let mapping = Mapping::parse(mapping)?;
        let mut names = TraceNames::new(trace);
        for (n, method) in trace.methods().iter().enumerate().filter(|(_, method)| method.declared) {
            if let Some(real) = mapping.signature(&method.signature) {
                names.signatures.insert(n as u32, real);
            }
            if let Some(real) = real_name(&mapping, method) {
                names.mapped.insert(n as u32, real);
            }
        }
        Ok(names)
    }

    /// The number of methods whose names the mapping file has restored.
    pub(super) fn mapped_count(&self) -> usize {
        self.mapped.len()
    }

    /// The signature, with the real names of classes; empty where it is not known.
    pub(super) fn signature(&self, method: u32) -> &str {
        match (self.signatures.get(&method), self.method(method)) {
            (Some(real), _) => real,
            (None, Some(traced)) => &traced.signature,
            (None, None) => "",
        }
    }

    fn method(&self, method: u32) -> Option<&'t Method<'a>> {
        self.methods.get(method as usize)
    }

    /// The class with its package, separated by dots; the library of a native function; `(unknown)` for an
    /// undeclared method.
    pub(super) fn class(&self, method: u32) -> Cow<'_, str> {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(mapped), _) => Cow::Borrowed(&mapped.class),
            (None, Some(method)) if is_native(method) => Cow::Borrowed(file_name(&method.file)),
            (None, Some(method)) if method.declared => method.class_name(),
            _ => Cow::Borrowed("(unknown)"),
        }
    }

    /// The package of the method's class; `(default)` if the class has none.
    pub(super) fn package(&self, method: u32) -> String {
        if let Some(native) = self.method(method).filter(|found| is_native(found)) {
            return if is_kernel_file(&native.file) {
                "(kernel)".to_owned()
            } else {
                "(native code)".to_owned()
            };
        }
        match self.class(method).rsplit_once('.') {
            Some((package, _)) => package.to_owned(),
            None => "(default)".to_owned(),
        }
    }

    /// `package.Class.method`; `(unknown 0x…)` for an undeclared method.
    pub(super) fn full(&self, method: u32) -> String {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(MappedMethod { class, name, .. }), _) => format!("{class}.{name}"),
            (None, Some(method)) => method.full_name(),
            (None, None) => "(none)".to_owned(),
        }
    }

    /// The full name with the signature, which distinguishes overloads, and with the methods that R8 has
    /// inlined.
    pub(super) fn long(&self, method: u32) -> String {
        let mut name = self.full(method);
        let signature = self.signature(method);
        if !signature.is_empty() {
            let _ = write!(name, " {signature}");
        }
        match self.inlined(method) {
            [] => {}
            inlined => _ = write!(name, " [inlines {}]", inlined.join(", ")),
        }
        name
    }

    /// The name of a method for people: with its parameters as Java types, or with the JVM descriptor.
    pub(super) fn shown(&self, method: u32, descriptors: bool) -> ShownName {
        let Some(traced) = self.method(method).filter(|traced| traced.declared) else {
            return ShownName::plain(&self.full(method));
        };
        let overload = self.overloads.get_or_init(|| self.overloads()).get(&method);
        let parameters = match overload {
            _ if descriptors || overload.is_none() => parameters(self.signature(method), descriptors),
            Some(parameters) => parameters.clone(),
            None => String::new(),
        };
        let class = if is_native(traced) { Cow::Borrowed("") } else { self.class(method) };
        let name = ShownName::method(&class, self.own(method), &parameters, overload.is_some());
        match self.inlined(method) {
            [] => name,
            inlined => name.with_note(&format!(" [inlines {}]", inlined.join(", "))),
        }
    }

    /// The method's name without its class.
    pub(super) fn own(&self, method: u32) -> &str {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(mapped), _) => &mapped.name,
            (None, Some(traced)) => &traced.name,
            (None, None) => "",
        }
    }

    /// The parameters of each method whose class has another method of the same name. Where the parameters
    /// alone do not distinguish the methods, the return types are added. Where these do not distinguish them
    /// either, the descriptors are taken.
    fn overloads(&self) -> HashMap<u32, String> {
        let declared = (0..self.methods.len() as u32).filter(|m| self.methods[*m as usize].declared);
        // Few methods share a name: a hash of the name alone finds those that may have overloads.
        let hasher = RandomState::new();
        let hash = |method: u32| hasher.hash_one((self.own(method), self.class(method).len()));
        let mut hashes: Vec<(u64, u32)> = declared.map(|method| (hash(method), method)).collect();
        hashes.sort_unstable();
        let mut by_name: HashMap<(Cow<'_, str>, &str), Vec<u32>> = HashMap::new();
        let shared = hashes.chunk_by(|(a, _), (b, _)| a == b).filter(|methods| methods.len() > 1);
        for (_, method) in shared.flatten().copied() {
            by_name.entry((self.class(method), self.own(method))).or_default().push(method);
        }
        let signature = |method: &u32| self.signature(*method);
        let mut overloads = HashMap::new();
        for methods in by_name.into_values().filter(|methods| methods.len() > 1) {
            let forms: [fn(&str) -> String; 3] =
                [|text| parameters(text, false), with_return_type, |text| parameters(text, true)];
            let forms = forms.map(|form| methods.iter().map(signature).map(form).collect::<Vec<String>>());
            let distinguishes = |form: &&Vec<String>| form.iter().collect::<HashSet<_>>().len() == form.len();
            let form = forms.iter().find(distinguishes).unwrap_or(&forms[0]);
            overloads.extend(methods.iter().copied().zip(form.iter().cloned()));
        }
        overloads
    }

    /// The methods that R8 has inlined into the method, as `class.method:line`, innermost first.
    pub(super) fn inlined(&self, method: u32) -> &[String] {
        self.mapped.get(&method).map_or(&[], |mapped| &mapped.inlined)
    }

    /// Source file and line, where known.
    pub(super) fn source(&self, method: u32) -> (Option<&str>, Option<i64>) {
        let Some(traced) = self.method(method) else { return (None, None) };
        let mapped = self.mapped.get(&method).and_then(|mapped| mapped.line).map(|line| line as i64);
        let line = mapped.or(traced.line.filter(|line| *line > 0).map(i64::from));
        (Some(traced.file.as_ref()).filter(|file| !file.is_empty()), line)
    }

    /// The thread's label. A thread whose name other threads share has its id in the label.
    pub(super) fn thread(&self, thread: u32) -> String {
        let threads = self.threads;
        let Some(this) = threads.get(thread as usize) else { return format!("thread #{thread}") };
        let label = this.label();
        let twins = self.thread_names.get(this.name.as_ref()).is_some_and(|n| *n > 1);
        if twins { format!("{label} ({})", this.id) } else { label.into_owned() }
    }
}

/// Whether a method is a function of a native library, as samples have them. Such a function has no class.
fn is_native(method: &Method<'_>) -> bool {
    method.declared && method.class.is_empty() && !method.file.is_empty()
}

/// The parameters of a signature as Java types; the descriptor as it is where that is requested, or where it
/// cannot be read.
fn parameters(signature: &str, as_descriptor: bool) -> String {
    match java_signature(signature).filter(|_| !as_descriptor) {
        Some((parameters, _)) => parameters,
        None if signature.is_empty() => String::new(),
        None => format!(" {signature}"),
    }
}

/// The parameters and the return type of a signature: `(String): Object`.
fn with_return_type(signature: &str) -> String {
    match java_signature(signature) {
        Some((parameters, Some(returns))) => format!("{parameters}: {returns}"),
        _ => parameters(signature, false),
    }
}

/// The method's name in the mapping file, looked up by signature and line.
fn real_name(mapping: &Mapping<'_>, method: &Method<'_>) -> Option<MappedMethod> {
    let line = method.line.and_then(|line| usize::try_from(line).ok()).filter(|line| *line > 0);
    mapping.method(&method.class_name(), &method.name, &method.signature, line)
}

/// The parameters of a descriptor as Java types in parentheses, and the return type, where the descriptor has
/// one. Classes stand without their packages. `None` for text that is no descriptor.
fn java_signature(descriptor: &str) -> Option<(String, Option<String>)> {
    let mut rest = descriptor.strip_prefix('(')?;
    let mut types = Vec::new();
    while !rest.starts_with(')') {
        let (name, after) = one_type(rest)?;
        types.push(name);
        rest = after;
    }
    let parameters = format!("({})", types.join(", "));
    match &rest[1..] {
        // Tests of the old dmtracedump end their descriptors here.
        "" => Some((parameters, None)),
        rest => match one_type(rest)? {
            (name, "") => Some((parameters, Some(name))),
            _ => None,
        },
    }
}

/// The Java type that `text` begins with, and the text behind it.
fn one_type(text: &str) -> Option<(String, &str)> {
    let element = text.trim_start_matches('[');
    let dimensions = text.len() - element.len();
    let (name, rest) = match element.strip_prefix('L') {
        Some(class) => {
            let (class, rest) = class.split_once(';')?;
            (class.rsplit(['/', '.']).next().unwrap_or(class), rest)
        }
        None => {
            let name = match element.chars().next()? {
                'B' => "byte",
                'C' => "char",
                'D' => "double",
                'F' => "float",
                'I' => "int",
                'J' => "long",
                'S' => "short",
                'V' => "void",
                'Z' => "boolean",
                _ => return None,
            };
            (name, &element[1..])
        }
    };
    Some((format!("{name}{}", "[]".repeat(dimensions)), rest))
}

/// A name in the parts that are dropped one by one. Control characters are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownName {
    /// The package with a dot at its end; empty where there is none.
    package: String,
    /// The class of a method with a dot at its end; empty for other names.
    class: String,
    /// The own name of the method, class, package or thread.
    own: String,
    /// The parameters, or the descriptor.
    parameters: String,
    /// Text behind the name: inlined methods, or a remark.
    note: String,
    /// Whether the parameters distinguish the method from another of its name.
    overloaded: bool,
}

impl std::fmt::Display for ShownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ShownName { package, class, own, parameters, note, overloaded: _ } = self;
        write!(f, "{package}{class}{own}{parameters}{note}")
    }
}

/// A name that fits: the own name, and the text on both sides of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FittedName {
    pub before: String,
    pub own: String,
    pub after: String,
}

impl FittedName {
    /// The number of columns of the name.
    pub(super) fn width(&self) -> usize {
        width(&self.before) + width(&self.own) + width(&self.after)
    }
}

/// The place of dropped text.
const ELLIPSIS: char = '…';
/// The place of dropped parameters.
const DROPPED_PARAMETERS: &str = "(…)";

fn width(text: &str) -> usize {
    text.chars().count()
}

impl ShownName {
    /// A method of a class, which is named with its package. The parameters follow the name as they are.
    pub(super) fn method(class: &str, own: &str, parameters: &str, overloaded: bool) -> ShownName {
        let (package, class) = split(class);
        let class = if class.is_empty() { String::new() } else { format!("{}.", printable(class)) };
        let parameters = printable(parameters).into_owned();
        ShownName {
            package: printable(package).into_owned(),
            class,
            parameters,
            overloaded,
            ..ShownName::plain(own)
        }
    }

    /// A class or a package: the last segment is its own name.
    pub(super) fn dotted(name: &str) -> ShownName {
        let (package, own) = split(name);
        ShownName { package: printable(package).into_owned(), ..ShownName::plain(own) }
    }

    /// A name without parts.
    pub(super) fn plain(own: &str) -> ShownName {
        let none = String::new;
        let own = printable(own).into_owned();
        ShownName { package: none(), class: none(), own, parameters: none(), note: none(), overloaded: false }
    }

    /// Adds text behind the name.
    pub(super) fn with_note(mut self, note: &str) -> ShownName {
        self.note = printable(note).into_owned();
        self
    }

    /// The number of columns of the whole name.
    pub(super) fn width(&self) -> usize {
        [&self.package, &self.class, &self.own, &self.parameters, &self.note]
            .map(|part| width(part))
            .iter()
            .sum()
    }

    /// The name in at most `room` columns; `None` where its own name is wider.
    pub(super) fn fit(&self, room: usize) -> Option<FittedName> {
        let left = room.checked_sub(width(&self.own))?;
        let with = |before: String, after: &str| FittedName {
            before,
            own: self.own.clone(),
            after: after.to_owned(),
        };
        let all = format!("{}{}", self.parameters, self.note);
        if self.width() <= room {
            return Some(with(format!("{}{}", self.package, self.class), &all));
        }
        let short = if width(&self.parameters) > width(DROPPED_PARAMETERS) {
            DROPPED_PARAMETERS
        } else {
            &self.parameters
        };
        let ways = [(&self.parameters[..], self.overloaded), (short, true), ("", true)];
        ways.into_iter().find_map(|(after, may_cut_class)| {
            let before = left.checked_sub(width(after))?;
            Some(with(self.fit_before(before, may_cut_class)?, after))
        })
    }

    /// The name in the whole terminal, which is `room` columns wide; a wider own name is cut.
    pub(super) fn fit_line(&self, room: usize) -> FittedName {
        self.fit(room).unwrap_or_else(|| {
            let own = self.own.chars().take(room.saturating_sub(1)).chain([ELLIPSIS]).collect();
            FittedName { before: String::new(), own, after: String::new() }
        })
    }

    /// Package and class in at most `room` columns.
    fn fit_before(&self, room: usize, may_cut_class: bool) -> Option<String> {
        let package = &self.package;
        let class = &self.class;
        if width(package) + width(class) <= room {
            return Some(format!("{package}{class}"));
        }
        let segments = package.match_indices('.').map(|(at, _)| &package[at + 1..]);
        let without = |kept: &str| format!("{ELLIPSIS}{kept}{class}");
        let kept = segments.map(without).find(|text| width(text) <= room);
        if kept.is_some() || !may_cut_class {
            return kept;
        }
        // Of a class at least one character and its dot are worth their columns.
        let kept = room.checked_sub(1).filter(|kept| *kept >= 2).unwrap_or(0);
        let skipped = width(class).saturating_sub(kept);
        Some([ELLIPSIS].into_iter().take(room).chain(class.chars().skip(skipped)).collect())
    }
}

/// A dotted name before its last segment, with the dot, and the last segment.
fn split(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('.').map_or(0, |dot| dot + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_become_java_types() {
        for (descriptor, parameters, returns) in [
            ("()V", "()", Some("void")),
            ("(JI)V", "(long, int)", Some("void")),
            (
                "([[ILjava/lang/String;Z)[Ljava/util/Map$Entry;",
                "(int[][], String, boolean)",
                Some("Map$Entry[]"),
            ),
            ("()", "()", None),
        ] {
            let expected = (parameters.to_owned(), returns.map(str::to_owned));
            assert_eq!(java_signature(descriptor), Some(expected), "{descriptor}");
        }
        for text in ["", "V", "(", "(J", "(Q)V", "(Ljava/lang/String)V", "()VV", "(é)V", "([)V"] {
            assert_eq!(java_signature(text), None, "{text}");
        }
    }

    fn fitted(name: &ShownName, room: usize) -> Option<String> {
        name.fit(room).map(|FittedName { before, own, after }| format!("{before}{own}{after}"))
    }

    #[test]
    fn a_method_loses_its_package_then_its_parameters_then_its_class_and_never_its_name() {
        let name = ShownName::method("org.mozilla.gecko.GeckoThread", "run", "(String, int)", false);
        let name = name.with_note(" [inlines a.B.c:7]");
        for (room, text) in [
            (99, "org.mozilla.gecko.GeckoThread.run(String, int) [inlines a.B.c:7]"),
            (63, "org.mozilla.gecko.GeckoThread.run(String, int)"),
            (45, "…mozilla.gecko.GeckoThread.run(String, int)"),
            (42, "…gecko.GeckoThread.run(String, int)"),
            (34, "…GeckoThread.run(String, int)"),
            (28, "…gecko.GeckoThread.run(…)"),
            (23, "…GeckoThread.run(…)"),
            (18, "…eckoThread.run(…)"),
            (9, "…d.run(…)"),
            (8, "…run(…)"),
            (7, "…run(…)"),
            (6, "run(…)"),
            (5, "…run"),
            (3, "run"),
        ] {
            assert_eq!(fitted(&name, room).as_deref(), Some(text), "{room}");
        }
        assert_eq!(fitted(&name, 2), None);
        assert_eq!(name.fit_line(2).own, "r…");
    }

    #[test]
    fn overloads_keep_their_parameters_longer_than_their_class() {
        let name = ShownName::method("java.lang.Object", "wait", "(long, int)", true);
        assert_eq!(fitted(&name, 18).as_deref(), Some("…t.wait(long, int)"));
        assert_eq!(fitted(&name, 14).as_deref(), Some("…bject.wait(…)"));
    }

    #[test]
    fn names_fit_at_every_width_and_are_whole_where_they_fit() {
        let names = [
            ShownName::method("a.b.Cäsar$Inner", "größe", "()", true),
            ShownName::method("", "(unknown 0x1c)", "", false),
            ShownName::dotted("org.mozilla.gecko"),
            ShownName::dotted("(default)"),
            ShownName::plain("main\x1b[2J"),
        ];
        for name in names {
            for room in 0..80 {
                match name.fit(room) {
                    Some(fitted) => {
                        assert!(fitted.width() <= room && fitted.own == name.own, "{room}: {fitted:?}");
                    }
                    None => assert!(room < width(&name.own)),
                }
                assert!(name.fit_line(room.max(1)).width() <= room.max(1));
            }
            assert_eq!(name.fit(99).unwrap().width(), name.width());
            assert!(!name.own.contains('\x1b'));
        }
    }
}
