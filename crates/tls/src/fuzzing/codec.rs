//! Entries of the codec.

use crate::codec::{
    Certificate, CertificateVerify, ClientHello, CompressedCertificate, EncryptedExtensions, Extensions, Joiner,
    KeyUpdate, Kind, MAX_FLIGHT, MAX_HELLO, MAX_MESSAGE, Message, NewSessionTicket, ServerHello, record,
    write_certificate, write_certificate_verify, write_client_hello, write_encrypted_extensions, write_server_hello,
};

/// What every reader of extensions makes of these: views of them, and never more than is there.
fn extensions(extensions: &Extensions<'_>) {
    let all = extensions.bytes().len();
    let lists = [
        extensions.supported_versions(),
        extensions.supported_groups(),
        extensions.signature_algorithms(),
    ];
    for list in lists.into_iter().flatten().flatten() {
        assert!(list.iter().count() * 2 < all);
    }
    if let Ok(Some(shares)) = extensions.key_shares() {
        let sum: usize = shares.iter().map(|share| 4 + share.key.len()).sum();
        assert!(sum + 6 <= all);
    }
    if let Ok(Some(names)) = extensions.alpn() {
        assert!(names.iter().map(|name| 1 + name.len()).sum::<usize>() + 6 <= all);
    }
    for field in [extensions.server_name(), extensions.cookie()]
        .into_iter()
        .flatten()
        .flatten()
    {
        assert!(!field.is_empty() && field.len() < all);
    }
}

/// A hello of either side: what was read is what is written.
pub(super) fn hello(data: &[u8]) {
    let Ok(Some(message)) = Message::first(data, MAX_HELLO) else {
        return;
    };
    assert_eq!(
        Message::first(message.bytes, MAX_HELLO),
        Ok(Some(message)),
        "what follows made a difference"
    );
    if let Ok(hello) = ClientHello::read(message) {
        extensions(&hello.extensions);
        assert_eq!(&hello.bytes[hello.session_id_at()], hello.session_id);
        if hello.legacy_version == 0x0303 && hello.compression == [0] && !hello.extensions.is_empty() {
            let suites: Vec<u16> = hello.suites.iter().collect();
            let list: Vec<(u16, &[u8])> = hello.extensions.iter().collect();
            let mut written = Vec::new();
            let outcome = write_client_hello(&mut written, hello.random, hello.session_id, &suites, &list);
            assert!(outcome.is_ok() && written == hello.bytes);
        }
    }
    if let Ok(hello) = ServerHello::read(message) {
        extensions(&hello.extensions);
        let _ = hello.retry_group();
        if hello.legacy_version == 0x0303 && hello.compression == 0 && !hello.extensions.is_empty() {
            let list: Vec<(u16, &[u8])> = hello.extensions.iter().collect();
            let mut written = Vec::new();
            let outcome = write_server_hello(&mut written, hello.random, hello.session_id, hello.suite, &list);
            assert!(outcome.is_ok() && written == hello.bytes);
        }
        if let Ok(Some(share)) = hello.key_share() {
            let other: Vec<u8> = share.key.iter().map(|byte| !byte).collect();
            let changed = hello.with_key(&other).unwrap_or_default();
            let differing = changed.iter().zip(hello.bytes).filter(|(new, old)| new != old).count();
            assert_eq!((changed.len(), differing), (hello.bytes.len(), share.key.len()));
        }
    }
}

/// A message after the hellos.
fn later(message: Message<'_>) {
    let body = message.body();
    let mut written = Vec::new();
    let outcome = match message.kind {
        Kind::ENCRYPTED_EXTENSIONS => EncryptedExtensions::read(body).and_then(|read| {
            extensions(&read.0);
            write_encrypted_extensions(&mut written, &read.0.iter().collect::<Vec<_>>())
        }),
        Kind::CERTIFICATE => Certificate::read(body).and_then(|read| {
            let bare = read.context.is_empty() && read.entries.iter().all(|entry| entry.extensions.is_empty());
            let chain: Vec<&[u8]> = read.entries.iter().map(|entry| entry.der).collect();
            match bare {
                true => write_certificate(&mut written, &chain),
                false => Ok(()),
            }
        }),
        Kind::CERTIFICATE_VERIFY => CertificateVerify::read(body)
            .and_then(|read| write_certificate_verify(&mut written, read.scheme, read.signature)),
        Kind::COMPRESSED_CERTIFICATE => CompressedCertificate::read(body).and_then(|read| {
            let whole = read.decompress()?;
            assert!(whole.len() == read.length && read.length < MAX_MESSAGE);
            Certificate::read(&whole).map(drop)
        }),
        Kind::NEW_SESSION_TICKET => NewSessionTicket::read(body).map(drop),
        Kind::KEY_UPDATE => KeyUpdate::read(body).map(drop),
        _ => Ok(()),
    };
    if outcome.is_ok() && !written.is_empty() {
        assert_eq!(written, message.bytes, "what was read is not what is written");
    }
}

/// Records in the clear, and the messages in them: cutting them otherwise changes no message.
pub(super) fn messages(data: &[u8]) {
    let (mut joiner, mut rest) = (Joiner::new(MAX_MESSAGE, MAX_FLIGHT), data);
    let (mut joined, mut seen, mut failed) = (Vec::new(), Vec::new(), false);
    while let Ok(Some(found)) = record::Record::first(rest) {
        rest = &rest[found.len()..];
        if found.kind != record::HANDSHAKE || joiner.push(found.content).is_err() {
            break;
        }
        joined.extend_from_slice(found.content);
        loop {
            match joiner.next_message() {
                Ok(Some(message)) => {
                    later(message);
                    seen.extend_from_slice(message.bytes);
                }
                Ok(None) => break,
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        if failed {
            break;
        }
    }
    assert!(joined.starts_with(&seen), "a message that nobody sent");
    assert!(failed || (seen.len() == joined.len()) == joiner.is_between());
    // All of it in one piece.
    let (mut again, mut at_once) = (Joiner::new(MAX_MESSAGE, MAX_FLIGHT), Vec::new());
    if !joined.is_empty() && again.push(&joined).is_ok() {
        while let Ok(Some(message)) = again.next_message() {
            at_once.extend_from_slice(message.bytes);
        }
        assert_eq!(at_once, seen, "where it was cut made a difference");
    }
}
