//! `ss://userinfo@host:port#name` (SIP002): the method, a colon and the password, in base64, or for the methods of 2022
//! percent-encoded. The form before it, base64 of `method:password@host:port`, is read too.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::json::LENIENT;
use super::{Form, Link, LinkError, Scheme, uri};

/// Reads what follows `://`.
pub(super) fn read(rest: &str) -> Result<Link, LinkError> {
    let (rest, name) = rest.split_once('#').unwrap_or((rest, ""));
    let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
    let whole;
    let (user, server) = match authority.rsplit_once('@') {
        Some((user, server)) => (credentials(user)?, server),
        None => {
            whole = decode("the body", authority.trim_end_matches('/'))?;
            let Some((user, server)) = whole.rsplit_once('@') else {
                return Err(LinkError::part("the body", "an \"@\" stands in front of the host"));
            };
            // Some programs put the mark of a query in that they have nothing for.
            (user.to_owned(), server.strip_suffix('?').unwrap_or(server))
        }
    };
    let Some((method, password)) = user.split_once(':') else {
        return Err(LinkError::part(
            "the password",
            "a colon stands between it and the method",
        ));
    };
    for (part, text) in [("the method", method), ("the password", password)] {
        if text.is_empty() {
            return Err(LinkError::part(part, "it is empty"));
        }
    }
    let mut link = uri::read_rest(Scheme::Shadowsocks, password.to_owned().into(), server, query, name)?;
    link.encryption = method.to_owned();
    link.form = Form::Uri;
    Ok(link)
}

/// The method, a colon and the password.
fn credentials(user: &str) -> Result<String, LinkError> {
    if let Some((method, password)) = user.split_once(':') {
        let (method, password) = (
            uri::decode("the method", method)?,
            uri::decode("the password", password)?,
        );
        // A colon in the method would come out as the end of it.
        return match method.contains(':') {
            true => Err(LinkError::part("the method", "it holds a colon")),
            false => Ok(format!("{method}:{password}")),
        };
    }
    decode("the password", &uri::decode("the password", user)?)
}

/// Base64 of either alphabet, whether padded or not.
fn decode(part: &'static str, text: &str) -> Result<String, LinkError> {
    let usual = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let bytes = LENIENT
        .decode(usual)
        .map_err(|_| LinkError::part(part, "it is not base64"))?;
    String::from_utf8(bytes).map_err(|_| LinkError::part(part, "it is not UTF-8"))
}

/// Writes the whole link.
pub(super) fn write(link: &Link) -> String {
    let password = link.user.to_string();
    let user = if link.encryption.to_ascii_lowercase().starts_with("2022-") {
        format!("{}:{}", uri::value(&link.encryption), uri::value(&password))
    } else {
        URL_SAFE_NO_PAD.encode(format!("{}:{password}", link.encryption))
    };
    let mut out = format!("ss://{user}@");
    uri::write_server(link, &mut out);
    let mut query = String::new();
    // Most programs know no other than the plain ones, and look for nothing here.
    if link.network != "raw" || link.security != "none" {
        uri::write_words(link, &mut query);
    }
    uri::write_parameters(link, &mut query);
    if let Some(first) = query.get(1..) {
        out.push('?');
        out.push_str(first);
    }
    uri::write_name(link, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn as_other_programs_write_them() {
        let says = |link: &str| {
            let link = Link::parse(link).unwrap();
            assert_eq!(Link::parse(&link.to_string()).as_ref(), Ok(&link));
            (
                link.encryption.clone(),
                link.user.to_string(),
                format!("{}:{}", link.address, link.port),
                link.name.clone(),
            )
        };
        let wants = |method: &str, password: &str, at: &str, name: &str| {
            (method.to_owned(), password.to_owned(), at.to_owned(), name.to_owned())
        };
        // The examples of SIP002.
        let one = wants("aes-128-gcm", "test", "192.168.100.1:8888", "Example1");
        assert_eq!(says("ss://YWVzLTEyOC1nY206dGVzdA@192.168.100.1:8888#Example1"), one);
        assert_eq!(says("ss://YWVzLTEyOC1nY206dGVzdA==@192.168.100.1:8888/#Example1"), one);
        assert_eq!(
            says("ss://YWVzLTEyOC1nY206dGVzdA%3D%3D@192.168.100.1:8888#Example1"),
            one
        );
        let modern = wants(
            "2022-blake3-aes-256-gcm",
            "YctPZ6U7xPPcU+gp3u+0tx/tRizJN9K8y+uKlW2qjlI=",
            "192.168.100.1:8888",
            "Example3",
        );
        let link = "ss://2022-blake3-aes-256-gcm:YctPZ6U7xPPcU%2Bgp3u%2B0tx%2FtRizJN9K8y%2BuKlW2qjlI%3D@192.168.100.1:8888#Example3";
        assert_eq!(says(link), modern);
        assert_eq!(Link::parse(link).unwrap().to_string(), link);
        assert_eq!(Link::parse(link).unwrap().to_outbound().unwrap().1, vec![]);
        // The form of before: "method:password@host:port", all of it in base64, with an "@" in the password.
        let old = format!(
            "ss://{}#Example",
            STANDARD.encode("aes-256-gcm:p@ss:w/rd@[2001:db8::1]:8888")
        );
        assert_eq!(
            says(&old),
            wants("aes-256-gcm", "p@ss:w/rd", "2001:db8::1:8888", "Example")
        );
        let marked = format!("ss://{}#x", STANDARD.encode("aes-256-gcm:p@a.example:8888?"));
        assert_eq!(says(&marked), wants("aes-256-gcm", "p", "a.example:8888", "x"));
        let link = Link::parse("ss://YWVzLTEyOC1nY206dGVzdA@a.b:1/?plugin=obfs-local%3Bobfs%3Dhttp").unwrap();
        let refused = link.to_outbound().unwrap_err().to_string();
        assert!(refused.contains(".plugin: ") && refused.contains("SIP003"), "{refused}");
        let none = Link::parse("ss://bm9uZTp0ZXN0@a.b:1")
            .unwrap()
            .to_outbound()
            .unwrap_err()
            .to_string();
        assert!(none.contains("\"none\" is obsolete"), "{none}");
        for (wrong, part) in [
            ("ss://", "the body"),
            ("ss://####", "the body"),
            ("ss://YWVz@a.b:1", "the password"),
            ("ss://YWVzLTEyOC1nY206dGVzdA@a.b", "the port"),
            ("ss://:x@a.b:1", "the method"),
            ("ss://x:@a.b:1", "the password"),
            ("ss://2022-x%3Ay:z@a.b:1", "the method"),
            ("ss://!!@a.b:1", "the password"),
        ] {
            assert!(
                matches!(Link::parse(wrong), Err(LinkError::Part { part: p, .. }) if p == part),
                "{wrong}"
            );
        }
    }
}
