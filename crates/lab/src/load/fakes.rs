//! Servers that do it wrong, to see that the generator notices.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use super::script::{LONGEST, Script};
use super::scripts::HTTP_KEEP;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fake {
    /// Nothing.
    Right,
    /// Never answers.
    Slow,
    /// Closes in the middle of the answer.
    Closes,
    /// Says that more will come than does.
    SaysMore,
    /// Sends a byte too many.
    Surplus,
    /// Sends one byte wrong: that at this place from the end.
    WrongByte(usize),
    /// Answers what another has asked.
    Mixes,
    /// Answers right but for every tenth, which it closes on.
    TenthCloses,
}

/// Starts a fake for [`HTTP_KEEP`], which runs as long as the tests; where it listens.
pub(super) fn start(fake: Fake) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, &HTTP_KEEP, fake));
        }
    });
    address
}

/// Serves one connection to its end; the other end closes or has gone.
fn serve(mut stream: TcpStream, script: &Script, fake: Fake) -> Option<()> {
    let mut request = vec![0; script.messages[0].len()];
    let mut buffer = vec![0; LONGEST];
    for turn in 1.. {
        stream.read_exact(&mut request).ok()?;
        let digits = std::str::from_utf8(&request[5..21]).ok()?;
        let mut key = u64::from_str_radix(digits, 16).ok()?;
        if fake == Fake::Mixes {
            key ^= 1 << 40;
        }
        let mut reply = script.render(1, key, &mut buffer).to_vec();
        match fake {
            Fake::Right | Fake::Mixes => {}
            Fake::Slow => continue,
            Fake::Closes => reply.truncate(500),
            Fake::TenthCloses if turn % 10 == 0 => reply.truncate(500),
            Fake::TenthCloses => {}
            Fake::SaysMore => {
                let text = String::from_utf8_lossy(script.messages[1].head).into_owned();
                let head = text.replace("1024", "2048");
                reply[..head.len()].copy_from_slice(head.as_bytes());
            }
            Fake::Surplus => reply.push(0),
            Fake::WrongByte(place) => {
                let at = reply.len() - 1 - place;
                reply[at] ^= 1;
            }
        }
        stream.write_all(&reply).ok()?;
        if reply.len() == 500 {
            return Some(());
        }
    }
    Some(())
}
