//! What an encoding consists of, as the codec itself tells it: every value with its type, every list, payload,
//! signature. Nothing here knows a message; what is added to the wire is taken apart like the rest.

use bezant_core::wire::{Mark, Sink, Wire};
use std::ops::Range;

/// What a span of bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// A value of a type.
    Value(&'static str),
    /// Bytes that stand for nothing that the codec names: the tag of a variant, most of all.
    Raw,
    /// A count and values.
    List,
    /// A length and bytes.
    Payload,
    /// A value, its signer (one byte) and a signature of this kind.
    Signed(u8),
    /// A value, and signers with signatures of this kind.
    Certified(u8),
}

/// A part of an encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it is.
    pub shape: Shape,
    /// Its first byte.
    pub begin: usize,
    /// The byte after its last.
    pub end: usize,
    /// The span that it is a part of, by its place in the list.
    pub parent: Option<usize>,
}

impl Span {
    /// Where it lies.
    pub const fn range(&self) -> Range<usize> {
        self.begin..self.end
    }

    /// Bytes.
    pub const fn length(&self) -> usize {
        self.end - self.begin
    }
}

/// An encoding taken apart. Spans stand in the order in which they begin, each after what it is a part of.
#[derive(Clone, Debug, Default)]
pub struct Anatomy {
    /// The encoding.
    pub bytes: Vec<u8>,
    /// Its parts.
    pub spans: Vec<Span>,
    open: Vec<usize>,
}

impl Anatomy {
    /// Of a value.
    pub fn of(value: &impl Wire) -> Self {
        let mut anatomy = Self::default();
        value.encode(&mut anatomy);
        assert!(anatomy.open.is_empty(), "what begins ends");
        anatomy
    }

    /// The parts of a span, in order.
    pub fn parts(&self, span: usize) -> impl Iterator<Item = usize> + '_ {
        (span + 1..self.spans.len()).filter(move |at| self.spans[*at].parent == Some(span))
    }

    fn begin(&mut self, shape: Shape) {
        let at = self.bytes.len();
        self.spans.push(Span { shape, begin: at, end: at, parent: self.open.last().copied() });
        self.open.push(self.spans.len() - 1);
    }

    fn end(&mut self) {
        let at = self.open.pop().expect("what ends has begun");
        self.spans[at].end = self.bytes.len();
        let begun = &self.spans[at];
        // A value that is told twice, by its owner and by itself, or whose bytes are its only part.
        if let [child] = &self.spans[at + 1..]
            && child.range() == begun.range()
            && (child.shape == Shape::Raw || same(child.shape, begun.shape))
        {
            self.spans.pop();
        }
    }

    /// Bytes that no mark announces, unless they are a count or the content of a payload.
    fn raw(&mut self, length: usize) {
        let inside = self.open.last().map(|at| &self.spans[*at]);
        let counts = inside.is_some_and(|span| match span.shape {
            Shape::List => span.begin == self.bytes.len(),
            Shape::Payload => true,
            _ => false,
        });
        if !counts && length > 0 {
            let (begin, parent) = (self.bytes.len(), self.open.last().copied());
            self.spans.push(Span { shape: Shape::Raw, begin, end: begin + length, parent });
        }
    }
}

/// Whether two names mean one type: one has a path before it, or is the last part of it.
fn same(a: Shape, b: Shape) -> bool {
    match (a, b) {
        (Shape::Value(a), Shape::Value(b)) => last(a) == last(b),
        _ => false,
    }
}

/// The name of a type without the path before it.
pub(super) fn last(name: &str) -> &str {
    if name.contains('<') { name } else { name.rsplit("::").next().unwrap_or(name) }
}

impl Sink for Anatomy {
    fn push(&mut self, byte: u8) {
        self.raw(1);
        self.bytes.push(byte);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.raw(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Value(name) => self.begin(Shape::Value(last(name))),
            Mark::List => self.begin(Shape::List),
            Mark::Payload => self.begin(Shape::Payload),
            Mark::Signed(kind) => self.begin(Shape::Signed(kind)),
            Mark::Certified(kind) => self.begin(Shape::Certified(kind)),
            Mark::End => self.end(),
        }
    }
}
