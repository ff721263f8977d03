//! Links of outbounds with REALITY.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sealway_v2ray::config::*;
use sealway_v2ray::link::Link;

use super::*;

fn of(settings: &str, beside: &str) -> String {
    let key = URL_SAFE_NO_PAD.encode([0x42; 32]);
    outbound(&format!(
        r#"{{"protocol":"vless","settings":{{"address":"h.example","port":443,"id":"{ID}","encryption":"none"{beside}}},
        "streamSettings":{{"network":"raw","security":"reality","realitySettings":{{"publicKey":"{key}"{settings}}}}}}}"#
    ))
}

fn client(outbound: &Outbound) -> ClientReality {
    match &outbound.stream.reality {
        Some(Reality::Client(client)) => ClientReality::clone(client),
        other => panic!("{other:?}"),
    }
}

/// The outbound, the text of its link, and what is left out of that.
fn link(text: &str) -> (Outbound, String, Vec<&'static str>) {
    let outbound = read(text).config.unwrap().outbounds.remove(0);
    let made = Link::from_outbound(&outbound).unwrap();
    (outbound, made.link.to_string(), made.left_out)
}

/// What a link says is what the outbound had.
#[test]
fn links_both_ways() {
    let verify = URL_SAFE_NO_PAD.encode([7; 1952]);
    let all = format!(
        r#","serverName":"a.example","fingerprint":"firefox","shortId":"0123456789abcdef","mldsa65Verify":"{verify}","spiderX":"/p?q=1&r""#
    );
    for settings in [
        "",
        r#","shortId":"0a""#,
        r#","serverName":"a.example","shortId":"""#,
        &all,
    ] {
        for beside in ["", r#","flow":"xtls-rprx-vision""#] {
            let (outbound, text, left_out) = link(&of(settings, beside));
            assert_eq!(left_out, Vec::<&str>::new(), "{settings}");
            let (again, _) = Link::parse(&text).unwrap().to_outbound().unwrap();
            assert_eq!(client(&again), client(&outbound), "{text}");
            let (OutboundProtocol::Vless(before), OutboundProtocol::Vless(after)) =
                (&outbound.protocol, &again.protocol)
            else {
                panic!()
            };
            assert_eq!((&after.server, after.id), (&before.server, before.id), "{text}");
            assert_eq!(after.vision.is_some(), !beside.is_empty(), "{text}");
        }
    }
}

/// The names of other programs for all of it.
#[test]
fn a_link_has_the_names_that_other_programs_read() {
    let (_, text, _) = link(&of(
        r#","serverName":"a.example","shortId":"0a0b","spiderX":"/x""#,
        r#","flow":"xtls-rprx-vision""#,
    ));
    let key = URL_SAFE_NO_PAD.encode([0x42; 32]);
    assert!(text.starts_with(&format!("vless://{ID}@h.example:443?")), "{text}");
    for parameter in [
        "security=reality",
        "sni=a.example",
        "fp=chrome",
        &format!("pbk={key}"),
        "sid=0a0b",
        "spx=%2Fx",
        "flow=xtls-rprx-vision",
    ] {
        assert!(
            text.split(['?', '&', '#']).any(|one| one == parameter),
            "{parameter} is not in {text}"
        );
    }
    // What has a value that goes without saying is not said, and files of this machine stay here.
    let (_, text, left_out) = link(&of(r#","masterKeyLog":"/tmp/keys""#, ""));
    assert!(
        !text.contains("sid=") && !text.contains("spx=") && !text.contains("pqv=") && !text.contains("keys"),
        "{text}"
    );
    assert_eq!(left_out, ["masterKeyLog"]);
}
