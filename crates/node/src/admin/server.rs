//! The HTTP server: one thread of its own, few connections, one request on each, and little time for it.

use super::health::{self, Check};
use super::{Board, Sample, metrics, status};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 32;
/// Most bytes of a request. Nothing here takes a body.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// How long a client may take to send its request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a connection may last, whatever it does.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(5);
/// How long nothing is accepted after an error, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct AdminServer {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // If it panicked it has said so; there is nothing to save.
            let _ = thread.join();
        }
    }
}

/// Serves a board.
///
/// # Errors
/// Those of the operating system.
pub fn serve(listener: TcpListener, board: Arc<Board>) -> io::Result<AdminServer> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let listener = runtime.block_on(async { tokio::net::TcpListener::from_std(listener) })?;
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
        runtime.spawn(accept(listener, router(board)));
        runtime.block_on(stopped.notified());
        runtime.shutdown_background();
    })?;
    Ok(AdminServer { address, stop, thread: Some(thread) })
}

async fn accept(listener: tokio::net::TcpListener, router: Router) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let router = router.clone();
        tokio::spawn(async move {
            // Whether it ended well, badly or too late is the client's affair.
            let _ = tokio::time::timeout(CONNECTION_TIME_MAX, answer(stream, router)).await;
            drop(permit);
        });
    }
}

async fn answer(stream: TcpStream, router: Router) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME_MAX)
        .max_buf_size(REQUEST_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}

fn router(board: Arc<Board>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(show_metrics))
        .route("/livez", get(show_live))
        .route("/readyz", get(show_ready))
        .route("/status", get(show_status))
        .with_state(board)
}

async fn index() -> &'static str {
    "/metrics\n/livez\n/readyz?verbose\n/status\n"
}

async fn show_metrics(State(board): State<Arc<Board>>) -> Response {
    let text = metrics::render(&board.sample());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn show_live(State(board): State<Arc<Board>>, uri: Uri) -> Response {
    show_checks(&board.sample(), health::live_checks, &uri)
}

async fn show_ready(State(board): State<Arc<Board>>, uri: Uri) -> Response {
    show_checks(&board.sample(), health::ready_checks, &uri)
}

fn show_checks(sample: &Sample, checks: fn(&Sample) -> Vec<Check>, uri: &Uri) -> Response {
    let is_verbose = uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    match health::render(&checks(sample)) {
        (true, _) if !is_verbose => "ok\n".into_response(),
        (true, text) => text.into_response(),
        (false, text) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
    }
}

async fn show_status(State(board): State<Arc<Board>>) -> Response {
    let text = format!("{:#}\n", status::render(&board.sample()));
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
