use super::*;

fn question(text: &str, family: Family) -> Question {
    Question {
        name: name(text).unwrap(),
        family,
        client: None,
    }
}

/// The answer of a server that repeats the question as it came.
fn answer(bytes: &[u8], change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let asked = Message::from_vec(bytes).unwrap();
    let mut message = Message::response(asked.metadata.id, OpCode::Query);
    message.queries = asked.queries;
    change(&mut message);
    message.to_vec().unwrap()
}

fn record(owner: &str, ttl: u32, data: &str) -> Record {
    let data = match data.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => RData::A(A(ip)),
        Ok(IpAddr::V6(ip)) => RData::AAAA(AAAA(ip)),
        Err(_) => RData::CNAME(hickory_proto::rr::rdata::CNAME(name(data).unwrap())),
    };
    Record::from_rdata(name(owner).unwrap(), ttl, data)
}

fn soa(zone: &str, ttl: u32, minimum: u32) -> Record {
    let (m, r) = (name("ns.example").unwrap(), name("root.example").unwrap());
    let soa = hickory_proto::rr::rdata::SOA::new(m, r, 1, 2, 3, 4, minimum);
    Record::from_rdata(name(zone).unwrap(), ttl, RData::SOA(soa))
}

const FORM: Form = Form {
    id: 0x1234,
    case: 0b1011,
    plain: false,
    padded: false,
};

#[test]
fn a_question_is_what_servers_read() {
    let mut asked = question("abcd.example", Family::V6);
    asked.client = Some("192.0.2.77".parse().unwrap());
    let bytes = asked.encode(FORM).unwrap();
    let message = Message::from_vec(&bytes).unwrap();
    assert_eq!(
        (message.metadata.id, message.metadata.recursion_desired),
        (0x1234, true)
    );
    assert_eq!(message.queries[0].name().to_ascii(), "ABcD.example.");
    assert_eq!(message.queries[0].query_type(), RecordType::AAAA);
    let edns = message.edns.unwrap();
    assert_eq!(edns.max_payload(), 1350);
    // Only the network of the client is told.
    let told = bytes.windows(7).any(|part| part == [0, 1, 24, 0, 192, 0, 2]);
    assert!(told && !bytes.windows(4).any(|part| part == [192, 0, 2, 77]));
    asked.client = Some("2001:db8:1:2:3:4:5:6".parse().unwrap());
    let bytes = asked.encode(FORM).unwrap();
    assert!(
        bytes.windows(6).any(|part| part == [0, 2, 96, 0, 0x20, 1]),
        "{bytes:x?}"
    );
    // Without the extensions nothing stands behind the question.
    let plain = asked.encode(Form { plain: true, ..FORM }).unwrap();
    assert_eq!(plain.len(), 12 + 14 + 4);
    for text in [
        "a.example",
        "a-name-that-is-longer.example",
        &format!("{}.example", "x".repeat(60)),
    ] {
        let padded = question(text, Family::V4)
            .encode(Form { padded: true, ..FORM })
            .unwrap();
        assert_eq!(padded.len(), 128, "{text}");
    }
}

#[test]
fn only_the_answer_to_the_question_counts() {
    let asked = question("a.example", Family::V4);
    let bytes = asked.encode(FORM).unwrap();
    let good = answer(&bytes, |m| {
        m.add_answer(record("a.example", 60, "192.0.2.1"));
    });
    let found = Answer {
        ips: vec!["192.0.2.1".parse().unwrap()],
        ttl: Some(60),
        code: 0,
    };
    assert_eq!(asked.read(FORM, &good), Reply::Answer(found));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        asked.read(FORM, &bytes)
    };
    assert_eq!(with(1, 0x35), Reply::Foreign, "another id");
    assert_eq!(with(2, good[2] & 0x7f), Reply::Foreign, "a question");
    assert_eq!(with(2, good[2] | 0x08), Reply::Foreign, "another operation");
    assert_eq!(with(5, 0), Reply::Foreign, "no question in it");
    assert_eq!(with(13, b'b'), Reply::Foreign, "another name");
    assert_eq!(with(13, b'a'), Reply::OtherCase, "another case");
    assert_eq!(with(24, 28), Reply::Foreign, "another type");
    assert_eq!(with(26, 3), Reply::Foreign, "another class");
    assert_eq!(with(2, good[2] | 2), Reply::Truncated);
    assert_eq!(with(3, 2), Reply::Refused(2));
    assert_eq!(with(3, 1), Reply::TooNew);
    assert_eq!(
        asked.read(Form { plain: true, ..FORM }, &{
            let mut b = good.clone();
            b[3] = 1;
            b
        }),
        Reply::Refused(1)
    );
    for n in 0..good.len() {
        // Header, name, type and class.
        let cut = if n < 27 { Reply::Foreign } else { Reply::Truncated };
        assert_eq!(asked.read(FORM, &good[..n]), cut, "cut after {n}");
    }
    // A server that loses the case, which is known.
    let asked_so = Form { case: 0, ..FORM };
    let mut upper = good.clone();
    upper[13..14].make_ascii_uppercase();
    assert!(matches!(asked.read(asked_so, &upper), Reply::Answer(_)));
}

