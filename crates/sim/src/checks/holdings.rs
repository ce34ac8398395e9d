//! Everything that a replica holds, in entries and bytes, by the names of the fields that hold it.
//!
//! Nobody lists what there is: a replica says itself what it consists of, field by field, as `derive(Debug)` writes it,
//! and this reads along. A collection that is added is measured from then on. Bytes are those of payloads as they are,
//! and of everything else about as many as it takes to write it down; shared buffers count wherever they are held.

use std::fmt::{self, Debug, Write};

/// What a collection holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Entries, over all collections with that path.
    pub entries: u64,
    /// Bytes, nearly.
    pub bytes: u64,
}

/// What holds something: its own place, and the place that it is in.
#[derive(Debug)]
struct Place {
    name: String,
    above: usize,
    /// The places in it.
    below: Vec<usize>,
    held: Held,
    is_collection: bool,
}

impl Place {
    fn new(name: &str, above: usize) -> Self {
        Self { name: name.into(), above, below: Vec::new(), held: Held::default(), is_collection: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Fields with names.
    Struct,
    /// A list, a set or a map.
    Collection,
    /// Values without names.
    Tuple,
}

/// What is open in the text: its form, the place that it belongs to, its entries so far, and where its text began.
#[derive(Clone, Copy, Debug)]
struct Open {
    form: Form,
    place: usize,
    entries: u64,
    begun: u64,
    /// Whether an entry has begun since the last comma.
    within: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Holdings {
    places: Vec<Place>,
    open: Vec<Open>,
    /// The place whose value is read.
    place: usize,
    /// The word that is being read.
    word: String,
    /// Whether that word, or another value, ended right before: then a brace opens fields.
    after_word: bool,
    after_colon: bool,
    /// Whether it is between quotes.
    quoted: bool,
    escape: u8,
    bytes: u64,
}

impl Holdings {
    /// Of anything that can be written down.
    pub fn of(value: &impl Debug) -> Self {
        let mut holdings = Self {
            places: vec![Place::new("", 0)],
            open: Vec::new(),
            place: 0,
            word: String::new(),
            after_word: false,
            after_colon: false,
            quoted: false,
            escape: 0,
            bytes: 0,
        };
        // Writing here cannot fail, and what is written is derived.
        let _ = write!(holdings, "{value:?}");
        holdings
    }

    /// Every collection that was met, by the names of the fields above it, and whether it lies in another one.
    pub fn collections(&self) -> impl Iterator<Item = (String, Held, bool)> + '_ {
        let places = self.places.iter().filter(|place| place.is_collection);
        places.map(|place| (self.path(place), place.held, self.is_part(place)))
    }

    fn is_part(&self, place: &Place) -> bool {
        let mut above = place.above;
        while above != 0 {
            if self.places[above].is_collection {
                return true;
            }
            above = self.places[above].above;
        }
        false
    }

    /// All bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn path(&self, place: &Place) -> String {
        let mut names = vec![place.name.as_str()];
        let mut above = place.above;
        while above != 0 {
            names.push(&self.places[above].name);
            above = self.places[above].above;
        }
        names.reverse();
        names.join(".")
    }

    /// The place with the name that was just read.
    fn child(&mut self, above: usize) -> usize {
        let known = self.places[above].below.iter().find(|place| self.places[**place].name == self.word);
        if let Some(place) = known {
            return *place;
        }
        let place = self.places.len();
        self.places.push(Place::new(&self.word, above));
        self.places[above].below.push(place);
        place
    }

    fn begin(&mut self, form: Form) {
        self.entry();
        self.open.push(Open { form, place: self.place, entries: 0, begun: self.bytes, within: false });
        self.word.clear();
        (self.after_word, self.after_colon) = (false, false);
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        // One in an entry of another, without a name in between, is a part of that.
        let is_part = |above: &Open| above.form == Form::Collection && above.place == open.place;
        if open.form == Form::Collection && !self.open.iter().any(is_part) {
            let place = &mut self.places[open.place];
            place.is_collection = true;
            place.held.entries += open.entries;
            place.held.bytes += self.bytes - open.begun;
        }
        self.place = open.place;
        self.word.clear();
        (self.after_word, self.after_colon) = (true, false);
    }

    /// Something begins that may be an entry.
    fn entry(&mut self) {
        if let Some(open) = self.open.last_mut()
            && !open.within
        {
            open.within = true;
            open.entries += 1;
        }
    }

    /// Reads a mark: what opens, closes or parts.
    fn mark(&mut self, mark: u8) {
        match mark {
            b'"' => {
                self.entry();
                self.quoted = true;
            }
            b'{' if self.after_word => self.begin(Form::Struct),
            b'{' | b'[' => self.begin(Form::Collection),
            b'(' => self.begin(Form::Tuple),
            b'}' | b']' | b')' => self.end(),
            b',' => {
                if let Some(open) = self.open.last_mut() {
                    open.within = false;
                    self.place = open.place;
                }
                self.word.clear();
                (self.after_word, self.after_colon) = (false, false);
            }
            b':' => {
                self.after_colon = true;
                self.after_word = false;
            }
            _ if self.after_colon => {
                // A name and its value; in a map, a key.
                if let Some(Open { form: Form::Struct, place, .. }) = self.open.last().copied() {
                    self.place = self.child(place);
                }
                self.word.clear();
                (self.after_word, self.after_colon) = (false, false);
            }
            _ => self.after_word = !self.word.is_empty(),
        }
    }

    /// Reads what is no mark: names, numbers.
    fn plain(&mut self, text: &str) {
        self.entry();
        if self.after_word || self.after_colon {
            self.word.clear();
        }
        self.word.push_str(text);
        (self.after_word, self.after_colon) = (false, false);
        self.bytes += text.len() as u64;
    }

    /// Reads a byte between quotes.
    fn quoted(&mut self, byte: u8) {
        match (self.escape, byte) {
            // `\x` and two digits are one byte.
            (1, b'x') => self.escape = 3,
            (1 | 2, _) => {
                self.escape = 0;
                self.bytes += 1;
            }
            (3, _) => self.escape = 2,
            (_, b'\\') => self.escape = 1,
            (_, b'"') => self.quoted = false,
            _ => self.bytes += 1,
        }
    }
}

const fn is_mark(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b',' | b':' | b' ')
}

