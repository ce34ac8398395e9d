//! As much of HTTP/1.1 as a few pages need: one GET or HEAD on a connection, no body, an answer, the end.

use super::health::{self, Check};
use super::{Board, Sample, metrics, pieces, status};
use serde_json::Value;

/// Most bytes of a request.
const REQUEST_BYTES_MAX: usize = 8 * 1024;

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

/// The answer to what has been received so far; `None`: the request is not complete.
pub(super) fn answer(received: &[u8], board: &Board) -> Option<Vec<u8>> {
    let is_complete = received.windows(4).any(|window| window == b"\r\n\r\n");
    if !is_complete && received.len() < REQUEST_BYTES_MAX {
        return None;
    }
    let refused = |status: &'static str| Some(Answer::text(status, format!("{status}\n")).encode(true));
    if !is_complete {
        return refused("431 Request Header Fields Too Large");
    }
    let line = received.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = std::str::from_utf8(line).unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return refused("400 Bad Request");
    };
    match method {
        _ if !version.starts_with("HTTP/1.") => refused("505 HTTP Version Not Supported"),
        "GET" | "HEAD" => Some(page(target, board).encode(method == "GET")),
        _ => refused("405 Method Not Allowed"),
    }
}

fn page(target: &str, board: &Board) -> Answer {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_verbose = query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="));
    match path {
        "/" => Answer::text("200 OK", "/metrics\n/livez\n/readyz?verbose\n/status\n/checkpoint\n/divergences\n"),
        "/livez" => checks(&board.sample(), health::live_checks, is_verbose),
        "/readyz" => checks(&board.sample(), health::ready_checks, is_verbose),
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
