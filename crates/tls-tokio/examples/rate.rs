//! Measures streams of this crate against those of tokio-rustls, over loopback.
//!
//! `cargo run --release -p sealway-tls-tokio --example rate [ROUNDS] [MIB]`
//!
//! TLS 1.3 with AES-128-GCM. Both ends are in this process, on two threads. Every combination of ends takes its turn within each round;
//! ratios are those within a round, to tokio-rustls at both ends. Writes and reads are 256 KiB; tokio-rustls has a read buffer and a
//! buffer limit of as much. CPU time is that of both ends.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const NAME: &str = "server.example";
const PIECE: usize = 256 << 10;

/// Which stream the sender has, and which the receiver.
const TURNS: [(bool, bool, &str); 4] = [
    (false, false, "tokio-rustls to tokio-rustls"),
    (true, true, "ours to ours"),
    (true, false, "ours to tokio-rustls"),
    (false, true, "tokio-rustls to ours"),
];

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

struct Configs {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

fn configs() -> Result<Configs, Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..aws_lc_rs::default_provider()
    });
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    server.enable_secret_extraction = true;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_secret_extraction = true;
    Ok(Configs {
        server: Arc::new(server),
        client: Arc::new(client),
    })
}

async fn accept(configs: &Configs, tcp: TcpStream, ours: bool) -> std::io::Result<Box<dyn Stream>> {
    if ours {
        return Ok(Box::new(sealway_tls_tokio::accept(configs.server.clone(), tcp).await?));
    }
    let acceptor = TlsAcceptor::from(configs.server.clone());
    let mut stream = acceptor.accept(BufReader::with_capacity(PIECE, tcp)).await?;
    stream.get_mut().1.set_buffer_limit(Some(PIECE));
    Ok(Box::new(stream))
}

async fn connect(configs: &Configs, tcp: TcpStream, ours: bool) -> std::io::Result<Box<dyn Stream>> {
    let name = NAME.try_into().map_err(std::io::Error::other)?;
    if ours {
        return Ok(Box::new(
            sealway_tls_tokio::connect(configs.client.clone(), name, tcp).await?,
        ));
    }
    let connector = TlsConnector::from(configs.client.clone());
    let mut stream = connector.connect(name, BufReader::with_capacity(PIECE, tcp)).await?;
    stream.get_mut().1.set_buffer_limit(Some(PIECE));
    Ok(Box::new(stream))
}

fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Sends so many bytes; returns the time that took, and the CPU time.
async fn turn(configs: &Arc<Configs>, sender: bool, receiver: bool, bytes: usize) -> std::io::Result<(f64, f64)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let theirs = configs.clone();
    let receiving = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await?;
        let mut stream = accept(&theirs, tcp, receiver).await?;
        let (mut room, mut got) = (vec![0; PIECE], 0);
        while got < bytes {
            match stream.read(&mut room).await? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                more => got += more,
            }
        }
        stream.write_all(b"ok").await?;
        stream.shutdown().await
    });
    let configs = configs.clone();
    let sending = tokio::spawn(async move {
        let tcp = TcpStream::connect(address).await?;
        let mut stream = connect(&configs, tcp, sender).await?;
        let piece = vec![7; PIECE];
        let (begun, used) = (Instant::now(), cpu());
        let mut left = bytes;
        while left > 0 {
            let now = left.min(PIECE);
            stream.write_all(&piece[..now]).await?;
            left -= now;
        }
        stream.flush().await?;
        stream.read_exact(&mut [0; 2]).await?;
        Ok::<_, std::io::Error>((begun.elapsed().as_secs_f64(), (cpu() - used).as_secs_f64()))
    });
    let times = sending.await.map_err(std::io::Error::other)??;
    receiving.await.map_err(std::io::Error::other)??;
    Ok(times)
}

/// The median, and the quartiles around it.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| values[(values.len() - 1) * part / 4];
    (at(2), at(1), at(3))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(11), |text| text.parse())?;
    let mib: usize = arguments.next().map_or(Ok(512), |text| text.parse())?;
    let configs = Arc::new(configs()?);
    let mut times = vec![Vec::new(); TURNS.len()];
    for _ in 0..rounds.max(1) {
        for (at, (sender, receiver, _)) in TURNS.into_iter().enumerate() {
            times[at].push(turn(&configs, sender, receiver, mib << 20).await?);
        }
    }
    println!("{rounds} rounds of {mib} MiB; medians, quartiles in brackets");
    for (at, (_, _, name)) in TURNS.into_iter().enumerate() {
        let (rate, ..) = spread(times[at].iter().map(|(time, _)| mib as f64 / time).collect());
        let pairs = || times[0].iter().zip(&times[at]);
        let (faster, f1, f3) = spread(pairs().map(|(base, own)| base.0 / own.0).collect());
        let (cpu, c1, c3) = spread(pairs().map(|(base, own)| own.1 / base.1).collect());
        println!(
            "{name:<30} {rate:6.0} MiB/s; rate {faster:.2} [{f1:.2} to {f3:.2}]; CPU time {cpu:.2} [{c1:.2} to {c3:.2}]"
        );
    }
    Ok(())
}
