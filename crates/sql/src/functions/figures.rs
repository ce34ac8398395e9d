//! `to_char` of numbers: a pattern of digits, groups and a point. Signs in other places than the usual one and words,
//! as `MI`, `PR` and `RN`, are refused.

use super::call::{Arguments, Outcome, refuse, room};
use super::numeric::Decimal;
use crate::error::ErrorKind;
use rusqlite::types::Value;

/// Digits of a pattern, before and behind the point together.
const DIGITS_MAX: usize = 500;

/// What a pattern is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// `9`
    Digit,
    /// `0`
    Zero,
    /// `.` or `D`
    Point,
    /// `,` or `G`
    Group,
    Literal(char),
}

#[derive(Default)]
struct Picture {
    pieces: Vec<Piece>,
    /// `FM`: nothing is filled.
    is_short: bool,
    /// Digits before the point and behind it.
    before: usize,
    behind: usize,
    /// Where the first 0 stands before the point, and the last one, from 0 on and among all digits.
    zero_start: Option<usize>,
    zero_end: usize,
}

impl Picture {
    fn of(text: &str) -> Outcome<Self> {
        let mut picture = Self::default();
        let (mut rest, mut has_point) = (text, false);
        while let Some(next) = rest.chars().next() {
            if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
                picture.is_short = true;
                rest = behind;
                continue;
            }
            rest = &rest[next.len_utf8()..];
            let piece = match next {
                '9' => Piece::Digit,
                '0' => Piece::Zero,
                '.' | 'D' | 'd' => Piece::Point,
                ',' | 'G' | 'g' => Piece::Group,
                other if other.is_ascii_alphabetic() || matches!(other, '"' | '\\') => {
                    return refuse(ErrorKind::NotAllowed, format!("to_char of a number with {other} is not supported"));
                }
                other => Piece::Literal(other),
            };
            match piece {
                Piece::Point if has_point => return refuse(ErrorKind::Syntax, "multiple decimal points"),
                Piece::Point => has_point = true,
                Piece::Digit | Piece::Zero if has_point => picture.behind += 1,
                Piece::Digit | Piece::Zero => {
                    if piece == Piece::Zero && picture.zero_start.is_none() {
                        picture.zero_start = Some(picture.before);
                    }
                    picture.before += 1;
                }
                Piece::Group | Piece::Literal(_) => {}
            }
            if piece == Piece::Zero {
                picture.zero_end = picture.before + picture.behind;
            }
            picture.pieces.push(piece);
        }
        let is_odd = picture.before + picture.behind == 0 || has_point && picture.behind == 0;
        if is_odd || picture.before + picture.behind > DIGITS_MAX {
            return refuse(ErrorKind::NotAllowed, "to_char of a number with this pattern is not supported");
        }
        Ok(picture)
    }

    /// The digits that are shown, with a point, and how many places before them stay empty; `#` for what has no room.
    fn digits(&self, number: &Decimal) -> Outcome<(String, usize)> {
        let text = number.text()?;
        let text = text.trim_start_matches('-');
        let whole = text.split('.').next().unwrap_or_default().len();
        if whole > self.before {
            let point = if self.behind > 0 { "." } else { "" };
            return Ok(("#".repeat(self.before) + point + &"#".repeat(self.behind), 0));
        }
        Ok((text.into(), self.before - whole))
    }

    /// The last digit that `FM` leaves there, or the point before it.
    fn last(&self, digits: &str, empty: usize) -> Option<usize> {
        let point = digits.find('.').filter(|_| self.is_short)?;
        let last = digits.rfind(|digit| digit != '0').unwrap_or(point).max(point);
        let zero = self.zero_end.checked_sub(empty).map(|zero| zero.min(digits.len() - 1));
        Some(zero.filter(|_| self.zero_end > empty).map_or(last, |zero| zero.max(last)))
    }
}

/// What has been written.
struct Writer<'a> {
    picture: &'a Picture,
    digits: &'a [u8],
    empty: usize,
    last: Option<usize>,
    is_negative: bool,
    /// The next digit, and the place in the pattern.
    at: usize,
    place: usize,
    has_sign: bool,
    has_digit: bool,
    out: String,
}

impl Writer<'_> {
    fn fill(&mut self) {
        if !self.picture.is_short {
            self.out.push(' ');
        }
    }

    /// A place of a digit, or the point.
    fn digit(&mut self, piece: Piece) {
        let zero = self.picture.zero_start;
        let is_zero = zero.is_some_and(|zero| zero <= self.place);
        // A 0 before the point is not shown, unless a pattern says so.
        let is_hidden = zero.is_none() && self.at == 0 && self.digits.first() == Some(&b'0') && self.picture.behind > 0;
        let ends_at_point = self.last.is_some_and(|last| self.digits.get(last) == Some(&b'.'));
        let begins = self.place >= self.empty || zero == Some(self.place);
        if !self.has_sign && begins && (!is_hidden || ends_at_point) {
            if self.is_negative {
                self.out.push('-');
            } else {
                self.fill();
            }
            self.has_sign = true;
        }
        if self.place < self.empty {
            if is_zero {
                self.out.push('0');
                self.has_digit = true;
            } else {
                self.fill();
            }
        } else {
            let is_cut = self.last.is_some_and(|last| self.at > last) && piece != Piece::Zero;
            match self.digits.get(self.at) {
                Some(b'.') => self.out.push('.'),
                _ if is_cut => {}
                Some(_) if is_hidden && ends_at_point => self.out.push('0'),
                Some(_) if is_hidden => self.fill(),
                Some(digit) => {
                    self.out.push(char::from(*digit));
                    self.has_digit = true;
                }
                None => {}
            }
            self.at += 1;
        }
        self.place += 1;
    }
}

/// A number by a pattern.
pub(super) fn to_char(arguments: &Arguments<'_>) -> Outcome {
    let picture = Picture::of(&arguments.text(1)?)?;
    let scale = picture.behind as u32;
    let mut number = Decimal::of(arguments, 0)?.rounded(scale.into());
    number = Decimal { digits: number.at(scale.max(number.scale)), scale: scale.max(number.scale) };
    let is_negative = number.text()?.starts_with('-');
    let (digits, empty) = picture.digits(&number)?;
    let mut writer = Writer {
        picture: &picture,
        digits: digits.as_bytes(),
        empty,
        last: picture.last(&digits, empty),
        is_negative,
        at: 0,
        place: 0,
        has_sign: false,
        has_digit: false,
        out: String::new(),
    };
    for piece in &picture.pieces {
        match piece {
            Piece::Literal(literal) => writer.out.push(*literal),
            Piece::Group if writer.has_digit => writer.out.push(','),
            Piece::Group => writer.fill(),
            other => writer.digit(*other),
        }
    }
    room(writer.out.len())?;
    Ok(Value::Text(writer.out))
}
