//! CONNECT to a proxy, as its client.

use super::basic_credentials;
use super::head::{is_token, is_value, parse_response};
use crate::{Address, Destination, Error, Protocol, Step};

/// Longest head of the answer, bytes.
pub const MAX_HEAD: usize = 8 * 1024;

/// The head of a CONNECT request. `headers` are added as they are; `Host` and `Proxy-Authorization` are ours.
///
/// # Errors
/// [`Error::DoesNotFit`] for a header or credentials that cannot be written as a line.
pub fn connect(to: &Destination, login: Option<(&str, &str)>, headers: &[(&str, &str)]) -> Result<Vec<u8>, Error> {
    let host = host_and_port(&to.address, to.port);
    let mut head = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
    if let Some((user, password)) = login {
        push(&mut head, "Proxy-Authorization", &basic_credentials(user, password))?;
    }
    for (name, value) in headers {
        push(&mut head, name, value)?;
    }
    head.push_str("\r\n");
    Ok(head.into_bytes())
}

/// Appends a header line.
pub(crate) fn push(head: &mut String, name: &str, value: &str) -> Result<(), Error> {
    if name.is_empty() || !name.bytes().all(is_token) || !is_value(value) {
        return Err(Protocol::Http.does_not_fit("a header with control characters", 0, value.len()));
    }
    head.push_str(name);
    head.push_str(": ");
    head.push_str(value);
    head.push_str("\r\n");
    Ok(())
}

/// Reads the answer to CONNECT. What follows is payload.
///
/// # Errors
/// [`Error::UnknownUser`] for 407, [`Error::Refused`] for any other status than 2xx, and those of a wrong head.
pub fn parse_connected(bytes: &[u8]) -> Result<Step<()>, Error> {
    match parse_response(bytes, MAX_HEAD, Protocol::Http)? {
        Step::More(n) => Ok(Step::More(n)),
        Step::Done { value, used } => match value.status {
            200..=299 => Ok(Step::Done { value: (), used }),
            407 => Err(Protocol::Http.unknown_user()),
            code => Err(Error::Refused {
                protocol: Protocol::Http,
                code,
            }),
        },
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub(crate) fn host_and_port(address: &Address, port: u16) -> String {
    match address {
        Address::Ipv6(ip) => format!("[{ip}]:{port}"),
        address => format!("{address}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::whole;

    #[test]
    fn the_request() {
        let to = Destination::tcp(Address::parse("2001:db8::1").unwrap(), 443);
        let head = connect(&to, Some(("a", "b")), &[("User-Agent", "x y")]).unwrap();
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nProxy-Authorization: Basic YTpi\r\n\
             User-Agent: x y\r\n\r\n"
        );
        assert!(connect(&to, None, &[("A", "b\r\nC: d")]).is_err());
        assert!(connect(&to, None, &[("A b", "c")]).is_err());
    }

    #[test]
    fn the_answer() {
        whole(b"HTTP/1.1 200 Connection established\r\n\r\n", parse_connected);
        assert!(matches!(
            parse_connected(b"HTTP/1.1 407 x\r\n\r\n"),
            Err(Error::UnknownUser { .. })
        ));
        assert!(matches!(
            parse_connected(b"HTTP/1.1 503 x\r\n\r\n"),
            Err(Error::Refused { code: 503, .. })
        ));
    }
}
