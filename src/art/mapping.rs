//! Mapping files of R8 and ProGuard: the real names of obfuscated methods, and of names inside markers.
//!
//! The crate `proguard` parses the lines. A parsed file takes some 60 times the memory of its text, so only
//! the lines of the method that is looked up are parsed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use proguard::{ProguardMapper, ProguardMapping, StackFrame};

/// The most member lines of classes whose lines are indexed at a time.
const MAX_INDEXED_LINES: usize = 1 << 19;

/// A method's real name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedMethod {
    /// The class with its package, separated by dots.
    pub class: String,
    /// The method's name without its class.
    pub name: String,
    /// The line in the source, where the mapping file states it.
    pub line: Option<usize>,
    /// The methods that R8 has inlined at the requested line, as `class.method:line`, innermost first.
    pub inlined: Vec<String>,
}

/// The reason why a mapping file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// No line maps a class.
    #[error("no mapping file: it has no line of the form `real.Class -> a.b:`; R8 writes it as mapping.txt")]
    NotAMapping,
}

/// A mapping file, in which names can be looked up.
#[derive(Debug)]
pub struct Mapping<'m> {
    content: &'m [u8],
    /// By obfuscated name.
    classes: HashMap<&'m str, MappedClass<'m>>,
    /// The lines of the classes that were looked up last.
    indexed: RefCell<IndexedClasses>,
}

/// A class of a mapping file.
#[derive(Debug, Clone)]
struct MappedClass<'m> {
    original: &'m str,
    /// Where the class's own line lies in the file.
    head: Range<usize>,
    /// Where the lines of the class's members lie in the file.
    members: Range<usize>,
}

/// For each obfuscated name of a member, where its lines lie in the file, together with the comments behind
/// each line.
type MemberLines = HashMap<Box<[u8]>, Vec<Range<usize>>>;

/// The indexed classes, by the start of their members in the file.
#[derive(Debug, Default)]
struct IndexedClasses {
    classes: HashMap<usize, Rc<MemberLines>>,
    lines: usize,
}

/// The lines of `content` with their places, without line ends.
fn lines(content: &[u8], within: Range<usize>) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let mut at = within.start;
    std::iter::from_fn(move || {
        let rest = content.get(at..within.end).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let place = at..at + len;
        at += len;
        Some((place, rest[..len].trim_ascii_end()))
    })
}

/// The original and the obfuscated name of a class's own line, `real.Class -> a.b:`.
fn class_names(line: &[u8]) -> Option<(&str, &str)> {
    if line.first().is_none_or(|first| first.is_ascii_whitespace() || *first == b'#') {
        return None;
    }
    let (original, obfuscated) = std::str::from_utf8(line).ok()?.strip_suffix(':')?.split_once(" -> ")?;
    let names = (original.trim(), obfuscated.trim());
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    (is_name(names.0) && is_name(names.1)).then_some(names)
}

