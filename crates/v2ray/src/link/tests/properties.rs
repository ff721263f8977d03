//! What holds of every link.

use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    let shown = |text: &String| !text.chars().any(text::is_hidden);
    prop_oneof!["[a-z0-9]{1,8}", "[ -~]{1,12}", "\\PC{1,6}"].prop_filter("hidden characters", shown)
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|ip| Address::from(std::net::IpAddr::from(ip))),
        any::<[u8; 16]>().prop_map(|ip| Address::from(std::net::IpAddr::from(ip))),
        "[a-z]{1,8}\\.[a-z]{2,5}".prop_map(|name| Address::parse(&name).unwrap()),
    ]
}

fn link(form: Form) -> impl Strategy<Value = Link> {
    const NAMES: [&str; 11] = [
        "flow",
        "sni",
        "alpn",
        "fp",
        "ech",
        "pcs",
        "pbk",
        "headerType",
        "host",
        "path",
        "fm",
    ];
    let parameters = proptest::collection::btree_map(proptest::sample::select(&NAMES[..]), text(), 0..6);
    let words = (
        proptest::sample::select(&["raw", "ws", "httpupgrade", "xhttp"][..]),
        proptest::sample::select(&["none", "tls", "reality"][..]),
        proptest::sample::select(&["auto", "none", "aes-128-gcm", "zero", "2022-blake3-aes-128-gcm"][..]),
    );
    let scheme = match form {
        Form::Uri => &[Scheme::Shadowsocks, Scheme::Trojan, Scheme::Vless, Scheme::Vmess][..],
        Form::Json => &[Scheme::Vmess][..],
    };
    (
        proptest::sample::select(scheme),
        (any::<[u8; 16]>(), text()),
        address(),
        1u16..,
        words,
        proptest::option::of(text()),
        parameters,
        any::<bool>(),
    )
        .prop_map(
            move |(
                scheme,
                (id, password),
                address,
                port,
                (network, security, encryption),
                name,
                parameters,
                insecure,
            )| {
                let user = match scheme {
                    Scheme::Shadowsocks | Scheme::Trojan => Credential::Password(password),
                    Scheme::Vless | Scheme::Vmess => UserId::from_bytes(id).into(),
                };
                let mut link = Link::new(scheme, user, address, port);
                link.form = form;
                link.name = name.unwrap_or_default();
                link.network = network.to_owned();
                link.security = security.to_owned();
                link.encryption = encryption.to_owned();
                link.parameters = parameters
                    .into_iter()
                    .map(|(key, text)| (key.to_owned(), text))
                    .collect();
                link.set_parameter("allowInsecure", if insecure { "1" } else { "" });
                link
            },
        )
}

proptest! {
    #[test]
    fn writing_and_reading_loses_nothing(uri in link(Form::Uri), json in link(Form::Json)) {
        prop_assert_eq!(Link::parse(&uri.to_string()), Ok(uri));
        prop_assert_eq!(Link::parse(&json.to_string()), Ok(json));
    }

    #[test]
    fn links_and_outbounds_say_the_same(
        id in any::<[u8; 16]>(), address in address(), port in 1u16..,
        network in proptest::sample::select(&["raw", "ws", "httpupgrade"][..]), tls in any::<bool>(), password in text(),
        scheme in proptest::sample::select(&[Scheme::Shadowsocks, Scheme::Trojan, Scheme::Vless, Scheme::Vmess][..]),
        path in "/[a-z/%]{1,8}(\\?ed=[1-9][0-9]{1,2})?", host in "[a-z]{0,5}", sni in "[a-z.]{0,9}", name in text(),
        encryption in proptest::sample::select(&["auto", "none", "zero", "aes-128-gcm", "chacha20-poly1305"][..]),
        pin in proptest::option::of("[0-9a-f]{64}"), insecure in any::<bool>(), alpn in proptest::bool::ANY,
    ) {
        let user = match scheme {
            Scheme::Shadowsocks | Scheme::Trojan => Credential::Password(password),
            Scheme::Vless | Scheme::Vmess => UserId::from_bytes(id).into(),
        };
        let mut link = Link::new(scheme, user, address, port);
        link.security = if tls { "tls" } else { "none" }.to_owned();
        link.name = name;
        link.network = network.to_owned();
        if scheme == Scheme::Vmess {
            link.encryption = encryption.to_owned();
        } else if scheme == Scheme::Shadowsocks {
            link.encryption = if tls { "aes-128-gcm" } else { "xchacha20-ietf-poly1305" }.to_owned();
        }
        if network != "raw" {
            link.set_parameter("path", path);
            link.set_parameter("host", host);
        }
        if tls {
            // Where it is missing, the name that the request has stands for it.
            let name = if sni.is_empty() { link.parameter("host").to_owned() } else { sni };
            link.set_parameter("sni", name);
            link.set_parameter("pcs", pin.unwrap_or_default());
            link.set_parameter("allowInsecure", if insecure { "1" } else { "" });
            link.set_parameter("alpn", if alpn { "h2,http/1.1" } else { "" });
        }
        let (outbound, _) = link.to_outbound().unwrap();
        let made = Link::from_outbound(&outbound).unwrap();
        prop_assert_eq!(made.left_out, Vec::<&str>::new());
        prop_assert_eq!(made.link, link);
    }
}
