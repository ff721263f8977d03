//! `sealway route test`.

use std::fs;
use std::path::Path;

use sealway_route::testing::{names, networks};
use serde_json::{Value, json};

use crate::common::{Ran, private_folder, ran, sealway, words};

const CONFIG: &str = r#"{
  // A comment.
  "dns": {"hosts": {"full:resolved.example": "10.1.2.3"}, "servers": ["127.0.0.1"]},
  "inbounds": [{"tag": "in", "listen": "127.0.0.1", "port": 1080, "protocol": "socks"}],
  "outbounds": [{"protocol": "freedom"}, {"tag": "block", "protocol": "blackhole"},
    {"tag": "p-b", "protocol": "freedom"}, {"tag": "p-a", "protocol": "freedom"}],
  "routing": {
    "domainStrategy": "IPIfNonMatch",
    "balancers": [{"tag": "many", "selector": ["p-"]}],
    "rules": [
      {"ruleTag": "ads", "domain": ["geosite:ads", "full:ads.example"], "outboundTag": "block"},
      {"ip": ["geoip:cn", "10.0.0.0/8"], "port": "1-1000", "balancerTag": "many"},
      {"network": "udp", "source": ["192.0.2.0/24"], "user": ["a@b"], "inboundTag": ["in"], "protocol": ["quic"],
        "outboundTag": "block"}
    ]
  }
}
"#;

fn folder() -> tempfile::TempDir {
    let folder = private_folder();
    fs::write(folder.path().join("geosite.dat"), names("ADS", &["tracker.example"])).unwrap();
    fs::write(folder.path().join("geoip.dat"), networks("CN", &["203.0.113.0/24"])).unwrap();
    fs::write(folder.path().join("c.json"), CONFIG).unwrap();
    folder
}

fn test(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = sealway(&[&["route", "test", "-c", "c.json"], arguments].concat());
    ran(command.env("XRAY_LOCATION_ASSET", folder).current_dir(folder))
}

#[test]
fn the_rule_that_decides_is_said_with_its_place() {
    let folder = folder();
    for (line, wanted) in [
        (
            "www.Tracker.example.",
            "tcp:www.Tracker.example.:443\n  rule       1 (\"ads\", c.json:11:7)\n  \
             domain     www.tracker.example, by \"geosite:ads\" (c.json:11:37)\n  outbound   block\n",
        ),
        (
            "ads.example:80",
            "tcp:ads.example:80\n  rule       1 (\"ads\", c.json:11:7)\n  \
             domain     ads.example, by \"full:ads.example\" (c.json:11:52)\n  outbound   block\n",
        ),
        (
            "203.0.113.9",
            "tcp:203.0.113.9:443\n  rule       2 (c.json:12:7)\n  port       443\n  \
             ip         203.0.113.9, by \"geoip:cn\" (c.json:12:15)\n  balancer   many\n  one of     p-a, p-b\n  \
             or else    outbounds[0] (the first)\n",
        ),
        (
            "resolved.example:80",
            "tcp:resolved.example:80\n  rule       2 (c.json:12:7)\n  port       80\n  \
             ip         10.1.2.3, by \"10.0.0.0/8\" (c.json:12:27)\n  resolved   10.1.2.3 (IPIfNonMatch)\n  \
             balancer   many\n  one of     p-a, p-b\n  or else    outbounds[0] (the first)\n",
        ),
        (
            "2001:db8::1",
            "tcp:[2001:db8::1]:443\n  rule       none of 3 fits\n  outbound   outbounds[0] (the first)\n",
        ),
        (
            "[2001:db8::1]:2000 --network udp --source 192.0.2.7:5000 --user a@b --inbound in --protocol quic",
            "udp:[2001:db8::1]:2000\n  rule       3 (c.json:13:7)\n  network    udp\n  inboundTag in\n  protocol   quic\n  \
             user       a@b\n  source     192.0.2.7, by \"192.0.2.0/24\" (c.json:13:37)\n  outbound   block\n",
        ),
    ] {
        assert_eq!(test(folder.path(), &words(line)).answer(), wanted, "{line}");
    }
}

