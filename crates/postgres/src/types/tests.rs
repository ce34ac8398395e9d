//! Types and values, there and back.

use super::*;
use proptest::prelude::*;

fn column(declared: Option<&str>) -> Column {
    Column { name: "a".into(), declared: declared.map(Into::into) }
}

fn type_of(declared: Option<&str>, values: &[Value]) -> u32 {
    of_values(&column(declared), values.iter())
}

#[test]
fn declarations_mean_types() {
    assert_eq!(of_declaration("INTEGER"), (oid::INT4, "integer", None));
    assert_eq!(of_declaration("VARCHAR(30)"), (oid::VARCHAR, "character varying", Some(30)));
    assert_eq!(of_declaration("timestamp(3) with time zone"), (oid::TIMESTAMPTZ, "timestamp with time zone", Some(3)));
    assert_eq!(of_declaration("numeric(10,2)"), (oid::NUMERIC, "numeric", Some(10)));
    assert_eq!(of_declaration("point"), (oid::TEXT, "text", None));
}

#[test]
fn a_type_is_announced_that_all_values_fit() {
    let (one, text, real) = (Value::Integer(1), Value::Text("x".into()), Value::Real(0.5));
    assert_eq!(type_of(Some("integer"), &[]), oid::INT4);
    assert_eq!(type_of(Some("integer"), &[one.clone(), Value::Null]), oid::INT4);
    assert_eq!(type_of(Some("integer"), &[one.clone(), text.clone()]), oid::TEXT);
    assert_eq!(type_of(None, &[one.clone(), real]), oid::FLOAT8);
    assert_eq!(type_of(Some("boolean"), std::slice::from_ref(&one)), oid::BOOL);
    assert_eq!(type_of(Some("boolean"), &[Value::Integer(7)]), oid::INT8);
    assert_eq!(type_of(Some("date"), &[text]), oid::TEXT);
    assert_eq!(type_of(None, &[one]), oid::INT8);
    assert_eq!(of_expression("COUNT(*)").as_deref(), Some("bigint"));
    assert_eq!(of_expression("a"), None);
}

#[test]
fn numbers_are_written_as_postgresql_does() {
    for (number, wanted) in [
        (0.1, "0.1"),
        (1.0, "1"),
        (1e15, "1e+15"),
        (1.5e300, "1.5e+300"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5, "-2.5"),
        (f64::INFINITY, "Infinity"),
    ] {
        assert_eq!(real_text(number), wanted);
    }
}

fn back(value: &Value, type_id: u32, format: i16) -> Value {
    let mut out = Vec::new();
    assert!(put(value, type_id, format, 0, &mut out).unwrap());
    take(&out.into(), type_id, format).unwrap()
}

#[test]
fn values_come_back_in_both_formats() {
    let text = |text: &str| Value::Text(text.into());
    for (type_id, value) in [
        (oid::INT8, Value::Integer(i64::MIN)),
        (oid::INT4, Value::Integer(-7)),
        (oid::INT2, Value::Integer(300)),
        (oid::FLOAT8, Value::Real(-0.1)),
        (oid::BOOL, Value::Integer(1)),
        (oid::TEXT, text("naïve ☃")),
        (oid::BYTEA, Value::Blob(Bytes::from_static(b"\0\xff"))),
        (oid::FLOAT4, Value::Real(0.1_f32.into())),
        (oid::NUMERIC, text("-1234567890")),
        (oid::NUMERIC, text("0.00005")),
        (oid::NUMERIC, text("12345678901234567890123.450")),
        (oid::DATE, text("2024-02-29")),
        (oid::DATE, text("1969-12-31")),
        (oid::TIME, text("23:59:59.5")),
        (oid::TIMESTAMP, text("2024-02-29 12:30:00.000001")),
        (oid::TIMESTAMPTZ, text("1999-12-31 23:59:59+00")),
        (oid::UUID, text("12345678-9abc-def0-1234-56789abcdef0")),
        (oid::JSON, text("{}")),
        (oid::JSONB, text("[1]")),
    ] {
        for format in [TEXT_FORMAT, BINARY_FORMAT] {
            assert_eq!(back(&value, type_id, format), value, "{type_id} {format}");
        }
    }
}

#[test]
fn what_is_no_value_of_its_type_is_refused() {
    for (bytes, type_id, format) in [
        (&b"x"[..], oid::INT8, TEXT_FORMAT),
        (b"maybe", oid::BOOL, TEXT_FORMAT),
        (b"\\xf", oid::BYTEA, TEXT_FORMAT),
        (b"\xff", oid::TEXT, TEXT_FORMAT),
        (b"123", oid::INT4, BINARY_FORMAT),
        (b"\0\x01\0\0\0\0\0\0", oid::NUMERIC, BINARY_FORMAT),
        (b"x", 1_000_000, BINARY_FORMAT),
    ] {
        assert!(take(&Bytes::from_static(bytes), type_id, format).is_err());
    }
    assert!(put(&Value::Text("x".into()), oid::INT8, BINARY_FORMAT, 0, &mut Vec::new()).is_err());
    let old = take(&Bytes::from_static(b"a\\\\\\001"), oid::BYTEA, TEXT_FORMAT).unwrap();
    assert_eq!(old, Value::Blob(Bytes::from_static(b"a\\\x01")));
}

proptest! {
    #[test]
    fn numerics_come_back(whole in -99_999_999_i64..99_999_999, cents in 0_u32..10_000) {
        let text = format!("{whole}.{cents:04}");
        let mut out = Vec::new();
        put_numeric(&text, &mut out).unwrap();
        prop_assert_eq!(take_numeric(&out), Some(text));
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes: Vec<u8>, format in 0_i16..2) {
        for type_id in [0, 16, 17, 20, 21, 23, 25, 701, 1082, 1083, 1114, 1184, 1700, 2950, 3802] {
            let _ = take(&Bytes::copy_from_slice(&bytes), type_id, format);
        }
    }
}
