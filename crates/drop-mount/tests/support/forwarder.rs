//! What stands between two ends, and can fall silent: connections stay, and nothing gets through.

#![allow(unreachable_pub, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Passes connections on to an address. Dropping it ends them.
pub struct Forwarder {
    pub address: SocketAddr,
    silent: Arc<AtomicBool>,
    /// Bytes passed on, towards the address and back.
    passed: [Arc<AtomicU64>; 2],
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Forwarder {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let forwarder = Self {
            address: listener.local_addr().unwrap(),
            silent: Arc::default(),
            passed: Default::default(),
            streams: Arc::default(),
        };
        let (silent, streams) = (forwarder.silent.clone(), forwarder.streams.clone());
        let passed = forwarder.passed.clone();
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let far = TcpStream::connect(target).unwrap();
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                for ((from, to), passed) in [(&near, &far), (&far, &near)].into_iter().zip(&passed) {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (silent, passed) = (silent.clone(), passed.clone());
                    std::thread::spawn(move || pass(from, to, &silent, &passed));
                }
                streams.lock().unwrap().extend([near, far]);
            }
        });
        forwarder
    }

    /// Bytes passed on so far, towards the address and back.
    pub fn passed(&self) -> [u64; 2] {
        self.passed.each_ref().map(|passed| passed.load(SeqCst))
    }

    /// From now on it takes what comes, and nothing comes of that.
    pub fn fall_silent(&self) {
        self.silent.store(true, SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, silent: &AtomicBool, passed: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read) = from.read(&mut buffer) {
        // An end is not passed on either.
        let goes = !silent.load(SeqCst);
        if goes && (read == 0 || to.write_all(&buffer[..read]).is_err()) {
            let _ = to.shutdown(Shutdown::Write);
        } else if goes {
            passed.fetch_add(read as u64, SeqCst);
        }
        if read == 0 {
            return;
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