/// Clients export rules of their API without the API.
#[test]
fn an_outbound_that_is_not_there_has_its_tag() {
    let folder = folder();
    let rule = r#"{"inboundTag": ["api"], "outboundTag": "gone"},"#;
    let text = CONFIG.replace(r#""rules": ["#, &format!(r#""rules": [{rule}"#));
    fs::write(folder.path().join("c.json"), text).unwrap();
    let ran = test(folder.path(), &words("192.0.2.1 --inbound api"));
    ran.says(0, &["no outbound has the tag \"gone\""]);
    assert!(ran.stdout.ends_with("  outbound   gone\n"), "{ran:?}");
}

#[test]
fn answers_are_json_if_that_is_asked_for() {
    let folder = folder();
    let told = test(folder.path(), &words("203.0.113.9 tracker.example 192.0.2.1 --json")).answer();
    let told: Value = serde_json::from_str(&told).unwrap();
    let place = |line: u32, column: u32| json!({"file": "c.json", "line": line, "column": column});
    let wanted = json!([
        {
            "target": "tcp:203.0.113.9:443",
            "rule": {"number": 2, "ruleTag": null, "place": place(12, 7), "conditions": [
                {"key": "port", "value": "443", "entry": null},
                {"key": "ip", "value": "203.0.113.9", "entry": {"text": "geoip:cn", "place": place(12, 15)}},
            ]},
            "passedOver": [{"number": 1, "fails": ["domain"]}],
            "resolved": null, "outbound": null,
            "balancer": {"tag": "many", "candidates": ["p-a", "p-b"], "fallback": "outbounds[0]"},
        },
        {
            "target": "tcp:tracker.example:443",
            "rule": {"number": 1, "ruleTag": "ads", "place": place(11, 7), "conditions": [
                {"key": "domain", "value": "tracker.example", "entry": {"text": "geosite:ads", "place": place(11, 37)}},
            ]},
            "passedOver": [], "resolved": null, "outbound": "block", "balancer": null,
        },
        {
            "target": "tcp:192.0.2.1:443", "rule": null,
            "passedOver": [
                {"number": 1, "fails": ["domain"]}, {"number": 2, "fails": ["ip"]},
                {"number": 3, "fails": ["network", "inboundTag", "protocol", "user", "source"]},
            ],
            "resolved": null, "outbound": "outbounds[0]", "balancer": null,
        },
    ]);
    assert_eq!(told, wanted);
}

#[test]
fn what_cannot_be_asked_is_said_with_what_to_do() {
    let folder = folder();
    for (arguments, said) in [
        (
            &["https://example.org/"][..],
            [
                "\"https://example.org/\" is a URL or a path",
                "hint: write a domain name",
            ],
        ),
        (&["example.org:0"], ["has no port from 1 to 65535", "hint: write"]),
        (&["a b"], ["\"a b\" is neither a name nor an address", "hint: write"]),
        (&["[::g]:1"], ["is neither a name nor an address", "hint: write"]),
        (&["a:b:1"], ["is neither a name nor an address", "hint: write"]),
        (
            &["x", "--source", "here"],
            ["--source \"here\" is no address", "hint: write an IP address"],
        ),
        (
            &["x", "--inbound", "inn"],
            ["no inbound has the tag \"inn\"", "hint: did you mean \"in\"?"],
        ),
        (&["x", "-c", "gone.json"], ["gone.json: ", "hint: check the path"]),
        (&[], ["<TARGET>", "Usage"]),
    ] {
        test(folder.path(), arguments).refuses(2, &said);
    }
    let broken = CONFIG.replace("geosite:ads", "geosite:adds");
    fs::write(folder.path().join("c.json"), broken).unwrap();
    let said = ["c.json:11:37: error: ", "did you mean \"ads\"?", "no rule was asked"];
    test(folder.path(), &["x"]).says(2, &said);
}
