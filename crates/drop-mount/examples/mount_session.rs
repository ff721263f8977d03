//! A folder served over a sealed session on loopback and mounted in one process: how fast both ends are on one machine.
//!
//! `cargo run --release -p sealway-drop --example mount_session FOLDER MOUNTPOINT`, then `dd` a file below MOUNTPOINT.
//! With `stream` and a file's name instead of MOUNTPOINT, the file is streamed by gRPC five times and the times are shown.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sealway_aead::cpu::Cpu;
use sealway_aead::{Suite, choose::Offer};
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{self, Identity, Place, Setup};
use sealway_drop_mount::grpc::stream::SealedStream;
use sealway_drop_mount::grpc::{GrpcTree, ServeOptions, serve};
use sealway_drop_mount::local::{LocalOptions, LocalTree};
use sealway_drop_mount::sharing::{self, Options};
use sealway_drop_mount::tree::TreePath;
use sealway_session::handshake::{Auth, Config, Handshake, Kem, Role};
use tokio::net::{TcpListener, TcpStream};
use zeroize::Zeroizing;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let usage = "usage: mount_session FOLDER MOUNTPOINT, or mount_session FOLDER stream FILE";
    let folder = PathBuf::from(arguments.first().ok_or(usage)?);
    let target = PathBuf::from(arguments.get(1).ok_or(usage)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    if let Some(name) = arguments.get(2) {
        let remote = runtime.block_on(connect(LocalTree::open(&folder, LocalOptions::default())?))?;
        let path = TreePath::parse(name.as_encoded_bytes())?;
        for _ in 0..5 {
            let start = Instant::now();
            let bytes = runtime.block_on(remote.stream_file(&path, 0, |_| Ok(())))?;
            let seconds = start.elapsed().as_secs_f64();
            println!("{bytes} B in {seconds:.3} s: {:.2} GB/s", bytes as f64 / seconds / 1e9);
        }
        return Ok(());
    }
    share(folder, target)
}

/// One end shares, the other mounts, as the commands do.
fn share(folder: PathBuf, target: PathBuf) -> Result<(), Failure> {
    let setup = |own| Setup {
        identity: Identity::Keys {
            own: Zeroizing::new([own; 32]),
            peers: None,
        },
        offer: Offer::of(Cpu::get()),
        strong: false,
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let place = Place::Dial {
        addresses: vec![listener.local_addr()?],
        patience: std::time::Duration::from_secs(10),
    };
    let far = std::thread::spawn(move || {
        let (options, cancel) = (
            Options {
                share: Some(folder),
                ..Options::default()
            },
            Cancel::new(),
        );
        let connected = link::connect(Place::Listen(listener), &setup(1), 1, &cancel)?;
        sharing::share(&options, connected, &cancel, &|_| ())
    });
    let (options, cancel) = (
        Options {
            mount: Some(target),
            ..Options::default()
        },
        Cancel::new(),
    );
    let connected = link::connect(place, &setup(2), 1, &cancel)?;
    sharing::share(&options, connected, &cancel, &|_| println!("mounted"))?;
    far.join().map_err(|_| "the serving end failed")??;
    Ok(())
}

/// Both ends of a session on loopback; the tree at the near one.
async fn connect(tree: LocalTree) -> Result<GrpcTree, Failure> {
    let config = |role| -> Result<Config, Failure> {
        let offer = Offer::new(&[Suite::Aes256Gcm, Suite::ChaCha20Poly1305], true)?;
        let auth = Auth::Code(b"one two three".to_vec().into());
        Ok(Config {
            role,
            auth,
            offer,
            kem: Kem::MlKem768,
            prologue: Vec::new(),
        })
    };
    // An example without a generator of its own: nothing secret goes over this session.
    let mut count = 0_u8;
    let mut random = |out: &mut [u8]| {
        for byte in out {
            count = count.wrapping_mul(181).wrapping_add(97);
            *byte = count;
        }
    };
    let mut here = Handshake::new(config(Role::Initiator)?, &mut random)?;
    let mut there = Handshake::new(config(Role::Responder)?, &mut random)?;
    while !(here.is_done() && there.is_done()) {
        if let Some(flight) = here.write() {
            there.read(&flight)?;
        }
        if let Some(flight) = there.write() {
            here.read(&flight)?;
        }
    }
    let (here, there) = (here.finish()?, there.finish()?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = TcpStream::connect(listener.local_addr()?).await?;
    let (far, _) = listener.accept().await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let far = SealedStream::new(far, there.send, there.recv, 1, 0);
    tokio::spawn(serve(far, Arc::new(tree), ServeOptions::default()));
    Ok(GrpcTree::connect(SealedStream::new(near, here.send, here.recv, 1, 0)).await?)
}
