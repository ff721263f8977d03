use prost::Message;
use serde_json::json;

use super::*;
use crate::compiled::typed;
use crate::proto::xray::proxy::vless;
use crate::proto::{TypedMessage, User, handler};

/// AlterInbound of `in-1`: add `a@b`, VLESS, with vision, as Xray's own client sends it.
pub(crate) const ADD_USER: &str = "0a04696e2d31128b010a2a787261792e6170702e70726f78796d616e2e636f6d6d616e642e416464557365724f7065726174696f6e\
    125d0a5b12036140621a540a18787261792e70726f78792e766c6573732e4163636f756e7412380a2462383331333831642d363332342d346435332d61643466\
    2d386364613438623330383131121078746c732d727072782d766973696f6e";

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn the_recorded_call_is_what_it_was() {
    let kind = "xray.app.proxyman.command.AlterInboundRequest";
    let recorded = bytes(ADD_USER);
    assert_eq!(check(kind, &recorded), Ok(()));
    let mut account = vless::Account::default();
    account.id = "b831381d-6324-4d53-ad4f-8cda48b30811".into();
    account.flow = "xtls-rprx-vision".into();
    let user = User {
        email: "a@b".into(),
        account: Some(typed("xray.proxy.vless.Account", &account)),
        ..Default::default()
    };
    let operation = handler::AddUserOperation { user: Some(user) };
    let request = handler::AlterInboundRequest {
        tag: "in-1".into(),
        operation: Some(typed("xray.app.proxyman.command.AddUserOperation", &operation)),
    };
    assert_eq!(request.encode_to_vec(), recorded);
    let shown = json!({
        "tag": "in-1",
        "operation": {
            "_TypedMessage_": "xray.app.proxyman.command.AddUserOperation",
            "user": {
                "email": "a@b",
                "account": {
                    "_TypedMessage_": "xray.proxy.vless.Account",
                    "id": "b831381d-6324-4d53-ad4f-8cda48b30811",
                    "flow": "xtls-rprx-vision",
                },
            },
        },
    });
    assert_eq!(to_json(kind, &recorded).unwrap(), shown);
}

#[test]
fn unknown_fields_are_found_however_deep() {
    let name = "xray.proxy.vless.Account";
    let mut account = vless::Account::default().encode_to_vec();
    // Field 99, a number.
    account.extend([0x98, 0x06, 1]);
    assert_eq!(
        check(name, &account),
        Err("field 99 of xray.proxy.vless.Account".into())
    );
    let message = TypedMessage {
        r#type: "types.v2fly.org/v2ray.core.proxy.vless.Account".into(),
        value: account,
    };
    let outer = "xray.common.serial.TypedMessage";
    let found = check(outer, &message.encode_to_vec());
    assert_eq!(found, Err("field 99 of xray.proxy.vless.Account".into()));
    assert_eq!(
        check("xray.proxy.nothing", &[]),
        Err("the type xray.proxy.nothing".into())
    );
    assert!(check(name, &[0x0a, 5, 1]).is_err());
    assert!(check(name, &[0x0b]).is_err());
}

#[test]
fn messages_do_not_stand_in_each_other_without_end() {
    let nested = |levels: usize| {
        let empty = TypedMessage::default();
        let inner = (0..levels).fold(empty, |inner, _| typed("xray.common.serial.TypedMessage", &inner));
        inner.encode_to_vec()
    };
    let outer = "xray.common.serial.TypedMessage";
    for levels in [MAX_DEPTH + 2, 5_000] {
        let deep = nested(levels);
        assert!(
            check(outer, &deep).is_err_and(|what| what.contains("too deep")),
            "{levels}"
        );
        assert!(
            to_json(outer, &deep).is_err_and(|what| what.contains("too deep")),
            "{levels}"
        );
    }
}

#[test]
fn what_is_no_object_and_what_is_unknown_is_shown() {
    let shown = |kind: &str, value: &[u8]| {
        let message = TypedMessage {
            r#type: kind.to_owned(),
            value: value.to_vec(),
        };
        to_json("xray.common.serial.TypedMessage", &message.encode_to_vec()).unwrap()
    };
    let address = "xray.common.net.IPOrDomain";
    let value = shown(address, &[0x0a, 4, 192, 0, 2, 1]);
    assert_eq!(value, json!({ "_TypedMessage_": address, "value": "192.0.2.1" }));
    assert_eq!(shown(address, &[])["_TypedMessage_"], address);
    for kind in ["xray.common.net.PortList", "xray.app.router.CIDR"] {
        assert_eq!(shown(kind, &[])["_TypedMessage_"], kind);
    }
    let unknown = "xray.proxy.wireguard.DeviceConfig";
    assert_eq!(
        shown(unknown, &[1, 2, 3]),
        json!({ "_TypedMessage_": unknown, "value": "AQID" })
    );
    // That of our own `dns` outbound.
    let dns = "xray.proxy.dns.Config";
    assert_eq!(shown(dns, &[]), json!({ "_TypedMessage_": dns }));
}
