//! Unix sockets to listen on.

use std::os::unix::fs::PermissionsExt;

use sealway_proxy::Error;
use tokio::net::UnixStream;

use super::*;

/// A server on a unix socket.
async fn on_socket(name: UnixName, target: SocketAddr) -> Result<Server, Error> {
    let mut settings = door_settings(target, freedom());
    settings.inbounds[0].listen = vec![Listen::Unix(name, Some(0o620))];
    Server::start(settings).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_belongs_to_one_server_and_a_dead_one_is_replaced() {
    let target = target().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.sock");
    let name = || UnixName::Path(path.clone());
    // Left behind by a program that died: the file is there, and nobody listens.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = on_socket(name(), target).await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o620);
    within("unix", exchange(UnixStream::connect(&path).await.unwrap(), 1000, 1000)).await;
    let error = on_socket(name(), target).await.err().unwrap().to_string();
    let lock = dir.path().join("in.sock.lock");
    assert_eq!(
        error,
        format!(
            "cannot listen on {}: another server listens here: it holds {}",
            path.display(),
            lock.display()
        )
    );
    // The one that was there is not harmed by the attempt.
    within("unix", exchange(UnixStream::connect(&path).await.unwrap(), 1000, 1000)).await;
    drop(server);
    assert!(!path.exists() && !lock.exists());
    let again = on_socket(name(), target).await.unwrap();
    drop(again);
    // A program without our lock, and a file that is no socket, are left alone.
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = on_socket(name(), target).await.err().unwrap().to_string();
    assert!(error.ends_with("another program listens here"), "{error}");
    drop(other);
    std::fs::remove_file(&path).unwrap();
    // It refuses streams, but not because nobody is there.
    let datagrams = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    let error = on_socket(name(), target).await.err().unwrap().to_string();
    assert!(error.ends_with("another program listens here"), "{error}");
    drop(datagrams);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let error = on_socket(name(), target).await.err().unwrap().to_string();
    assert!(error.contains("file of another kind"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abstract_name_is_listened_on_and_dialled() {
    use std::os::linux::net::SocketAddrExt;
    let target = target().await;
    for padding in [0, 60] {
        let mut name = format!("sealway-test-{}-{padding}", std::process::id()).into_bytes();
        name.resize(name.len() + padding, 0);
        let _server = on_socket(UnixName::Abstract(name.clone()), target).await.unwrap();
        let error = on_socket(UnixName::Abstract(name.clone()), target)
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("cannot listen on @sealway-test-"), "{error}");
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let stream = std::os::unix::net::UnixStream::connect_addr(&address).unwrap();
        stream.set_nonblocking(true).unwrap();
        within("abstract", exchange(UnixStream::from_std(stream).unwrap(), 1000, 1000)).await;
    }
}
