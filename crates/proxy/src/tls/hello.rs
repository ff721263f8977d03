//! The server name in a ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3).

/// Reads fields off the front; every read may find too little.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// A field behind its length, which is a big-endian number of `width` bytes.
    fn sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self
            .take(width)?
            .iter()
            .fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        self.take(length)
    }
}

/// The server name, in lower case, if `wire` holds a whole ClientHello with one. It may be spread over records.
///
/// The handshake itself checks the message; this only looks.
pub(crate) fn server_name(wire: &[u8]) -> Option<String> {
    let mut records = Fields(wire);
    let mut joined = Vec::new();
    let mut message: &[u8] = &[];
    while let Some(&[22, 3, _]) = records.take(3) {
        let Some(body) = records.sized(2) else { break };
        if message.is_empty() && joined.is_empty() {
            message = body;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(message);
            }
            joined.extend_from_slice(body);
        }
    }
    let message = if joined.is_empty() { message } else { &joined };
    let mut hello = Fields(message);
    if hello.take(1)? != [1] {
        return None;
    }
    let mut hello = Fields(hello.sized(3)?);
    hello.take(2 + 32)?;
    hello.sized(1)?;
    hello.sized(2)?;
    hello.sized(1)?;
    let mut extensions = Fields(hello.sized(2)?);
    loop {
        let kind = extensions.take(2)?;
        let body = extensions.sized(2)?;
        if kind == [0, 0] {
            let mut names = Fields(Fields(body).sized(2)?);
            while let Some(kind) = names.take(1) {
                let name = names.sized(2)?;
                if kind == [0] {
                    return std::str::from_utf8(name).ok().map(str::to_ascii_lowercase);
                }
            }
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::UnbufferedClientConnection;
    use rustls::unbuffered::ConnectionState;
    use rustls::{ClientConfig, RootCertStore};

    use super::*;

    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = name.to_owned().try_into().unwrap();
        let mut client = UnbufferedClientConnection::new(Arc::new(config), name).unwrap();
        let mut out = vec![0; 4096];
        let ConnectionState::EncodeTlsData(mut encode) = client.process_tls_records(&mut []).state.unwrap() else {
            panic!("a client begins by speaking");
        };
        let length = encode.encode(&mut out).unwrap();
        out.truncate(length);
        out
    }

    #[test]
    fn the_name_is_found_only_when_all_has_arrived() {
        let wire = hello("Www.Example.org");
        assert_eq!(server_name(&wire).as_deref(), Some("www.example.org"));
        for cut in 0..wire.len() {
            assert_eq!(server_name(&wire[..cut]), None, "{cut} bytes");
        }
    }

    #[test]
    fn a_hello_in_many_records_is_read_and_an_address_is_no_name() {
        let wire = hello("www.example.org");
        let mut split = Vec::new();
        for piece in wire[5..].chunks(7) {
            split.extend_from_slice(&[22, 3, 1, 0, piece.len() as u8]);
            split.extend_from_slice(piece);
        }
        assert_eq!(server_name(&split).as_deref(), Some("www.example.org"));
        assert_eq!(server_name(&hello("192.0.2.1")), None);
    }

    #[test]
    fn no_byte_can_make_it_fail() {
        let wire = hello("www.example.org");
        for at in 0..wire.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bent = wire.clone();
                bent[at] = value;
                server_name(&bent);
            }
        }
    }
}
