//! What a link carries: bytes of TCP's users per second, with both directions busy.
//!
//! With one direction busy it would be a little more: there acknowledgements need no room beside data.

use super::tools::within;
use crate::failure::{Failure, Result};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Until TCP knows the link.
const WARMUP: Duration = Duration::from_secs(1);
/// How long bytes are counted, each time.
const WINDOW: Duration = Duration::from_millis(500);
/// How often: the median of them is not what a moment's pause of this machine made of one.
const WINDOWS: usize = 7;
/// How long anything may keep us waiting.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often those who wait look at the time.
const GLANCE: Duration = Duration::from_millis(50);

/// One end: its namespace and its address there.
pub(super) struct End {
    pub(super) namespace: String,
    pub(super) address: Ipv4Addr,
}

/// Bits per second in each direction, the mean of both.
pub(super) fn goodput(ends: [End; 2]) -> Result<u64> {
    let [one, other] = ends;
    let streams = [connect(&one, &other)?, connect(&other, &one)?];
    let over = AtomicBool::new(false);
    let counts = thread::scope(|scope| {
        let mut sinks = Vec::new();
        for (source, sink) in &streams {
            scope.spawn(|| fill(source, &over));
            sinks.push(scope.spawn(|| drain(sink)));
        }
        let counts = sinks.into_iter().map(|sink| sink.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())));
        let counts: io::Result<Vec<f64>> = counts.collect();
        over.store(true, Ordering::Relaxed);
        counts
    });
    let counts = counts.map_err(|error| failed(&error))?;
    Ok((counts.iter().sum::<f64>() / counts.len() as f64) as u64)
}

/// A connection from one end to the other.
fn connect(from: &End, to: &End) -> Result<(TcpStream, TcpStream)> {
    let listen = || TcpListener::bind((to.address, 0)).map_err(|error| failed(&error));
    let listener = within(&to.namespace, listen)?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    let connect = || TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| failed(&error));
    let source = within(&from.namespace, connect)?;
    // It is connected, so that it waits to be accepted.
    let (sink, _) = listener.accept().map_err(|error| failed(&error))?;
    let set = source.set_write_timeout(Some(GLANCE)).and_then(|()| sink.set_read_timeout(Some(GLANCE)));
    set.map(|()| (source, sink)).map_err(|error| failed(&error))
}

/// Writes until it is over.
fn fill(mut source: &TcpStream, over: &AtomicBool) {
    let block = [0; 16_384];
    while !over.load(Ordering::Relaxed) {
        match source.write(&block) {
            Ok(_) => {}
            Err(error) if is_pause(&error) => {}
            // The sink will miss it, and say so.
            Err(_) => return,
        }
    }
}

/// Bits per second that arrive: the median of the windows.
fn drain(mut sink: &TcpStream) -> io::Result<f64> {
    let mut block = [0; 65_536];
    let begin = Instant::now();
    // A window is from the end of one read to the end of another.
    let (mut window, mut bytes, mut rates) = (begin, 0, Vec::new());
    while rates.len() < WINDOWS {
        match sink.read(&mut block) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if begin.elapsed() < WARMUP => window = Instant::now(),
            Ok(count) => {
                bytes += count;
                let elapsed = window.elapsed();
                if elapsed >= WINDOW {
                    rates.push(bytes as f64 * 8.0 / elapsed.as_secs_f64());
                    (window, bytes) = (Instant::now(), 0);
                }
            }
            Err(error) if is_pause(&error) && begin.elapsed() < PATIENCE => {}
            Err(error) => return Err(error),
        }
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[WINDOWS / 2])
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn failed(error: &io::Error) -> Failure {
    Failure::failed(format!("the goodput of a link cannot be measured: {error}."))
}
