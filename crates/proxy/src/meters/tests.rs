use super::*;

#[test]
fn what_is_open_is_counted_until_it_ends() {
    let meters = Meters::default();
    assert!(meters.inbound("in").is_none() && meters.outbound("out").is_none());
    meters.switch(true);
    let meter = meters.inbound("in").unwrap();
    let two = [meter.enter(), meters.inbound("in").unwrap().enter()];
    assert_eq!((meter.now_open(), meter.accepted.get()), (2, 2));
    drop(two);
    assert_eq!((meter.now_open(), meter.accepted.get()), (0, 2));
    let outbound = meters.outbound("out").unwrap();
    let open = outbound.reached(Duration::from_millis(3));
    assert_eq!(outbound.now_open(), 1);
    drop(open);
    assert_eq!(outbound.now_open(), 0);
    assert_eq!(meters.outbounds().len(), 1);
}

#[test]
fn a_tag_that_is_gone_is_forgotten_with_what_was_open_there() {
    let meters = Meters::default();
    meters.switch(true);
    let (inbound, outbound) = (meters.inbound("in").unwrap(), meters.outbound("out").unwrap());
    let open = outbound.reached(Duration::ZERO);
    inbound.accepted.add();
    assert_eq!(meters.inbounds()[0].1.accepted.get(), 1);
    drop((inbound, outbound));
    assert_eq!((meters.inbounds().len(), meters.outbounds().len()), (0, 1));
    drop(open);
    assert_eq!(meters.outbounds().len(), 0);
}

#[test]
fn durations_fall_into_the_bucket_whose_bound_they_do_not_exceed() {
    let histogram = Histogram::default();
    for millis in [0, 1, 2, 10, 11, 9_999, 10_000, 10_001, 70_000] {
        histogram.add(Duration::from_millis(millis));
    }
    assert_eq!(histogram.cumulated(), [2, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 7, 9]);
    assert_eq!(histogram.sum(), Duration::from_millis(100_024));
}

#[test]
fn every_refusal_is_counted_under_one_of_few_reasons() {
    let meter = InMeter::default();
    let broken = |kind: std::io::ErrorKind| Error::Io(kind.into());
    let all = [
        (Error::Closed, Reason::Left),
        (broken(std::io::ErrorKind::UnexpectedEof), Reason::Left),
        (broken(std::io::ErrorKind::ConnectionReset), Reason::Broken),
        (Error::TimedOut("handshake"), Reason::Late),
        (Error::Unauthentic("no such user"), Reason::Unauthentic),
        (Error::protocol("TLS", "record"), Reason::Tls),
        (Error::protocol("VLESS", "version"), Reason::Protocol),
        (
            Error::Forbidden {
                target: "a stranger's text".to_owned(),
                rule: "guard",
            },
            Reason::Forbidden,
        ),
    ];
    for (error, reason) in &all {
        let before = meter.refused(*reason);
        meter.refuse(error);
        assert_eq!(meter.refused(*reason), before + 1, "{error}");
    }
    let sum: u64 = Reason::ALL.iter().map(|reason| meter.refused(*reason)).sum();
    assert_eq!(sum, all.len() as u64);
    let outbound = OutMeter::default();
    outbound.missed(&Error::connect(
        ([192, 0, 2, 1], 1).into(),
        std::io::ErrorKind::ConnectionRefused.into(),
    ));
    assert_eq!(outbound.failed(Unreached::Refused), 1);
}

#[test]
fn a_refused_reload_leaves_the_time_of_the_last_good_one() {
    let meters = Meters::default();
    meters.reloaded(true, 7);
    meters.reloaded(false, 9);
    let wanted = Reloads {
        taken: 1,
        refused: 1,
        last: 7,
    };
    assert_eq!(meters.reloads(), wanted);
}
