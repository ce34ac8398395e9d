//! As much of HTTP/1.1 as a few pages need: one GET or HEAD on a connection, no body, an answer, the end.

use super::health::{self, Check};
use super::{Board, Sample, host, metrics, pieces, status};
use serde_json::Value;
use std::sync::atomic::Ordering;

/// Most bytes of a request.
const REQUEST_BYTES_MAX: usize = 8 * 1024;

const MISDIRECTED: &str = "ask for an IP address, for localhost, or for the name in admin_address\n";

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const BYTES: &str = "application/octet-stream";
const JSON: &str = "application/json";

/// What is answered, before it is bytes.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Answer {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        Self { status, content_type: TEXT, body: body.into().into_bytes() }
    }

    fn without_state() -> Self {
        Self::text("404 Not Found", "this replica does not show its state here (serve_state = false)\n")
    }

    fn json(value: &Value) -> Self {
        Self { status: "200 OK", content_type: JSON, body: format!("{value:#}\n").into_bytes() }
    }

    fn encode(&self, has_body: bool) -> Vec<u8> {
        let Self { status, content_type, body } = self;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        if has_body {
            bytes.extend_from_slice(body);
        }
        bytes
    }
}

/// The answer to what has been received so far; `None`: the request is not complete. Where there is no room for another
/// page, only health is told.
pub(super) fn answer(received: &[u8], board: &Board, has_room: bool) -> Option<Vec<u8>> {
    let end = received.windows(4).position(|window| window == b"\r\n\r\n");
    if end.is_none() && received.len() < REQUEST_BYTES_MAX {
        return None;
    }
    let answered = match end {
        Some(end) => std::str::from_utf8(&received[..end]).map_err(|_| "400 Bad Request"),
        None => Err("431 Request Header Fields Too Large"),
    };
    let answered = answered.and_then(|head| respond(head, board, has_room));
    let (answer, has_body) = answered.unwrap_or_else(|status| (Answer::text(status, format!("{status}\n")), true));
    Some(answer.encode(has_body))
}

/// The answer to a request, and whether its body is wanted; or the status with which it is refused.
fn respond(head: &str, board: &Board, has_room: bool) -> Result<(Answer, bool), &'static str> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("400 Bad Request");
    };
    if !version.starts_with("HTTP/1.") {
        return Err("505 HTTP Version Not Supported");
    }
    if !["GET", "HEAD"].contains(&method) {
        return Err("405 Method Not Allowed");
    }
    let fields = lines.filter_map(|line| line.split_once(':'));
    let hosts: Vec<_> = fields.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host).collect();
    let answer = match hosts[..] {
        // No browser leaves it out.
        [] => page(target, board, has_room),
        [host] if host::is_own(host.trim(), &board.info.host) => page(target, board, has_room),
        [_] => {
            board.foreign_hosts.fetch_add(1, Ordering::Relaxed);
            Answer::text("421 Misdirected Request", MISDIRECTED)
        }
        _ => return Err("400 Bad Request"),
    };
    Ok((answer, method == "GET"))
}

fn page(target: &str, board: &Board, has_room: bool) -> Answer {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_verbose = query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="));
    match path {
        "/" => Answer::text("200 OK", "/metrics\n/livez\n/readyz?verbose\n/status\n/checkpoint\n/divergences\n"),
        "/livez" => checks(&board.sample(), health::live_checks, is_verbose),
        "/readyz" => checks(&board.sample(), health::ready_checks, is_verbose),
        _ if !has_room => Answer::text("503 Service Unavailable", "too many answers are under way: ask again\n"),
        "/metrics" => {
            let body = metrics::render(&board.sample()).into_bytes();
            Answer { status: "200 OK", content_type: PROMETHEUS, body }
        }
        "/status" => Answer::json(&status::render(&board.sample())),
        "/divergences" => board.divergences().map_or_else(Answer::without_state, |value| Answer::json(&value)),
        "/checkpoint" => match &board.shelf {
            Some(shelf) => Answer::json(&pieces::checkpoints(shelf, || board.announced())),
            None => Answer::without_state(),
        },
        _ if let (Some(asked), Some(shelf)) = (path.strip_prefix(pieces::PATH), &board.shelf) => {
            match pieces::answer(shelf, asked) {
                Some(body) => Answer { status: "200 OK", content_type: BYTES, body },
                None => Answer::text("400 Bad Request", "not a list of requests for pieces of a state\n"),
            }
        }
        _ => Answer::text("404 Not Found", "not found; / lists what there is\n"),
    }
}

fn checks(sample: &Sample, checks: fn(&Sample) -> Vec<Check>, is_verbose: bool) -> Answer {
    match health::render(&checks(sample)) {
        (true, _) if !is_verbose => Answer::text("200 OK", "ok\n"),
        (true, text) => Answer::text("200 OK", text),
        (false, text) => Answer::text("503 Service Unavailable", text),
    }
}
