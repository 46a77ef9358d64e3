//! Names in tables and trees, and how they become shorter where they do not fit.
//!
//! One rule holds for all names: what is dropped is dropped in this order, and a `…` stands in its place.
//! 1. the methods that R8 has inlined
//! 2. the package, segment by segment from the left: `…gecko.GeckoThread.run(String)`
//! 3. the parameters, `GeckoThread.run(…)`; but of a method with overloads only after the class
//! 4. the class, from the left: `…Thread.run(…)`
//!
//! The method's own name is never cut. Where it does not fit, it stands on a line of its own.

use crate::console::printable;

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
                        assert!(fitted.width() <= room && fitted.own == name.own, "{room}: {fitted:?}")
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
