//! `DeobfuscationMapping`: the real names of an app's classes and methods, which `traceconv deobfuscate` and
//! Android Studio append to a trace (protos/perfetto/trace/profiling/deobfuscation.proto).

use std::collections::HashMap;

use super::fields::{deobfuscation_mapping, obfuscated_class, obfuscated_member, trace_packet};
use super::wire::read::{WireValue, fields, last_value};
use crate::art::Mapping;

/// The mapping of a package as the text of a mapping file of R8, which has one home for its rules.
pub(super) struct MappingText {
    package: String,
    text: String,
    /// The real names of methods that R8 took from other classes, by the name that they have in the trace.
    moved: HashMap<String, String>,
}

impl MappingText {
    /// Reads the `DeobfuscationMapping` of a packet, if it has one.
    pub(super) fn of_packet(packet: &[u8]) -> Option<MappingText> {
        let message = last_value(packet, trace_packet::DEOBFUSCATION_MAPPING)?.bytes();
        let package = last_value(message, deobfuscation_mapping::PACKAGE_NAME);
        let package =
            package.map_or(String::new(), |name| String::from_utf8_lossy(name.bytes()).into_owned());
        let mut text = String::new();
        let mut moved = HashMap::new();
        for (_, class) in fields(message).filter(|(n, _)| *n == deobfuscation_mapping::OBFUSCATED_CLASSES) {
            let class = class.bytes();
            let Some([real, obfuscated]) =
                names(class, [obfuscated_class::DEOBFUSCATED_NAME, obfuscated_class::OBFUSCATED_NAME])
            else {
                continue;
            };
            text += &format!("{real} -> {obfuscated}:\n");
            for (_, method) in fields(class).filter(|(n, _)| *n == obfuscated_class::OBFUSCATED_METHODS) {
                let both = [obfuscated_member::DEOBFUSCATED_NAME, obfuscated_member::OBFUSCATED_NAME];
                let Some([real, method]) = names(method.bytes(), both) else { continue };
                if real.contains('.') {
                    moved.insert(format!("{obfuscated}.{method}"), real.to_owned());
                } else {
                    text += &format!("    void {real}() -> {method}\n");
                }
            }
        }
        Some(MappingText { package, text, moved })
    }
}

/// Two names of a message; `None` where one is missing, or could not stand in a mapping file.
fn names(message: &[u8], wanted: [u32; 2]) -> Option<[&str; 2]> {
    let name = |field| std::str::from_utf8(last_value(message, field).map(WireValue::bytes)?).ok();
    let both = [name(wanted[0])?, name(wanted[1])?];
    let is_name = |name: &&str| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '#' | '(' | ')'))
    };
    both.iter().all(is_name).then_some(both)
}

/// The mappings of a trace's packages.
#[derive(Default)]
pub(super) struct PackageMappings<'m> {
    list: Vec<(&'m MappingText, Mapping<'m>)>,
}

impl<'m> PackageMappings<'m> {
    /// The mappings of these texts; those without a class are left out.
    pub(super) fn new(texts: &'m [MappingText]) -> PackageMappings<'m> {
        let list = texts.iter().filter_map(|text| Some((text, Mapping::parse(text.text.as_bytes()).ok()?)));
        PackageMappings { list: list.collect() }
    }

    /// The real name of a function of a file. Where mappings of several packages know the name, the package
    /// decides that the file's path names: `/data/app/~~rand==/com.example-rand==/base.apk`.
    pub(super) fn real_name(&self, path: &str, name: &str) -> Option<String> {
        let is_of = |package: &str| {
            !package.is_empty()
                && path.split('/').any(|part| {
                    part.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                })
        };
        let real = |(text, mapping): &(&MappingText, Mapping<'m>)| {
            text.moved.get(name).cloned().or_else(|| mapping.text(name))
        };
        let own = self.list.iter().filter(|(text, _)| is_of(&text.package));
        if let Some(real) = own.filter_map(real).last() {
            return Some(real);
        }
        let mut found = self.list.iter().filter_map(real);
        let real = found.next()?;
        found.all(|other| other == real).then_some(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::perfetto::wire::write::{message, string};

    /// A packet with the mapping of a package: a class, and its method `b`.
    fn packet(package: &str, class: &str, method: &str) -> Vec<u8> {
        let mut packet = Vec::new();
        message(&mut packet, trace_packet::DEOBFUSCATION_MAPPING, |out| {
            string(out, deobfuscation_mapping::PACKAGE_NAME, package.as_bytes());
            message(out, deobfuscation_mapping::OBFUSCATED_CLASSES, |out| {
                string(out, obfuscated_class::DEOBFUSCATED_NAME, class.as_bytes());
                string(out, obfuscated_class::OBFUSCATED_NAME, b"a");
                message(out, obfuscated_class::OBFUSCATED_METHODS, |out| {
                    string(out, obfuscated_member::DEOBFUSCATED_NAME, method.as_bytes());
                    string(out, obfuscated_member::OBFUSCATED_NAME, b"b");
                });
            });
        });
        packet
    }

    #[test]
    fn the_package_of_the_file_decides_between_two_mappings() {
        let packets = [packet("com.one", "com.one.Main", "run"), packet("com.two", "com.two.Main", "go")];
        let texts: Vec<MappingText> = packets.iter().filter_map(|p| MappingText::of_packet(p)).collect();
        let mappings = PackageMappings::new(&texts);
        let real = |path: &str| mappings.real_name(path, "a.b");
        assert_eq!(real("/data/app/~~x==/com.two-y==/base.apk").as_deref(), Some("com.two.Main.go"));
        assert_eq!(real("/data/app/com.one/base.apk").as_deref(), Some("com.one.Main.run"));
        assert_eq!(real("/data/app/com.one.more-y==/base.apk"), None, "of neither: it may be either");
        let alone = PackageMappings::new(&texts[..1]);
        assert_eq!(alone.real_name("/anywhere", "a.b").as_deref(), Some("com.one.Main.run"));
    }

    #[test]
    fn a_method_of_another_class_has_its_name_and_bad_names_are_left_out() {
        let packets = [packet("p", "com.one.Main", "com.two.Moved.run")];
        let texts: Vec<MappingText> = packets.iter().filter_map(|p| MappingText::of_packet(p)).collect();
        let mappings = PackageMappings::new(&texts);
        assert_eq!(mappings.real_name("", "a.b").as_deref(), Some("com.two.Moved.run"));
        let texts = [MappingText::of_packet(&packet("p", "com.one.Main", "run\nx -> y:")).unwrap()];
        assert_eq!(PackageMappings::new(&texts).real_name("", "a.b").as_deref(), Some("com.one.Main.b"));
        let texts = [MappingText::of_packet(&packet("p", "x -> y", "run")).unwrap()];
        assert_eq!(PackageMappings::new(&texts).real_name("", "a.b"), None);
    }
}
