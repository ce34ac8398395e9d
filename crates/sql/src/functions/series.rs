//! Steps of `generate_series`: which way they lead, 1 upwards and -1 downwards.

use super::call::{Arguments, Outcome, refuse};
use super::interval::Interval;
use super::numeric::Decimal;
use crate::error::ErrorKind;
use num_bigint::BigInt;
use rusqlite::types::Value;
use std::cmp::Ordering;

fn sign(step: Ordering) -> Outcome {
    match step {
        Ordering::Equal => refuse(ErrorKind::BadParameter, "step size cannot equal zero"),
        Ordering::Greater => Ok(Value::Integer(1)),
        Ordering::Less => Ok(Value::Integer(-1)),
    }
}

pub(super) fn of_integer(arguments: &Arguments<'_>) -> Outcome {
    sign(arguments.integer(0)?.cmp(&0))
}

pub(super) fn of_numeric(arguments: &Arguments<'_>) -> Outcome {
    sign(Decimal::of(arguments, 0)?.digits.cmp(&BigInt::ZERO))
}

pub(super) fn of_interval(arguments: &Arguments<'_>) -> Outcome {
    sign(Interval::of(arguments, 0)?.length().cmp(&0))
}
