//! Reads a TOML file against the [table of keys](super::reference): every value in what this returns is of its kind
//! and in its range, and every error names file and line.

use super::ConfigError;
use super::address::{Address, parse_listen};
use super::reference::{FileKind, Key, Kind, keys, nearest};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Sections that may occur more than once.
const REPEATED: &[&str] = &["replica", "identity", "peer"];

#[derive(Clone, Debug)]
enum Content {
    Number(u64),
    Text(String),
    List(Vec<String>),
    Flag(bool),
}

/// One table of the file: the top, `[limits]`, or one of several `[[replica]]`.
#[derive(Clone, Debug)]
pub(super) struct Section {
    name: String,
    line: usize,
    /// Values with their lines.
    values: BTreeMap<String, (usize, Content)>,
}

impl Section {
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.values.get(key)? {
            (_, Content::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            (_, Content::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> Option<&[String]> {
        match self.values.get(key)? {
            (_, Content::List(list)) => Some(list),
            _ => None,
        }
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.values.get(key)? {
            (_, Content::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// The line of a key, or of the section if the key is not given.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.values.get(key).map_or(self.line, |(line, _)| *line)
    }
}

/// A whole file. The first section is the top.
#[derive(Clone, Debug)]
pub(super) struct Document {
    file: String,
    sections: Vec<Section>,
}

impl Document {
    /// Reads and checks.
    pub(super) fn parse(file: &str, kind: FileKind, text: &str) -> Result<Self, ConfigError> {
        let reader = Reader { file, kind, text };
        if text.len() > FILE_BYTES_MAX {
            return Err(reader.error(0, format!("the file is larger than {FILE_BYTES_MAX} bytes")));
        }
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reader.error(at, error.message().trim_end())
        })?;
        let mut sections = reader.sections(table.get_ref())?;
        sections[1..].sort_by_key(|section| section.line);
        let document = Self { file: file.to_owned(), sections };
        document.check_required(kind)?;
        Ok(document)
    }

    fn check_required(&self, kind: FileKind) -> Result<(), ConfigError> {
        for key in keys().iter().filter(|key| key.file == kind && key.default.is_none()) {
            let (section, name) = key.split();
            if let Some(found) = self.all(section).find(|found| !found.values.contains_key(name)) {
                return Err(self.error(found.line, format!("`{}` is missing: {}", key.name, key.about)));
            }
        }
        Ok(())
    }

    /// What stands before any section.
    pub(super) fn top(&self) -> &Section {
        &self.sections[0]
    }

    /// Every section of a name, in the order of the file.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.name == name)
    }

    /// An error at a line.
    pub(super) fn error(&self, line: usize, message: impl Into<String>) -> ConfigError {
        ConfigError { file: self.file.clone(), line: Some(line), message: message.into() }
    }
}

/// What is needed to say where something is wrong.
struct Reader<'a> {
    file: &'a str,
    kind: FileKind,
    text: &'a str,
}

/// Gathers results; of several errors the first in the file is reported.
struct Gathered<T> {
    values: Vec<T>,
    error: Option<ConfigError>,
}

impl<T> Gathered<T> {
    const fn new() -> Self {
        Self { values: Vec::new(), error: None }
    }

    fn take(&mut self, result: Result<T, ConfigError>) {
        match result {
            Ok(value) => self.values.push(value),
            Err(error) if self.error.as_ref().is_none_or(|first| error.line < first.line) => self.error = Some(error),
            Err(_) => {}
        }
    }

