//! Texts that occur often, by numbers.

use rustc_hash::FxHashMap;

/// The number of a name in [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameId(u32);

/// Texts that occur often, each kept once.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, NameId>,
}

impl Names {
    /// The number of a text; bytes that are not UTF-8 are replaced.
    pub fn number_of_bytes(&mut self, bytes: &[u8]) -> NameId {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.number(text),
            Err(_) => self.number(&String::from_utf8_lossy(bytes)),
        }
    }

    pub fn number(&mut self, text: &str) -> NameId {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = NameId(self.texts.len() as u32);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The number of a text that is kept.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.numbers.get(text).copied()
    }

    pub fn text(&self, name: NameId) -> &str {
        self.texts.get(name.0 as usize).map_or("", |text| text)
    }
}
