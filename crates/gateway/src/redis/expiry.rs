//! Commands about how long keys live. What a time is counted from is the agreed time of the replicas.

use super::form::Form;
use super::integer::parse_integer;
use super::parser::Arguments;
use super::reply::Reply;
use super::shape::{Shape, returning_old};
use bezant_core::services::kv::{Condition, DeadlineCondition, KvOperation, Until};
use bytes::Bytes;

fn syntax_error() -> Reply {
    Reply::error("syntax error")
}

/// The options of `SET` and `GETEX`.
#[derive(Default)]
struct Options<'a> {
    condition: Condition,
    old: bool,
    /// `KEEPTTL` of the one, `PERSIST` of the other.
    as_it_is: bool,
    time: Option<(Form, &'a Bytes)>,
}

impl<'a> Options<'a> {
    /// Redis looks at numbers when all options are understood, and takes the same one twice.
    fn read(options: &'a [Bytes], of_set: bool) -> Result<Self, Reply> {
        let mut read = Self::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let option = option.to_ascii_uppercase();
            match (option.as_slice(), read.condition) {
                (b"NX", Condition::Always | Condition::Absent) if of_set => read.condition = Condition::Absent,
                (b"XX", Condition::Always | Condition::Present) if of_set => read.condition = Condition::Present,
                (b"GET", _) if of_set => read.old = true,
                (b"KEEPTTL", _) if of_set && read.time.is_none() => read.as_it_is = true,
                (b"PERSIST", _) if !of_set && read.time.is_none() => read.as_it_is = true,
                (name, _) => match (Form::of_option(name), options.next()) {
                    (Some(form), Some(text))
                        if !read.as_it_is && read.time.is_none_or(|(before, _)| before == form) =>
                    {
                        read.time = Some((form, text));
                    }
                    _ => return Err(syntax_error()),
                },
            }
        }
        Ok(read)
    }

    fn until(&self, arguments: &Arguments) -> Result<Option<Until>, Reply> {
        self.time.map(|(form, text)| form.positive(text, arguments)).transpose()
    }
}

/// `SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`.
pub(crate) fn set(arguments: &Arguments) -> Result<(Vec<KvOperation>, Shape), Reply> {
    let options = Options::read(&arguments[3..], true)?;
    let (key, value, condition) = (arguments[1].clone(), arguments[2].clone(), options.condition);
    let until = options.until(arguments)?;
    let write = match until.is_some() || options.as_it_is {
        true => KvOperation::SetUntil { key, value, condition, until },
        false => KvOperation::Set { key, value, condition },
    };
    Ok(match options.old {
        true => (returning_old(arguments, write), Shape::Old),
        false => (vec![write], Shape::Single),
    })
}

/// `SETEX key s value`, and with another form `PSETEX`.
pub(crate) fn set_for(arguments: &Arguments, form: Form) -> Result<(Vec<KvOperation>, Shape), Reply> {
    let until = Some(form.positive(&arguments[2], arguments)?);
    let (key, value) = (arguments[1].clone(), arguments[3].clone());
    Ok((vec![KvOperation::SetUntil { key, value, condition: Condition::Always, until }], Shape::Single))
}

/// `GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]`.
pub(crate) fn get_and_expire(arguments: &Arguments) -> Result<(Vec<KvOperation>, Shape), Reply> {
    let options = Options::read(&arguments[2..], false)?;
    let key = arguments[1].clone();
    let write = match options.until(arguments)? {
        Some(until) => KvOperation::Expire { key, until, condition: DeadlineCondition::Always },
        None if options.as_it_is => KvOperation::Persist { key },
        None => return Ok((vec![KvOperation::Get { key }], Shape::Single)),
    };
    Ok((returning_old(arguments, write), Shape::Old))
}

/// `EXPIRE key s [NX | XX | GT | LT]`, and with other forms its like.
pub(crate) fn expire(arguments: &Arguments, form: Form) -> Result<(Vec<KvOperation>, Shape), Reply> {
    let condition = deadline_condition(&arguments[3..])?;
    let until = form.until(parse_integer(&arguments[2])?, arguments)?;
    Ok((vec![KvOperation::Expire { key: arguments[1].clone(), until, condition }], Shape::Flag))
}

fn deadline_condition(options: &[Bytes]) -> Result<DeadlineCondition, Reply> {
    let (mut absent, mut present, mut later, mut earlier) = (false, false, false, false);
    for option in options {
        match option.to_ascii_uppercase().as_slice() {
            b"NX" => absent = true,
            b"XX" => present = true,
            b"GT" => later = true,
            b"LT" => earlier = true,
            _ => return Err(Reply::error(format!("Unsupported option {}", String::from_utf8_lossy(option)))),
        }
    }
    Ok(match (absent, present, later, earlier) {
        (true, false, false, false) => DeadlineCondition::Absent,
        (true, ..) => {
            return Err(Reply::error("NX and XX, GT or LT options at the same time are not compatible"));
        }
        (_, _, true, true) => return Err(Reply::error("GT and LT options at the same time are not compatible")),
        // A key without a deadline lives for ever: none is later.
        (_, _, true, _) => DeadlineCondition::Later,
        (_, true, _, true) => DeadlineCondition::PresentEarlier,
        (_, false, _, true) => DeadlineCondition::Earlier,
        (_, true, ..) => DeadlineCondition::Present,
        _ => DeadlineCondition::Always,
    })
}
