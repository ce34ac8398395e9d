//! Our messages and those of another implementation; and bytes that are no messages.

use super::*;
use pgwire::messages::extendedquery as theirs;
use pgwire::messages::{DecodeContext, Message, PgWireBackendMessage, PgWireFrontendMessage, simplequery, startup};
use proptest::prelude::*;

/// A message as pgwire writes it, read by us.
fn read_theirs(message: PgWireFrontendMessage) -> Frontend {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes).unwrap();
    let read = read(&mut bytes).unwrap().unwrap();
    assert!(bytes.is_empty());
    read
}

#[test]
fn we_read_what_another_implementation_writes() {
    use PgWireFrontendMessage as Theirs;
    let query = Theirs::Query(simplequery::Query::new("select 1".into()));
    assert_eq!(read_theirs(query), Frontend::Query("select 1".into()));
    let parse = Theirs::Parse(theirs::Parse::new(Some("s".into()), "select $1".into(), vec![20, 0]));
    let types = vec![20, 0];
    assert_eq!(read_theirs(parse), Frontend::Parse { name: "s".into(), sql: "select $1".into(), types });
    let values = vec![Some(Bytes::from_static(b"x")), None];
    let bind = theirs::Bind::new(Some("p".into()), None, vec![0, 1], values.clone(), vec![1]);
    let wanted =
        Frontend::Bind { portal: "p".into(), statement: String::new(), formats: vec![0, 1], values, results: vec![1] };
    assert_eq!(read_theirs(Theirs::Bind(bind)), wanted);
    let describe = Theirs::Describe(theirs::Describe::new(b'S', Some("s".into())));
    assert_eq!(read_theirs(describe), Frontend::Describe(Target::Statement, "s".into()));
    let execute = Theirs::Execute(theirs::Execute::new(None, 5));
    assert_eq!(read_theirs(execute), Frontend::Execute { portal: String::new(), rows: 5 });
    assert_eq!(read_theirs(Theirs::Close(theirs::Close::new(b'P', None))), {
        Frontend::Close(Target::Portal, String::new())
    });
    assert_eq!(read_theirs(Theirs::Sync(theirs::Sync::new())), Frontend::Sync);

    let mut first = startup::Startup::new();
    first.parameters.insert("user".into(), "bezant".into());
    let mut bytes = BytesMut::new();
    first.encode(&mut bytes).unwrap();
    let parameters = vec![("user".into(), "bezant".into())];
    assert_eq!(read_startup(&mut bytes), Ok(Some(Startup::Start { minor: 0, parameters })));
}

#[test]
fn another_implementation_reads_what_we_write() {
    let mut output = Output::default();
    output.authenticated();
    output.parameter("server_version", "15.0");
    output.fields(&[Field { name: "a".into(), type_id: 20, size: 8, format: 0 }]);
    output.row(2, |column, out| {
        out.extend(b"1");
        column == 0
    });
    output.complete("SELECT 1");
    let error = PgError::new("42601", "near").hint("write SQL");
    output.error(&error);
    output.parameters(&[25]);
    output.suspended();
    output.ready(Status::Open);
    let mut bytes = BytesMut::from(&output.take()[..]);
    let mut context = DecodeContext::default();
    context.awaiting_frontend_ssl = false;
    context.awaiting_frontend_startup = false;
    let mut seen = Vec::new();
    while let Some(message) = PgWireBackendMessage::decode(&mut bytes, &context).unwrap() {
        seen.push(format!("{message:?}"));
    }
    assert!(bytes.is_empty());
    let wanted = [
        "Authentication(Ok)",
        "ParameterStatus(",
        "RowDescription(RowDescription { fields: [FieldDescription { name: \"a\", table_id: 0, column_id: 0, type_id: \
            20",
        "DataRow(",
        "CommandComplete(CommandComplete { tag: \"SELECT 1\" })",
        "ErrorResponse(ErrorResponse { fields: [(83, \"ERROR\"), (86, \"ERROR\"), (67, \"42601\"), (77, \"near\")",
        "ParameterDescription(ParameterDescription { types: [25] })",
        "PortalSuspended(",
        "ReadyForQuery(ReadyForQuery { status: Transaction })",
    ];
    assert_eq!(seen.len(), wanted.len());
    for (seen, wanted) in seen.iter().zip(wanted) {
        assert!(seen.starts_with(wanted), "{seen}");
    }
}

/// What makes the other implementation panic, or say something else than was meant, is an error here.
#[test]
fn what_is_no_message_is_refused() {
    let wrong = |bytes: &[u8]| read(&mut BytesMut::from(bytes)).unwrap_err();
    assert_eq!(wrong(b"P\0\0\0\x06\0\0"), WireError::Length);
    assert_eq!(wrong(b"B\0\0\0\x10\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"), WireError::Length);
    assert_eq!(wrong(b"Q\0\0\0\x06\xff\0"), WireError::NotUtf8);
    assert_eq!(wrong(b"Q\0\0\0\x03"), WireError::Length);
    assert_eq!(wrong(b"Q\x7f\xff\xff\xff"), WireError::TooLong);
    assert_eq!(wrong(b"Q\0\0\0\x07a\0b"), WireError::Length);
    assert_eq!(wrong(b"GET / HTTP/1.1"), WireError::UnknownKind(b'G'));
    assert_eq!(read_startup(&mut BytesMut::from(&b"GET / HTTP/1.1"[..])), Err(WireError::TooLong));
    assert_eq!(read_startup(&mut BytesMut::from(&b"\0\0\0\x08\0\x02\0\0"[..])), Err(WireError::Version(2 << 16)));
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_an_error_or_incomplete(bytes: Vec<u8>) {
        let mut input = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = read(&mut input) {}
        let _ = read_startup(&mut BytesMut::from(&bytes[..]));
    }

    #[test]
    fn any_body_of_any_kind_is_read_within_its_bounds(kind in "[QPBDECHSXdcfFp]", body: Vec<u8>) {
        let mut bytes = vec![kind.as_bytes()[0]];
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(&body);
        bytes.extend(b"S\0\0\0\x04");
        let mut input = BytesMut::from(&bytes[..]);
        if let Ok(Some(_)) = read(&mut input) {
            prop_assert_eq!(read(&mut input), Ok(Some(Frontend::Sync)));
        }
    }
}
