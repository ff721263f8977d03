//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use prost::Message;

use super::ENTRIES;
use crate::compiled::tests::with_secrets;
use crate::compiled::{typed, write};
use crate::describe::tests::{ADD_USER, bytes};
use crate::proto::net::{IpOrDomain, PortList, PortRange, ip_or_domain::Address};
use crate::proto::routing::RoutingContext;
use crate::proto::xray::app::router::routing_rule::TargetTag;
use crate::proto::xray::app::router::{
    BalancingRule, Cidr, CidrRule, Config, Domain, DomainRule, GeoIp, IpRule, RoutingRule, domain_rule, ip_rule,
};
use crate::proto::xray::proxy::trojan;
use crate::proto::{TypedMessage, User};

replay::tests!(ENTRIES, 40, 60, &["api_"]);

fn rules() -> Vec<u8> {
    let cidr = || Cidr {
        ip: vec![10, 2, 3, 4],
        prefix: 32,
    };
    let domain = || Domain {
        r#type: 1,
        value: "^x".to_owned(),
        attribute: Vec::new(),
    };
    let earlier = RoutingRule {
        rule_tag: "earlier".to_owned(),
        domain: vec![domain().encode_to_vec()],
        geoip: vec![
            GeoIp {
                cidr: vec![cidr()],
                ..Default::default()
            }
            .encode_to_vec(),
        ],
        target_tag: Some(TargetTag::Tag("out".to_owned())),
        ..Default::default()
    };
    let name = DomainRule {
        value: Some(domain_rule::Value::Custom(domain())),
    };
    let address = IpRule {
        value: Some(ip_rule::Value::Custom(CidrRule {
            cidr: Some(cidr()),
            reverse_match: true,
        })),
    };
    let later = RoutingRule {
        domain: vec![name.encode_to_vec()],
        source_geoip: vec![address.encode_to_vec()],
        port_list: Some(PortList {
            range: vec![PortRange { from: 1, to: 5 }],
        }),
        networks: vec![2],
        target_tag: Some(TargetTag::BalancingTag("b".to_owned())),
        ..Default::default()
    };
    let config = Config {
        rule: vec![earlier, later],
        balancing_rule: vec![BalancingRule {
            tag: "b".to_owned(),
            outbound_selector: vec!["out".to_owned()],
            ..Default::default()
        }],
        ..Default::default()
    };
    config.encode_to_vec()
}

#[test]
fn the_corpora_are_what_is_made_now() {
    let seed = |kind: u8, bytes: Vec<u8>| [vec![kind], bytes].concat();
    let settings = with_secrets();
    let inbound = |n: usize| write::inbound(&settings.inbounds[n], true).encode_to_vec();
    let outbound = |n: usize| write::outbound(&settings.outbounds[n], true).encode_to_vec();
    let nested = (0..40).fold(TypedMessage::default(), |inner, _| {
        typed("xray.common.serial.TypedMessage", &inner)
    });
    let address = IpOrDomain {
        address: Some(Address::Ip(vec![192, 0, 2, 1])),
    };
    let context = RoutingContext {
        target_i_ps: vec![vec![192, 0, 2, 1]],
        attributes: [("a".to_owned(), "b".to_owned())].into(),
        ..Default::default()
    };
    replay::seeds(
        "api_describe",
        &[
            ("add_user", seed(0, bytes(ADD_USER))),
            ("inbound", seed(1, inbound(0))),
            ("outbound", seed(2, outbound(0))),
            ("rules", seed(3, rules())),
            ("map", seed(4, context.encode_to_vec())),
            ("nested", seed(5, nested.encode_to_vec())),
            (
                "no_object",
                seed(5, typed("xray.common.net.IPOrDomain", &address).encode_to_vec()),
            ),
        ],
    );
    let password = trojan::Account {
        password: "p".to_owned(),
    };
    let user = User {
        email: "a@b".to_owned(),
        account: Some(typed("xray.proxy.trojan.Account", &password)),
        ..Default::default()
    };
    replay::seeds(
        "api_compiled",
        &[
            ("vless", seed(0, inbound(0))),
            ("vmess", seed(0, inbound(1))),
            ("socks", seed(0, inbound(2))),
            ("http", seed(0, inbound(3))),
            ("to_vless", seed(1, outbound(0))),
            ("to_vmess", seed(1, outbound(1))),
            ("rules", seed(2, rules())),
            ("user", seed(3, user.encode_to_vec())),
        ],
    );
}
