//! Both ends of a connection over TCP with tokio: a server that sends every message back, and a client.
//!
//! `cargo run -p sealway-bip324-tokio --example echo`

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};

use sealway_bip324::{Magic, Options};
use sealway_bip324_tokio::{Accepted, HANDSHAKE_LIMIT, accept, connect, draw_garbage, draw_key};
use tokio::net::{TcpListener, TcpStream};

/// Messages that are sent and come back.
const MESSAGES: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    run()
}

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(both_ends())
}

async fn both_ends() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let client = async {
        let tcp = TcpStream::connect(address).await?;
        let key = draw_key(&mut system)?;
        let messages = connect(tcp, Magic::REGTEST, key, options()?, HANDSHAKE_LIMIT).await?;
        println!("session id {:02x?}…", &messages.session_id()[..4]);
        let (mut receiver, mut sender) = messages.split_with(TcpStream::into_split);
        let sending = async {
            for number in 0..MESSAGES {
                sender.feed(&number.to_le_bytes()).await?;
            }
            sender.shutdown().await
        };
        let receiving = async {
            let mut came = 0;
            while let Some(contents) = receiver.recv().await? {
                assert_eq!(contents, u32::to_le_bytes(came));
                came += 1;
            }
            println!("{came} messages came back, in {} bytes", receiver.received().bytes);
            assert_eq!(came, MESSAGES);
            Ok(())
        };
        tokio::try_join!(sending, receiving)?;
        Ok::<_, Box<dyn Error>>(())
    };
    tokio::try_join!(serve(&listener), client)?;
    Ok(())
}

async fn serve(listener: &TcpListener) -> Result<(), Box<dyn Error>> {
    let (tcp, _) = listener.accept().await?;
    let key = draw_key(&mut system)?;
    let messages = match accept(tcp, Magic::REGTEST, key, options()?, HANDSHAKE_LIMIT).await? {
        Accepted::V2(messages) => messages,
        Accepted::V1 { received, .. } => return Err(format!("v1 peer, {} bytes read", received.len()).into()),
    };
    let (mut receiver, mut sender) = messages.split_with(TcpStream::into_split);
    loop {
        // Messages that came together leave together.
        if !receiver.has_message()? {
            sender.flush().await?;
        }
        match receiver.recv().await? {
            Some(contents) => sender.feed(contents).await?,
            None => break,
        }
    }
    sender.shutdown().await?;
    Ok(())
}

fn options() -> io::Result<Options> {
    let mut options = Options::default();
    options.garbage = draw_garbage(&mut system)?;
    Ok(options)
}

/// Random bytes of the system.
fn system(out: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(out)
}
