//! The table of strings that a page's tracks and names refer to by number.

use std::collections::HashMap;

use serde::ser::{Serialize, SerializeSeq, Serializer};

/// Texts, each of which is kept once.
#[derive(Default)]
pub(super) struct Strings {
    ids: HashMap<Box<[u8]>, u32>,
}

impl Strings {
    /// The number of a text.
    pub fn id(&mut self, text: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.ids.len() as u32;
        self.ids.insert(text.into(), id);
        id
    }
}

/// As a JSON array of strings, in the order of their numbers. Bytes that are no UTF-8 are replaced.
impl Serialize for Strings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut texts: Vec<(u32, &[u8])> = self.ids.iter().map(|(text, id)| (*id, &text[..])).collect();
        texts.sort_unstable_by_key(|(id, _)| *id);
        let mut all = serializer.serialize_seq(Some(texts.len()))?;
        for (_, text) in texts {
            all.serialize_element(&String::from_utf8_lossy(text))?;
        }
        all.end()
    }
}