#[test]
fn what_is_said_of_other_names_does_not_count() {
    let asked = question("a.example", Family::V4);
    let bytes = asked.encode(FORM).unwrap();
    let read = |records: &[(&str, u32, &str)], extra: &[Record]| {
        let bytes = answer(&bytes, |message| {
            for (owner, ttl, data) in records {
                message.add_answer(record(owner, *ttl, data));
            }
            message.add_authorities(extra.iter().cloned());
            message.add_additional(record("a.example", 9, "203.0.113.9"));
        });
        match asked.read(FORM, &bytes) {
            Reply::Answer(answer) => {
                let ips: Vec<String> = answer.ips.iter().map(ToString::to_string).collect();
                (ips.join(" "), answer.ttl)
            }
            other => panic!("{other:?}"),
        }
    };
    let nothing = || (String::new(), None);
    assert_eq!(read(&[("b.example", 60, "192.0.2.1")], &[]), nothing());
    assert_eq!(
        read(&[("a.example", 60, "2001:db8::1")], &[]),
        nothing(),
        "another family"
    );
    // Names that stand for it, in whatever order; the shortest time counts.
    let chain = [
        ("c.other", 90, "192.0.2.3"),
        ("b.other", 30, "c.other"),
        ("a.example", 60, "b.other"),
        ("d.other", 1, "192.0.2.4"),
        ("c.other", 80, "192.0.2.5"),
        ("c.other", 80, "192.0.2.5"),
    ];
    assert_eq!(read(&chain, &[]), ("192.0.2.3 192.0.2.5".into(), Some(30)));
    // In a circle.
    assert_eq!(
        read(&[("a.example", 60, "b.example"), ("b.example", 60, "a.example")], &[]),
        nothing()
    );
    assert_eq!(read(&[("a.example", 60, "a.example")], &[]), nothing());
    // How long there is nothing: said by the zone of the name and by no other.
    assert_eq!(read(&[], &[soa("example", 600, 300)]), (String::new(), Some(300)));
    assert_eq!(read(&[], &[soa("example", 200, 300)]), (String::new(), Some(200)));
    assert_eq!(read(&[], &[soa("other", 600, 300)]), nothing());
    assert_eq!(
        read(&[("a.example", 20, "b.other")], &[soa("other", 600, 300)]),
        (String::new(), Some(20))
    );
    let many: Vec<(String, String)> = (0..200).map(|n| ("a.example".into(), format!("192.0.2.{n}"))).collect();
    let many: Vec<(&str, u32, &str)> = many
        .iter()
        .map(|(a, b): &(String, String)| (a.as_str(), 5, b.as_str()))
        .collect();
    assert_eq!(read(&many, &[]).0.split(' ').count(), MAX_ADDRESSES);
}

#[test]
fn clients_get_no_more_than_they_take() {
    let ips: Vec<IpAddr> = (0..64).map(|n| IpAddr::from([192, 0, 2, n])).collect();
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii("A.example.").unwrap(), RecordType::A));
    for (payload, whole) in [
        (None, false),
        (Some(100), false),
        (Some(1232), true),
        (Some(65_535), true),
    ] {
        message.edns = payload.map(|payload| {
            let mut edns = Edns::new();
            edns.set_max_payload(payload);
            edns
        });
        let asked = Asked::read(&message.to_vec().unwrap()).unwrap();
        assert_eq!(
            (asked.name().as_str(), asked.kind(), asked.family()),
            ("a.example", 1, Some(Family::V4))
        );
        assert!(asked.room() <= 1232);
        let bytes = asked.answer(0, &ips, 1, asked.room());
        assert!(bytes.len() <= asked.room(), "{payload:?}: {}", bytes.len());
        let answer = Message::from_vec(&bytes).unwrap();
        assert_eq!(
            (answer.metadata.truncation, answer.answers.len() == 64),
            (!whole, whole),
            "{payload:?}"
        );
        assert_eq!(
            (answer.metadata.id, answer.queries[0].name().to_ascii().as_str()),
            (7, "A.example.")
        );
        assert_eq!(
            Message::from_vec(&asked.answer(0, &ips, 1, 65_535))
                .unwrap()
                .answers
                .len(),
            64
        );
    }
    let three = Asked::read(&message.to_vec().unwrap()).unwrap().answer(3, &[], 1, 512);
    assert_eq!(
        Message::from_vec(&three).unwrap().metadata.response_code,
        ResponseCode::NXDomain
    );
}

