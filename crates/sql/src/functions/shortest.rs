//! The shortest decimal that a floating-point number is read from, as PostgreSQL prints it.

use super::digits::power;
use num_bigint::BigInt;

/// The digits that a decimal of a number of this type gets.
const DIGITS_EIGHT: usize = 15;
const DIGITS_FOUR: usize = 6;

/// Which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// `real`
    Four,
    /// `double precision`
    Eight,
}

impl Width {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Four => "real",
            Self::Eight => "double precision",
        }
    }

    pub(super) const fn digits(self) -> usize {
        match self {
            Self::Four => DIGITS_FOUR,
            Self::Eight => DIGITS_EIGHT,
        }
    }

    /// As a number of this type.
    pub(super) fn round(self, number: f64) -> f64 {
        match self {
            Self::Four => f64::from(number as f32),
            Self::Eight => number,
        }
    }
}

/// A number as PostgreSQL prints it.
pub(super) fn spell(number: f64) -> String {
    Shortest::of(number, Width::Eight).text(DIGITS_EIGHT as i32)
}

/// A `real` as PostgreSQL prints it.
pub(super) fn spell_real(number: f32) -> String {
    Shortest::of(f64::from(number), Width::Four).text(DIGITS_FOUR as i32)
}

/// The fewest digits that only this number is read from: `digits[0].digits[1..]` times ten to the exponent.
struct Shortest {
    negative: bool,
    digits: String,
    exponent: i32,
    special: Option<&'static str>,
}

impl Shortest {
    fn of(number: f64, width: Width) -> Self {
        let special = match number {
            _ if number.is_nan() => Some("NaN"),
            _ if number.is_infinite() => Some("Infinity"),
            _ => None,
        };
        let absolute = number.abs();
        let printed = match width {
            Width::Four => format!("{:e}", absolute as f32),
            Width::Eight => format!("{absolute:e}"),
        };
        let (mut digits, mut exponent) = taken_apart(&printed);
        // Of two that are as short and as near, the even one.
        let (even, even_exponent) = taken_apart(&format!("{absolute:.*e}", digits.len() - 1));
        let read = format!("{even}e{}", even_exponent + 1 - even.len() as i32).parse::<f64>();
        if special.is_none() && read.is_ok_and(|read| width.round(read) == absolute) {
            (digits, exponent) = (even, even_exponent);
        }
        // What is as near to the next number is read as this one only because it is even; PostgreSQL goes on.
        let mut length = digits.len();
        while special.is_none() && is_between(absolute, &digits, exponent, width) {
            length += 1;
            (digits, exponent) = taken_apart(&format!("{absolute:.*e}", length - 1));
        }
        Self { negative: number < 0.0, digits, exponent, special }
    }

    /// With an exponent from ten to `scientific` on.
    fn text(&self, scientific: i32) -> String {
        let Self { negative, digits, exponent, special } = self;
        let sign = if *negative { "-" } else { "" };
        if let Some(special) = special {
            return format!("{sign}{special}");
        }
        if (-4..scientific).contains(exponent) {
            let whole = (*exponent).max(-1) + 1;
            let zeros = (-1 - exponent).max(0) as usize;
            let digits = format!("{:0<zeros$}{digits}", "");
            let digits = format!("{digits:0<width$}", width = whole as usize);
            let (whole, fraction) = digits.split_at(whole as usize);
            let whole = if whole.is_empty() { "0" } else { whole };
            let point = if fraction.is_empty() { "" } else { "." };
            return format!("{sign}{whole}{point}{fraction}");
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if *exponent < 0 { '-' } else { '+' };
        format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs())
    }
}

/// Digits and exponent of Rust's `d.ddde±d`; zeros at the end are not kept.
pub(super) fn taken_apart(printed: &str) -> (String, i32) {
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    (if digits.is_empty() { "0".into() } else { digits.to_owned() }, exponent.parse().unwrap_or(0))
}

/// Whether a whole number is as far from this floating-point number as from the next. Only large ones can be: what has
/// digits behind the point has more of them between two numbers than are ever needed.
fn is_between(number: f64, digits: &str, exponent: i32, width: Width) -> bool {
    let (least, next) = match width {
        Width::Four => (f64::from(1_u32 << 24), f64::from((number as f32).next_up())),
        Width::Eight => ((1_u64 << 53) as f64, number.next_up()),
    };
    let zeros = exponent + 1 - digits.len() as i32;
    if number < least || !number.is_finite() || zeros < 0 || exponent > 40 {
        return false;
    }
    let previous = match width {
        Width::Four => f64::from((number as f32).next_down()),
        Width::Eight => number.next_down(),
    };
    let spelled = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default() * power(zeros as u32) * 2;
    let exact = |number: f64| BigInt::parse_bytes(format!("{number:.0}").as_bytes(), 10).unwrap_or_default();
    let this = exact(number);
    [previous, next].into_iter().any(|other| other.is_finite() && &this + exact(other) == spelled)
}