impl<'m> Mapping<'m> {
    /// Reads the content of a mapping file.
    ///
    /// # Errors
    /// [`MappingError::NotAMapping`] if no line maps a class.
    pub fn parse(content: &'m [u8]) -> Result<Mapping<'m>, MappingError> {
        let mut classes: HashMap<&str, MappedClass<'_>> = HashMap::new();
        let mut open: Option<(&str, MappedClass<'_>)> = None;
        for (place, line) in lines(content, 0..content.len()) {
            if let Some((original, obfuscated)) = class_names(line) {
                classes.extend(open.take());
                let members = place.end..place.end;
                open = Some((obfuscated, MappedClass { original, head: place, members }));
            } else if let Some((_, class)) = &mut open {
                class.members.end = place.end;
            }
        }
        classes.extend(open);
        if classes.is_empty() {
            return Err(MappingError::NotAMapping);
        }
        Ok(Mapping { content, classes, indexed: RefCell::default() })
    }

    /// The real name of an obfuscated class.
    fn class(&self, obfuscated: &str) -> Option<&'m str> {
        self.classes.get(obfuscated).map(|class| class.original)
    }

    /// The lines of the class with this obfuscated name.
    fn member_lines(&self, class: &MappedClass<'m>) -> Rc<MemberLines> {
        let mut indexed = self.indexed.borrow_mut();
        if let Some(lines) = indexed.classes.get(&class.members.start) {
            return lines.clone();
        }
        let mut by_name: MemberLines = HashMap::new();
        let mut last = None;
        let mut count = 0;
        for (place, line) in lines(self.content, class.members.clone()) {
            // A comment belongs to the member before it.
            let name = match memchr::memmem::rfind(line, b" -> ") {
                _ if line.trim_ascii_start().starts_with(b"#") => last,
                Some(arrow) => Some(&line[arrow + 4..]),
                None => None,
            };
            if let Some(name) = name {
                by_name.entry(name.into()).or_default().push(place);
                count += 1;
            }
            last = name;
        }
        if indexed.lines + count > MAX_INDEXED_LINES {
            *indexed = IndexedClasses::default();
        }
        indexed.lines += count;
        let lines = Rc::new(by_name);
        indexed.classes.insert(class.members.start, lines.clone());
        lines
    }

    /// The part of the file that maps the method: the class's line and the lines of the method.
    fn method_lines(&self, class: &str, name: &str) -> Option<Vec<u8>> {
        let class = self.classes.get(class)?;
        let mut part = self.content.get(class.head.clone())?.to_vec();
        let lines = self.member_lines(class);
        for place in lines.get(name.as_bytes()).into_iter().flatten() {
            part.extend_from_slice(self.content.get(place.clone())?);
        }
        Some(part)
    }

    /// The real name of `class.name` with this JNI signature (empty if unknown) at `line`; `None` if the
    /// mapping file has neither the method nor the class.
    pub fn method(
        &self,
        class: &str,
        name: &str,
        signature: &str,
        line: Option<usize>,
    ) -> Option<MappedMethod> {
        let part = self.method_lines(class, name)?;
        let mut frames = match line {
            Some(line) => real_frames(&part, &StackFrame::new(class, name, line)),
            None => Vec::new(),
        };
        if frames.is_empty() && !signature.is_empty() {
            let parameters = self.parameters(signature);
            let frame = StackFrame::with_parameters(class, name, &parameters);
            let of_range = |part: Vec<u8>| Some(real_frames(&part, &frame)).filter(|found| !found.is_empty());
            let mut ranges = parts_by_range(&part).into_iter().filter_map(of_range);
            frames = ranges.next().unwrap_or_default();
            // Without a line nothing tells which of several methods is meant that have one obfuscated name.
            for mut others in ranges {
                if let (Some((_, name, line)), Some((_, other, _))) = (frames.last_mut(), others.pop()) {
                    *name = format!("{name} | {other}");
                    *line = None;
                }
            }
        }
        let mapper = ProguardMapper::new_with_param_mapping(ProguardMapping::new(&part), true);
        let outermost = frames.pop();
        let inlined = frames.into_iter().map(|(class, name, line)| match line {
            Some(line) if line > 0 => format!("{class}.{name}:{line}"),
            _ => format!("{class}.{name}"),
        });
        let inlined: Vec<_> = inlined.collect();
        let (class, name, line) = outermost
            .or_else(|| mapper.remap_method(class, name).map(|(c, m)| (c.to_owned(), m.to_owned(), None)))
            .or_else(|| Some((self.class(class)?.to_owned(), name.to_owned(), None)))?;
        Some(MappedMethod { class, name, line: line.filter(|line| *line > 0), inlined })
    }

    /// The text of a marker in which each known name of the form `a.b.C` or `a.b.C.method` is replaced by the
    /// real name; `None` if no name is known. A name without a dot stays, because it may be any word.
    pub fn text(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        let mut at = 0;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$');
        while let Some(start) = text[at..].find(is_name).map(|n| at + n) {
            let end = text[start..].find(|c| !is_name(c)).map_or(text.len(), |n| start + n);
            let name = text[start..end].trim_end_matches('.');
            if let Some(real) = self.dotted(name) {
                out.push_str(&text[copied..start]);
                out.push_str(&real);
                copied = start + name.len();
            }
            at = end;
        }
        (copied > 0).then(|| out + &text[copied..])
    }

    fn dotted(&self, name: &str) -> Option<String> {
        let (class, method) = name.rsplit_once('.')?;
        if let Some(real) = self.class(name) {
            return Some(real.to_owned());
        }
        let real = self.class(class)?;
        let part = self.method_lines(class, method)?;
        let mapper = ProguardMapper::new(ProguardMapping::new(&part));
        let method = mapper.remap_method(class, method).map_or(method, |(_, real)| real);
        Some(format!("{real}.{method}"))
    }

    /// The JNI signature `(Lc;)V` with the real names of its classes; `None` where no class is in the mapping
    /// file.
    pub fn signature(&self, signature: &str) -> Option<String> {
        let mut real = String::new();
        let mut rest = signature;
        let mut is_changed = false;
        while let Some((before, behind)) = rest.split_once('L') {
            let Some((class, more)) = behind.split_once(';') else { break };
            let known = self.class(&class.replace('/', "."));
            is_changed |= known.is_some();
            let known = known.map(|name| name.replace('.', "/"));
            real.extend([before, "L", known.as_deref().unwrap_or(class), ";"]);
            rest = more;
        }
        is_changed.then(|| real + rest)
    }

    /// The parameter types of a JNI signature in the form of mapping files, with real class names.
    fn parameters(&self, signature: &str) -> String {
        let mut types = Vec::new();
        let inner = signature
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .map_or("", |(inner, _)| inner);
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
                    self.class(&class).map_or(class.clone(), str::to_owned)
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
}

/// A frame: the class, the method and the line in the source.
type RealFrame = (String, String, Option<usize>);

/// The frames that a frame stands for by the lines of its method, innermost first.
fn real_frames(part: &[u8], frame: &StackFrame<'_>) -> Vec<RealFrame> {
    let mapper = ProguardMapper::new_with_param_mapping(ProguardMapping::new(part), true);
    let real = mapper.remap_frame(frame).map(|f| (f.class().to_owned(), f.method().to_owned(), f.line()));
    real.collect()
}

/// The class's line with the member lines of each range of obfuscated lines: the lines of one range are
/// methods that R8 has inlined in each other, those of different ranges are different methods.
fn parts_by_range(part: &[u8]) -> Vec<Vec<u8>> {
    let mut all = lines(part, 0..part.len()).map(|(place, line)| (&part[place], line));
    let Some((head, _)) = all.next() else { return Vec::new() };
    let mut parts: Vec<(&[u8], Vec<u8>)> = Vec::new();
    for (whole, line) in all {
        let line = line.trim_ascii_start();
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b':').count();
        let range = &line[..digits];
        // A comment belongs to the member before it.
        let at = if line.starts_with(b"#") {
            parts.len().checked_sub(1)
        } else {
            parts.iter().position(|(known, _)| *known == obfuscated_range(range))
        };
        match at.and_then(|at| parts.get_mut(at)) {
            Some((_, lines)) => lines.extend_from_slice(whole),
            None => parts.push((obfuscated_range(range), [head, whole].concat())),
        }
    }
    parts.into_iter().map(|(_, lines)| lines).collect()
}

/// `1:4` of `1:4:`.
fn obfuscated_range(text: &[u8]) -> &[u8] {
    text.strip_suffix(b":").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_different_ranges_are_not_inlined_in_each_other() {
        let file =
            b"com.example.Main -> a.b:\n    7:8:void inner(int):87 -> c\n    7:8:void main(int):101 -> c\n\
            \x20   1:1:void first(int):10:10 -> d\n    2:2:void second(int):20:20 -> d\n";
        let mapping = Mapping::parse(file).unwrap();
        let real = mapping.method("a.b", "d", "(I)V", None).unwrap();
        assert_eq!((real.name.as_str(), real.line, real.inlined.len()), ("first | second", None, 0));
        let real = mapping.method("a.b", "d", "(I)V", Some(2)).unwrap();
        assert_eq!((real.name.as_str(), real.line), ("second", Some(20)));
        let real = mapping.method("a.b", "c", "(I)V", None).unwrap();
        assert_eq!((real.name.as_str(), real.inlined.len()), ("main", 0));
    }

    const FILE: &[u8] = b"com.example.Main -> a.b:\n    void onCreate(int) -> a\n    void onCreate(java.lang.String) -> a\ncom.example.View -> c.d:\n    void draw() -> e\n";

    #[test]
    fn names_inside_markers_become_real_names() {
        let mapping = Mapping::parse(FILE).unwrap();
        assert_eq!(
            mapping.text("inflate c.d, then c.d.e").as_deref(),
            Some("inflate com.example.View, then com.example.View.draw")
        );
        assert_eq!(mapping.text("RV OnLayout"), None);
        assert_eq!(mapping.text("x.y z 1.5 a."), None);
    }

    #[test]
    fn inlined_methods_and_lines_come_from_the_lines_of_the_method_alone() {
        let file = b"# compiler: R8\nreal.A -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"A.kt\"}\n\
            \x20   1:4:void real.B.inner():20:23 -> m\n    1:4:void outer():7 -> m\n\
            \x20   5:5:void other():9:9 -> n\r\nreal.C -> b:\n    int field -> x\n";
        let mapping = Mapping::parse(file).unwrap();
        let real = mapping.method("a", "m", "", Some(2)).unwrap();
        assert_eq!((real.class.as_str(), real.name.as_str(), real.line), ("real.A", "outer", Some(7)));
        assert_eq!(real.inlined, ["real.B.inner:21"]);
        let real = mapping.method("a", "n", "()V", None).unwrap();
        assert_eq!((real.class.as_str(), real.name.as_str()), ("real.A", "other"));
        let real = mapping.method("b", "unknown", "()V", None).unwrap();
        assert_eq!((real.class.as_str(), real.name.as_str()), ("real.C", "unknown"));
    }

    #[test]
    fn overloads_are_distinguished_by_their_parameters() {
        let mapping = Mapping::parse(FILE).unwrap();
        let real = mapping.method("a.b", "a", "(I)V", None).unwrap();
        assert_eq!((real.class.as_str(), real.name.as_str()), ("com.example.Main", "onCreate"));
        assert_eq!(
            mapping.signature("([La/b;ILx/L;)Lc/d;").as_deref(),
            Some("([Lcom/example/Main;ILx/L;)Lcom/example/View;")
        );
        assert_eq!(mapping.signature("(ILx/L;)V"), None);
        assert_eq!(mapping.method("x.y", "z", "()V", None), None);
        assert_eq!(Mapping::parse(b"hello").unwrap_err(), MappingError::NotAMapping);
    }
}
