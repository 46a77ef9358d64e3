//! What methods are called in the output: as traced, or as an R8/ProGuard mapping file gives them back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use proguard::{ProguardMapper, ProguardMapping, StackFrame};

use crate::formats::art_method::{Method, MethodTrace};

/// A method's real name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapped {
    class: String,
    name: String,
    line: Option<usize>,
    /// `class.method:line` of what R8 had inlined there, innermost first.
    inlined: Vec<String>,
}

/// Names of a trace's methods.
#[derive(Debug)]
pub struct Names<'t, 'a> {
    trace: &'t MethodTrace<'a>,
    mapped: HashMap<u32, Mapped>,
}

/// Why a mapping file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// No line of it maps a class.
    #[error("no mapping file: it has no line of the form `real.Class -> a.b:`; R8 writes it as mapping.txt")]
    NotAMapping,
}

impl<'t, 'a> Names<'t, 'a> {
    /// Names as traced.
    pub fn new(trace: &'t MethodTrace<'a>) -> Self {
        Names { trace, mapped: HashMap::new() }
    }

    /// Names as `mapping` (the content of a mapping file) has them; methods that it does not know keep theirs.
    pub fn mapped(trace: &'t MethodTrace<'a>, mapping: &[u8]) -> Result<Self, MappingError> {
        let mapping = ProguardMapping::new(mapping);
        if !mapping.is_valid() {
            return Err(MappingError::NotAMapping);
        }
        let mapper = ProguardMapper::new_with_param_mapping(mapping, true);
        let mut mapped = HashMap::new();
        for (n, method) in trace.methods().iter().enumerate().filter(|(_, method)| method.declared) {
            if let Some(real) = real_name(&mapper, method) {
                mapped.insert(n as u32, real);
            }
        }
        Ok(Names { trace, mapped })
    }

    /// How many methods the mapping file gave another name.
    pub fn mapped_count(&self) -> usize {
        self.mapped.len()
    }

    fn method(&self, method: u32) -> Option<&'t Method<'a>> {
        self.trace.methods().get(method as usize)
    }

    /// The class with its package, dots in between; `(unknown)` for an undeclared method.
    pub fn class(&self, method: u32) -> Cow<'_, str> {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(mapped), _) => Cow::Borrowed(&mapped.class),
            (None, Some(method)) if method.declared => method.class_name(),
            _ => Cow::Borrowed("(unknown)"),
        }
    }

    /// The package; `(default)` where the class has none.
    pub fn package(&self, method: u32) -> String {
        match self.class(method).rsplit_once('.') {
            Some((package, _)) => package.to_owned(),
            None => "(default)".to_owned(),
        }
    }

    /// `package.Class.method`; `(unknown 0x…)` for an undeclared method.
    pub fn full(&self, method: u32) -> String {
        match (self.mapped.get(&method), self.method(method)) {
            (Some(Mapped { class, name, .. }), _) => format!("{class}.{name}"),
            (None, Some(method)) => method.full_name(),
            (None, None) => "(none)".to_owned(),
        }
    }

    /// The same with the signature, and with what was inlined: tells overloads apart.
    pub fn long(&self, method: u32) -> String {
        let mut name = self.full(method);
        if let Some(method) = self.method(method).filter(|method| !method.signature.is_empty()) {
            let _ = write!(name, " {}", method.signature);
        }
        match self.inlined(method) {
            [] => {}
            inlined => _ = write!(name, " [inlines {}]", inlined.join(", ")),
        }
        name
    }

    /// What R8 had inlined into the method, where the mapping file tells: `class.method:line`, innermost first.
    pub fn inlined(&self, method: u32) -> &[String] {
        self.mapped.get(&method).map_or(&[], |mapped| &mapped.inlined)
    }

    /// Source file and line, where known.
    pub fn source(&self, method: u32) -> (Option<&str>, Option<i64>) {
        let Some(traced) = self.method(method) else { return (None, None) };
        let mapped = self.mapped.get(&method).and_then(|mapped| mapped.line).map(|line| line as i64);
        let line = mapped.or(traced.line.filter(|line| *line > 0).map(i64::from));
        (Some(traced.file.as_ref()).filter(|file| !file.is_empty()), line)
    }

    /// The thread's label; threads of the same name are told apart by their ids.
    pub fn thread(&self, thread: u32) -> String {
        let threads = self.trace.threads();
        let Some(this) = threads.get(thread as usize) else { return format!("thread #{thread}") };
        let label = this.label();
        let twins = threads.iter().filter(|t| t.name == this.name).count();
        if twins > 1 && !this.name.is_empty() { format!("{label} ({})", this.id) } else { label.into_owned() }
    }
}

fn real_name(mapper: &ProguardMapper<'_>, method: &Method<'_>) -> Option<Mapped> {
    let class = method.class_name();
    let line = method.line.and_then(|line| usize::try_from(line).ok()).filter(|line| *line > 0);
    let parameters = parameters(mapper, &method.signature);
    let of_frame = |frame: &StackFrame<'_>| {
        mapper
            .remap_frame(frame)
            .map(|f| (f.class().to_owned(), f.method().to_owned(), f.line()))
            .collect::<Vec<_>>()
    };
    let mut frames = match line {
        Some(line) => of_frame(&StackFrame::new(&class, &method.name, line)),
        None => Vec::new(),
    };
    if frames.is_empty() {
        frames = of_frame(&StackFrame::with_parameters(&class, &method.name, &parameters));
    }
    let outermost = frames.pop();
    let inlined = frames.into_iter().map(|(class, name, line)| match line {
        Some(line) if line > 0 => format!("{class}.{name}:{line}"),
        _ => format!("{class}.{name}"),
    });
    let inlined: Vec<_> = inlined.collect();
    let (class, name, line) = outermost
        .or_else(|| {
            mapper.remap_method(&class, &method.name).map(|(c, m)| (c.to_owned(), m.to_owned(), None))
        })
        .or_else(|| Some((mapper.remap_class(&class)?.to_owned(), method.name.to_string(), None)))?;
    Some(Mapped { class, name, line: line.filter(|line| *line > 0), inlined })
}

/// The parameter types of a JNI signature as mapping files write them, with real class names.
fn parameters(mapper: &ProguardMapper<'_>, signature: &str) -> String {
    let mut types = Vec::new();
    let inner =
        signature.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inner, _)| inner);
    let mut rest = inner;
    let mut arrays = 0;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let name = match c {
            '[' => {
                arrays += 1;
                continue;
            }
            'L' => {
                let (class, more) = rest.split_once(';').unwrap_or((rest, ""));
                rest = more;
                let class = class.replace('/', ".");
                mapper.remap_class(&class).map_or(class.clone(), str::to_owned)
            }
            'Z' => "boolean".into(),
            'B' => "byte".into(),
            'C' => "char".into(),
            'S' => "short".into(),
            'I' => "int".into(),
            'J' => "long".into(),
            'F' => "float".into(),
            'D' => "double".into(),
            other => other.to_string(),
        };
        types.push(name + &"[]".repeat(std::mem::take(&mut arrays)));
    }
    types.join(",")
}
