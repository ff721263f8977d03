//! A line with a delay: forwards TCP connections and holds every byte back for a given time, in each direction.
//!
//! What is on its way is bounded, as on a real line: rate times delay. Order is kept, and an end of a direction arrives
//! after the bytes before it.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes taken at once.
const PIECE: usize = 256 << 10;

pub(crate) struct DelayLine {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl DelayLine {
    /// A line to `target` that takes `one_way` in each direction and holds at most `rate * one_way` bytes of a direction,
    /// at least one piece. `rate` is in bytes a second; below it, delay is all that it adds.
    pub(crate) fn start(target: SocketAddr, one_way: Duration, rate: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let room = ((rate as f64 * one_way.as_secs_f64()) as usize).max(PIECE);
        let accepting = std::thread::spawn({
            let over = over.clone();
            move || {
                for near in listener.incoming() {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    // Who cannot be reached is not there: the connection is dropped.
                    if let (Ok(near), Ok(far)) = (near, TcpStream::connect(target)) {
                        join(near, far, one_way, room);
                    }
                }
            }
        });
        DelayLine {
            address,
            over,
            accepting: Some(accepting),
        }
    }

    /// Where its near end is.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for DelayLine {
    /// Takes no more connections. Those that stand go on until their ends end them.
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn join(near: TcpStream, far: TcpStream, one_way: Duration, room: usize) {
    for stream in [&near, &far] {
        let _ = stream.set_nodelay(true);
    }
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    direction(near, far, one_way, room);
    direction(far_too, near_too, one_way, room);
}

/// What is on its way in one direction.
struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Bytes with the moment at which they arrive.
    pieces: VecDeque<(Instant, Vec<u8>)>,
    held: usize,
    /// The source has ended; the end arrives then.
    ended: Option<Instant>,
    /// The target takes nothing any more.
    broken: bool,
    spare: Vec<Vec<u8>>,
}

fn direction(from: TcpStream, to: TcpStream, one_way: Duration, room: usize) {
    let line = Arc::new(Line {
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    let entry = line.clone();
    std::thread::spawn(move || take(from, &entry, one_way, room));
    std::thread::spawn(move || deliver(to, &line));
}

fn take(mut from: TcpStream, line: &Line, one_way: Duration, room: usize) {
    loop {
        let state = line.state.lock().unwrap();
        let mut state = line
            .changed
            .wait_while(state, |state| !state.broken && state.held >= room)
            .unwrap();
        if state.broken {
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
        let most = PIECE.min(room - state.held);
        let mut piece = state.spare.pop().unwrap_or_default();
        drop(state);
        piece.resize(PIECE, 0);
        let read = from.read(&mut piece[..most]).unwrap_or(0);
        let arrival = Instant::now() + one_way;
        piece.truncate(read);
        let mut state = line.state.lock().unwrap();
        if read == 0 {
            state.ended = Some(arrival);
        } else {
            state.held += read;
            state.pieces.push_back((arrival, piece));
        }
        line.changed.notify_all();
        if read == 0 {
            return;
        }
    }
}

fn deliver(mut to: TcpStream, line: &Line) {
    loop {
        let state = line.state.lock().unwrap();
        let mut state = line
            .changed
            .wait_while(state, |state| state.pieces.is_empty() && state.ended.is_none())
            .unwrap();
        let next = state.pieces.pop_front();
        let at = next.as_ref().map(|(at, _)| *at).or(state.ended);
        drop(state);
        if let Some(at) = at {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
        }
        let Some((_, mut piece)) = next else {
            let _ = to.shutdown(Shutdown::Write);
            return;
        };
        let written = to.write_all(&piece);
        let mut state = line.state.lock().unwrap();
        state.held -= piece.len();
        piece.clear();
        state.spare.push(piece);
        state.broken = written.is_err();
        line.changed.notify_all();
        if state.broken {
            return;
        }
    }
}