impl Write for Holdings {
    /// Nearly all of the time goes here: what is no mark is taken as a whole.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if self.quoted {
                self.quoted(bytes[at]);
                at += 1;
            } else if is_mark(bytes[at]) {
                self.mark(bytes[at]);
                at += 1;
            } else {
                let end = bytes[at..].iter().position(|byte| is_mark(*byte)).map_or(bytes.len(), |length| at + length);
                self.plain(&text[at..end]);
                at = end;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Debug)]
    #[allow(dead_code)]
    struct Inner {
        list: Vec<(u32, Bytes)>,
        none: Option<u8>,
    }

    #[derive(Debug)]
    #[allow(dead_code)]
    enum Part {
        Full { map: BTreeMap<u8, Inner> },
        Of(BTreeSet<u8>),
    }

    #[derive(Debug)]
    #[allow(dead_code)]
    struct Whole {
        parts: Vec<Part>,
        empty: Vec<u8>,
        name: &'static str,
    }

    #[test]
    fn everything_is_counted_where_it_is() {
        let inner = |count: usize| Inner {
            list: (0..count).map(|_| (7, Bytes::from_static(b"\x00\"{[,: \n\xff"))).collect(),
            none: None,
        };
        let map = [(1, inner(2)), (2, inner(3)), (9, inner(0))].into();
        let parts = vec![Part::Full { map }, Part::Of([1, 2, 3].into())];
        let whole = Whole { parts, empty: Vec::new(), name: "a {b: [c, d]}, e" };
        let holdings = Holdings::of(&whole);
        let entries: BTreeMap<String, u64> =
            holdings.collections().map(|(path, held, _)| (path, held.entries)).collect();
        // The variants of an enum have no names of fields: the set is a part of the list.
        let expected = [("parts", 2), ("parts.map", 3), ("parts.map.list", 5), ("empty", 0)];
        assert_eq!(entries, expected.map(|(path, count)| (path.to_string(), count)).into());
        let (_, list, is_part) = holdings.collections().find(|(path, ..)| path == "parts.map.list").unwrap();
        assert!(is_part);
        // Nine bytes of payload, `7` and `b` for each.
        assert_eq!(list.bytes, 5 * 11);
    }
}
