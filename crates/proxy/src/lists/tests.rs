use super::*;

#[test]
fn one_condition_of_a_list_suffices() {
    let net = |text: &str| IpMatch::Net(text.parse().unwrap());
    let holds = |conditions: &[IpMatch], ip: &str| {
        let set = Lists::default().addresses("x", conditions).unwrap();
        set.matches(ip.parse().unwrap())
    };
    for (conditions, ip, wanted) in [
        (&[net("192.0.2.0/24"), net("1.1.1.1/32")][..], "192.0.2.7", true),
        (&[net("192.0.2.0/24"), net("1.1.1.1/32")], "1.1.1.2", false),
        (&[net("1.1.1.1/32"), IpMatch::Private(true)], "10.0.0.1", true),
        (&[net("1.1.1.1/32"), IpMatch::Private(true)], "1.1.1.2", false),
        (&[net("10.0.0.1/32"), IpMatch::Private(false)], "10.0.0.1", true),
        (&[net("10.0.0.1/32"), IpMatch::Private(false)], "10.0.0.2", false),
        (&[IpMatch::Private(false)], "64:ff9b::1.1.1.1", true),
        (&[IpMatch::Private(false)], "64:ff9b::10.1.1.1", false),
        (&[IpMatch::Private(true), IpMatch::Private(false)], "10.1.1.1", true),
        (&[], "10.1.1.1", false),
    ] {
        assert_eq!(holds(conditions, ip), wanted, "{conditions:?} {ip}");
    }
}
