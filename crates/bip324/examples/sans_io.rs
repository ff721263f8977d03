//! Two ends of a connection without any I/O: what one has to send is given to the other by hand, in pieces of any length.
//!
//! `cargo run -p sealway-bip324 --example sans_io`

use sealway_bip324::message::{Message, MessageTypes};
use sealway_bip324::{Connection, Event, LocalKey, Magic, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run()
}

pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut here = Connection::initiator(Magic::REGTEST, key(1)?, options(3))?;
    let mut there = Connection::responder(Magic::REGTEST, key(2)?, options(1000))?;
    // The handshake: whoever has something to say is listened to, until both have shown that they share a secret.
    while !(here.is_established() && there.is_established()) {
        pass(&mut here, &mut there)?;
        pass(&mut there, &mut here)?;
    }
    println!(
        "established; both show the session id {:02x?}…",
        &here.session_id().ok_or("no id")?[..4]
    );

    // A message is a type and a payload; types that are sent often have a short id.
    let types = MessageTypes::standard();
    let ping = Message {
        command: "ping".parse()?,
        payload: b"a number",
    };
    let mut contents = Vec::new();
    ping.encode(&types, &mut contents)?;
    here.send(&contents)?;
    // A packet that means nothing, which nobody in between can tell from another.
    here.send_decoy(&[0; 500])?;
    pass(&mut here, &mut there)?;
    while let Some(event) = there.poll_event() {
        match event {
            Event::Established { .. } => {}
            Event::Message(contents) => {
                let message = Message::decode(&types, &contents)?;
                println!("a {} of {} bytes", message.command, message.payload.len());
            }
            Event::Decoy { len } => println!("a decoy of {len} bytes, thrown away"),
            Event::V1 { .. } => println!("the peer speaks v1"),
            // More may come with a later version.
            _ => {}
        }
    }
    Ok(())
}

/// Carries what `from` has to send to `to`. Sockets would do it in their own pieces.
fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), sealway_bip324::Error> {
    while !from.output().is_empty() {
        let piece = from.output().len().min(100);
        let used = to.handle_input(&from.output()[..piece])?;
        from.advance_output(used);
    }
    Ok(())
}

/// A key for this example. A program draws both pairs of 32 bytes from the system: see `draw_key`.
fn key(byte: u8) -> Result<LocalKey, sealway_bip324::Error> {
    LocalKey::new(&[byte; 32], &[!byte; 32])
}

fn options(garbage: usize) -> Options {
    let mut options = Options::default();
    // A program draws it from the system: see `draw_garbage`.
    options.garbage = vec![7; garbage];
    options
}
