//! Sums and averages, over groups and over windows.

use super::call::{Arguments, Charge, Outcome, pay, positive_zero, refuse};
use super::numeric::Decimal;
use super::shortest::Width;
use super::{float, integer};
use crate::error::ErrorKind;
use num_bigint::BigInt;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use rusqlite::types::Value;
use rusqlite::{Connection, Error, Result};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// What values are folded into, one after the other. NULLs do not come here.
pub(super) trait Fold: Default + Send + RefUnwindSafe + UnwindSafe + 'static {
    /// What each value, and the result, is charged.
    const CHARGE: Charge = Charge::Digits;

    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()>;
    /// Takes back the value that was added first.
    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()>;
    /// Of at least one value.
    fn value(&self) -> Outcome;
}

/// A fold, and how many values are in it.
#[derive(Default)]
pub(super) struct Counted<F> {
    fold: F,
    count: u64,
}

struct Folded<F>(PhantomData<fn() -> F>);

impl<F: Fold> Folded<F> {
    fn step(
        context: &Context<'_>,
        fold: &mut Counted<F>,
        act: impl FnOnce(&mut Counted<F>, &Arguments<'_>) -> Outcome<()>,
    ) -> Result<()> {
        let arguments = Arguments(context);
        pay(F::CHARGE.of(&arguments))?;
        if arguments.has_null() { Ok(()) } else { act(fold, &arguments).map_err(Error::from) }
    }

    fn value_of(fold: &Counted<F>) -> Result<Value> {
        if fold.count == 0 {
            return Ok(Value::Null);
        }
        let value = fold.fold.value()?;
        pay(F::CHARGE.of_result(&value))?;
        Ok(positive_zero(value))
    }
}

impl<F: Fold> Aggregate<Counted<F>, Value> for Folded<F> {
    fn init(&self, _: &mut Context<'_>) -> Result<Counted<F>> {
        Ok(Counted { fold: F::default(), count: 0 })
    }

    fn step(&self, context: &mut Context<'_>, fold: &mut Counted<F>) -> Result<()> {
        Self::step(context, fold, |fold, arguments| {
            fold.count += 1;
            fold.fold.add(arguments)
        })
    }

    fn finalize(&self, _: &mut Context<'_>, fold: Option<Counted<F>>) -> Result<Value> {
        fold.map_or(Ok(Value::Null), |fold| Self::value_of(&fold))
    }
}

impl<F: Fold> WindowAggregate<Counted<F>, Value> for Folded<F> {
    fn value(&self, fold: Option<&mut Counted<F>>) -> Result<Value> {
        fold.map_or(Ok(Value::Null), |fold| Self::value_of(fold))
    }

    fn inverse(&self, context: &mut Context<'_>, fold: &mut Counted<F>) -> Result<()> {
        Self::step(context, fold, |fold, arguments| {
            fold.count = fold.count.saturating_sub(1);
            fold.fold.remove(arguments)
        })
    }
}

/// Adds an aggregate to a connection.
pub(super) fn add<F: Fold>(connection: &Connection, name: &str, arity: i32, flags: FunctionFlags) -> Result<()> {
    connection.create_window_function(name, arity, flags, Folded::<F>(PhantomData))
}

/// The sum of exact decimals, with as many digits behind the point as the value that has most.
#[derive(Default)]
pub(super) struct NumericSum {
    sum: Decimal,
    /// How many values have each scale.
    scales: BTreeMap<u32, u64>,
}

impl NumericSum {
    fn change(&mut self, value: &Decimal, act: impl FnOnce(BigInt, BigInt) -> BigInt) {
        let scale = self.sum.scale.max(value.scale);
        self.sum = Decimal { digits: act(self.sum.at(scale), value.at(scale)), scale };
    }