    fn finish(self) -> Result<Vec<T>, ConfigError> {
        self.error.map_or(Ok(self.values), Err)
    }
}

fn is_section(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(_) => true,
        DeValue::Array(array) => array.iter().any(|element| element.get_ref().is_table()),
        _ => false,
    }
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|&byte| byte == b'\n').count()
    }

    fn error(&self, at: usize, message: impl Into<String>) -> ConfigError {
        ConfigError { file: self.file.to_owned(), line: Some(self.line(at)), message: message.into() }
    }

    fn known(&self) -> impl Iterator<Item = &'static Key> {
        let kind = self.kind;
        keys().iter().filter(move |key| key.file == kind)
    }

    /// All sections of the file, the top first.
    fn sections(&self, top: &DeTable<'_>) -> Result<Vec<Section>, ConfigError> {
        let mut sections = Gathered::new();
        let values = top.iter().filter(|(_, value)| !is_section(value.get_ref()));
        sections.take(self.section("", 0, values));
        for (key, value) in top.iter().filter(|(_, value)| is_section(value.get_ref())) {
            let name = key.get_ref().as_ref();
            let at = key.span().start;
            if !self.known().any(|key| key.split().0 == name) {
                sections.take(Err(self.unknown(at, "", name)));
                continue;
            }
            match value.get_ref() {
                DeValue::Table(table) if !REPEATED.contains(&name) => {
                    sections.take(self.section(name, at, table.iter()));
                }
                DeValue::Array(array) if REPEATED.contains(&name) => {
                    for element in array.iter() {
                        let at = element.span().start;
                        let table = element.get_ref().as_table();
                        let table = table.ok_or_else(|| self.error(at, format!("write `{name}` as [[{name}]]")));
                        sections.take(table.and_then(|table| self.section(name, at, table.iter())));
                    }
                }
                _ if REPEATED.contains(&name) => {
                    sections.take(Err(self.error(at, format!("write `{name}` as [[{name}]], once for each"))));
                }
                _ => sections.take(Err(self.error(at, format!("write `{name}` as [{name}], once")))),
            }
        }
        sections.finish()
    }

    fn section<'t, 'i: 't>(
        &self,
        name: &str,
        at: usize,
        table: impl Iterator<Item = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)>,
    ) -> Result<Section, ConfigError> {
        let mut values = Gathered::new();
        for (key, value) in table {
            let found = key.get_ref().as_ref();
            let at = key.span().start;
            let key = self.known().find(|key| key.split() == (name, found));
            let content = key.ok_or_else(|| self.unknown(at, name, found)).and_then(|key| self.content(key, value));
            values.take(content.map(|content| (found.to_owned(), (self.line(at), content))));
        }
        Ok(Section { name: name.to_owned(), line: self.line(at), values: values.finish()?.into_iter().collect() })
    }

    fn unknown(&self, at: usize, section: &str, name: &str) -> ConfigError {
        let here = self.known().filter(|key| key.split().0 == section).map(|key| key.split().1);
        let sections = self.known().map(|key| key.split().0).filter(|name| section.is_empty() && !name.is_empty());
        let hint = match self.known().find(|key| key.split().1 == name).map(|key| key.split().0) {
            Some("") => "it stands at the top of the file, before any [section]".to_owned(),
            Some(section) => format!("it stands in [{section}]"),
            None => match nearest(name, here.chain(sections)) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "`bezant config explain` lists the keys".to_owned(),
            },
        };
        let place = if section.is_empty() { String::new() } else { format!(" in [{section}]") };
        self.error(at, format!("unknown key `{name}`{place}: {hint}"))
    }

    fn content(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> Result<Content, ConfigError> {
        let wrong = |why: &str| {
            let at = value.span().start;
            self.error(at, format!("`{}` must be {}; {why}", key.name, key.kind))
        };
        match (&key.kind, value.get_ref()) {
            (Kind::Number { min, max, .. }, DeValue::Integer(integer)) => {
                let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
                let number = number.filter(|number| (min..=max).contains(&number));
                number.map(Content::Number).ok_or_else(|| wrong(&format!("it is {integer}")))
            }
            (Kind::Schedule, DeValue::Array(array)) => {
                let texts = array.iter().map(|element| element.get_ref().as_str().map(str::to_owned));
                texts.collect::<Option<_>>().map(Content::List).ok_or_else(|| wrong("it has something else in it"))
            }
            (Kind::Flag, DeValue::Boolean(flag)) => Ok(Content::Flag(*flag)),
            (Kind::Number { .. } | Kind::Schedule | Kind::Flag, other) => {
                Err(wrong(&format!("it is of type {}", other.type_str())))
            }
            (kind, DeValue::String(text)) => {
                check_text(kind, text).map_err(|why| wrong(&why))?;
                Ok(Content::Text(text.clone().into_owned()))
            }
            (_, other) => Err(wrong(&format!("it is of type {}", other.type_str()))),
        }
    }
}

/// Why a text is not of its kind.
fn check_text(kind: &Kind, text: &str) -> Result<(), String> {
    match kind {
        Kind::Address => return text.parse::<Address>().map(|_| ()),
        Kind::Listen => return parse_listen(text).map(|_| ()),
        kind if kind.accepts(text) => return Ok(()),
        _ => {}
    }
    Err(match kind {
        Kind::Choice(words) => match nearest(text, words.iter().copied()) {
            Some(nearest) => format!("it is \"{}\": did you mean \"{nearest}\"?", text.escape_debug()),
            None => format!("it is \"{}\"", text.escape_debug()),
        },
        Kind::Hex(bytes) if text.len() == 2 * bytes => "it has other characters".to_owned(),
        _ => format!("it is text of {} characters", text.chars().count()),
    })
}
