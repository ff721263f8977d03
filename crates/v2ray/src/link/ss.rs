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
            (user.to_owned(), server)
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