    fn sum(&self) -> Decimal {
        let scale = self.scales.last_key_value().map_or(0, |(scale, _)| *scale);
        self.sum.rounded(scale.into())
    }
}

impl Fold for NumericSum {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        let value = Decimal::of(arguments, 0)?;
        *self.scales.entry(value.scale).or_default() += 1;
        self.change(&value, |sum, value| sum + value);
        Ok(())
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        let value = Decimal::of(arguments, 0)?;
        if let Some(count) = self.scales.get_mut(&value.scale) {
            *count -= 1;
            if *count == 0 {
                self.scales.remove(&value.scale);
            }
        }
        self.change(&value, |sum, value| sum - value);
        Ok(())
    }

    fn value(&self) -> Outcome {
        self.sum().value()
    }
}

/// The average of exact decimals.
#[derive(Default)]
pub(super) struct NumericAverage {
    sum: NumericSum,
    count: u64,
}

impl Fold for NumericAverage {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.count += 1;
        self.sum.add(arguments)
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.count = self.count.saturating_sub(1);
        self.sum.remove(arguments)
    }

    fn value(&self) -> Outcome {
        average(&self.sum.sum(), self.count)
    }
}

/// A sum divided by how many there are.
fn average(sum: &Decimal, count: u64) -> Outcome {
    sum.divided(&Decimal { digits: count.into(), scale: 0 })?.value()
}

/// The sum of integers of at most 32 bits, which has 64.
#[derive(Default)]
pub(super) struct IntegerSum(i128);

impl Fold for IntegerSum {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.0 += i128::from(arguments.integer(0)?);
        Ok(())
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.0 -= i128::from(arguments.integer(0)?);
        Ok(())
    }

    fn value(&self) -> Outcome {
        integer::fit(Some(self.0), 64)
    }
}

/// The average of integers: an exact decimal.
#[derive(Default)]
pub(super) struct IntegerAverage {
    sum: i128,
    count: u64,
}

impl Fold for IntegerAverage {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.sum += i128::from(arguments.integer(0)?);
        self.count += 1;
        Ok(())
    }

    fn remove(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        self.sum -= i128::from(arguments.integer(0)?);
        self.count = self.count.saturating_sub(1);
        Ok(())
    }

    fn value(&self) -> Outcome {
        average(&Decimal { digits: self.sum.into(), scale: 0 }, self.count)
    }
}

/// What is added to a floating-point sum cannot be taken back: what it rounded away is gone.
fn cannot_remove() -> Outcome<()> {
    refuse(ErrorKind::NotAllowed, "sums of floating-point numbers over moving windows are not supported")
}

/// The sum of floating-point numbers, in the order of the rows; of `real` if it is `SHORT`.
#[derive(Default)]
pub(super) struct FloatSum<const SHORT: bool>(f64);

impl<const SHORT: bool> Fold for FloatSum<SHORT> {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        let width = if SHORT { Width::Four } else { Width::Eight };
        self.0 = float::sum(width, self.0, arguments.real(0)?)?;
        Ok(())
    }

    fn remove(&mut self, _: &Arguments<'_>) -> Outcome<()> {
        cannot_remove()
    }

    fn value(&self) -> Outcome {
        Ok(Value::Real(self.0))
    }
}

/// The average of floating-point numbers. The sum of squares is PostgreSQL's, which overflows sooner than the sum.
#[derive(Default)]
pub(super) struct FloatAverage {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Fold for FloatAverage {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome<()> {
        let value = arguments.real(0)?;
        let before = (self.count, self.sum);
        self.count += 1.0;
        self.sum += value;
        if before.0 > 0.0 {
            let distance = value * self.count - self.sum;
            self.squares += distance * distance / (self.count * before.0);
            let is_infinite = self.sum.is_infinite() || self.squares.is_infinite();
            if is_infinite && before.1.is_finite() && value.is_finite() {
                return float::overflow();
            }
        }
        if self.sum.is_nan() { float::no_number() } else { Ok(()) }
    }

    fn remove(&mut self, _: &Arguments<'_>) -> Outcome<()> {
        cannot_remove()
    }

    fn value(&self) -> Outcome {
        Ok(Value::Real(self.sum / self.count))
    }
}
