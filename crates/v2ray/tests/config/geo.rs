//! Lists of geo files in conditions.

use sealway_v2ray::config::{DomainMatch, GeoList, IpMatch};

use super::{FREEDOM, SOCKS, bad, good, warned};

fn file(conditions: &str) -> String {
    format!(
        r#"{{"inbounds":[{SOCKS}],"outbounds":[{FREEDOM},{{"tag":"o","protocol":"block"}}],"routing":{{"rules":[{{"outboundTag":"o",{conditions}}}]}}}}"#
    )
}

fn words(list: &GeoList) -> String {
    let attributes: String = list.attributes.iter().map(|one| format!(" @{one}")).collect();
    format!("{} {}{attributes}", list.file, list.code)
}

fn domain(text: &str) -> (String, String) {
    let rule = good(&file(&format!(r#""domain":["x",{text:?}]"#)))
        .routing
        .rules
        .remove(0);
    match &rule.domains.0[1].value {
        DomainMatch::List(list) => (words(list), list.place.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_of_names_are_named_in_three_ways() {
    for (text, wanted) in [
        ("geosite:cn", "geosite.dat CN"),
        ("GeoSite:Category-Ads-All", "geosite.dat CATEGORY-ADS-ALL"),
        ("geosite:geolocation-!cn", "geosite.dat GEOLOCATION-!CN"),
        ("geosite:google@ads@!CN", "geosite.dat GOOGLE @ads @!cn"),
        ("ext:Own.dat:List@x", "Own.dat LIST @x"),
        ("ext-domain:a/b.dat:c", "a/b.dat C"),
        ("ext-site:/c:/d.dat:e", "/c:/d.dat E"),
    ] {
        let place = "routing.rules[0].domain[1]".to_owned();
        assert_eq!(domain(text), (wanted.to_owned(), place), "{text}");
    }
}

#[test]
fn lists_of_addresses_may_be_turned_around() {
    let ip = |text: &str| {
        let rule = good(&file(&format!(r#""ip":{text:?}"#))).routing.rules.remove(0);
        match &rule.ips.0[0].value {
            IpMatch::List(list) => words(list),
            IpMatch::NotList(list) => format!("not {}", words(list)),
            IpMatch::Private(private) => format!("private {private}"),
            IpMatch::Net(net) => net.to_string(),
            IpMatch::NotNet(net) => format!("not {net}"),
        }
    };
    for (text, wanted) in [
        ("geoip:cn", "geoip.dat CN"),
        ("!geoip:cn", "not geoip.dat CN"),
        ("geoip:!cn", "not geoip.dat CN"),
        ("!geoip:!cn", "geoip.dat CN"),
        ("!!!geoip:cn", "not geoip.dat CN"),
        ("ext:Own.dat:!x", "not Own.dat X"),
        ("!ext-ip:Own.dat:x", "not Own.dat X"),
        ("geoip:Private", "private true"),
        ("geoip:!private", "private false"),
        ("!geoip:!private", "private true"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("!10.0.0.0/8", "not 10.0.0.0/8"),
        ("!2001:db8::1", "not 2001:db8::1/128"),
    ] {
        assert_eq!(ip(text), wanted, "{text}");
    }
}

#[test]
fn what_names_no_list_is_refused_with_its_place() {
    for (key, text, said) in [
        ("domain", "geosite:", "names no list in a geo file"),
        ("domain", "ext:geosite.dat", "names no list in a geo file"),
        ("domain", "ext:geosite.dat:", "names no list in a geo file"),
        ("domain", "geosite:cn@", "has an `@` without an attribute"),
        ("domain", "geosite:cn@@ads", "has an `@` without an attribute"),
        ("ip", "geoip:", "names no list in a geo file"),
        ("ip", "geoip:!", "names no list in a geo file"),
        ("ip", "ext:cn", "names no list in a geo file"),
        ("ip", "geoip:cn@x", "networks have no attributes"),
        ("ip", "!x", "is neither an IP address nor a network"),
    ] {
        let told = bad(&file(&format!(r#"{key:?}:["{text}"]"#)));
        assert!(
            told.len() == 1 && told[0].contains(&format!("routing.rules[0].{key}[0]: ")) && told[0].contains(said),
            "{text}: {told:?}"
        );
    }
}

#[test]
fn several_inverse_conditions_are_told_of_once_a_group() {
    for (list, wanted) in [
        (r#""geoip:!cn","geoip:!us""#, 1),
        (r#""geoip:!private","!geoip:us","ext:a.dat:!x""#, 1),
        (r#""!10.0.0.0/8","!192.0.2.0/24""#, 1),
        (r#""geoip:!cn","!10.0.0.0/8","geoip:us""#, 0),
    ] {
        let told = warned(&file(&format!(r#""ip":[{list}]"#)));
        assert_eq!(told.len(), wanted, "{told:?}");
        assert!(
            told.iter()
                .all(|one| one.contains("routing.rules[0].ip: several conditions with `!`"))
        );
    }
}