#[test]
fn what_is_no_question_gets_little_or_nothing() {
    let question = question("a.example", Family::V4).encode(FORM).unwrap();
    assert!(Asked::read(&question).is_ok());
    let with = |at: usize, byte: u8| {
        let mut bytes = question.clone();
        bytes[at] = byte;
        match Asked::read(&bytes) {
            Err(NoQuestion::Answer(answer)) => Some((answer.len(), answer[3] & 15)),
            Err(NoQuestion::Silence) => None,
            Ok(_) => panic!("byte {at}"),
        }
    };
    assert_eq!(with(2, 0x81), None, "an answer");
    assert_eq!(with(5, 0), Some((12, 1)), "no question");
    assert_eq!(with(5, 2), Some((12, 1)), "two");
    assert_eq!(with(2, 0x11), Some((12, 4)), "another operation");
    for n in 0..question.len() {
        match Asked::read(&question[..n]) {
            Err(NoQuestion::Silence) => assert!(n < 12),
            Err(NoQuestion::Answer(answer)) => assert!(n >= 12 && answer.len() <= n),
            Ok(_) => panic!("{n}"),
        }
    }
}

#[test]
fn an_answer_that_is_cut_anywhere_is_asked_for_anew() {
    let question = Question {
        name: name("a.example").unwrap(),
        family: Family::V4,
        client: None,
    };
    let form = Form {
        id: 7,
        ..Form::default()
    };
    let asked = question.encode(Form { plain: true, ..form }).unwrap();
    let mut message = Message::from_vec(&asked).unwrap();
    message.metadata.message_type = MessageType::Response;
    message.metadata.truncation = true;
    for n in 0..3 {
        let ip = RData::A(A([192, 0, 2, n].into()));
        message.add_answer(Record::from_rdata(question.name.clone(), 60, ip));
    }
    let whole = message.to_vec().unwrap();
    for len in asked.len()..=whole.len() {
        assert_eq!(question.read(form, &whole[..len]), Reply::Truncated, "{len} bytes");
    }
    for len in 0..asked.len() {
        assert_eq!(question.read(form, &whole[..len]), Reply::Foreign, "{len} bytes");
    }
    let other = Form { id: 8, ..form };
    assert_eq!(question.read(other, &whole[..whole.len() - 1]), Reply::Foreign);
}

#[test]
fn questions_of_clients_are_short_and_hold_one_question() {
    let question = Question {
        name: name("a.example").unwrap(),
        family: Family::V4,
        client: None,
    };
    let bytes = question.encode(Form::default()).unwrap();
    assert!(Asked::read(&bytes).is_ok());
    let refused = |bytes: &[u8]| match Asked::read(bytes) {
        Err(NoQuestion::Answer(answer)) => answer[3] & 15 == 1,
        _ => false,
    };
    for (at, value) in [(4, 0xff), (5, 0), (5, 2), (6, 1), (7, 1)] {
        let mut other = bytes.clone();
        other[at] = value;
        assert!(refused(&other), "{at}");
    }
    let mut message = Message::from_vec(&bytes).unwrap();
    let record = |len: usize| {
        Record::from_rdata(
            Name::root(),
            0,
            RData::NULL(hickory_proto::rr::rdata::NULL::with(vec![0; len])),
        )
    };
    message.add_additional(record(100));
    assert!(
        Asked::read(&message.to_vec().unwrap())
            .unwrap()
            .message
            .additionals
            .is_empty()
    );
    message.add_additional(record(MAX_QUESTION));
    assert!(refused(&message.to_vec().unwrap()), "too long");
}
