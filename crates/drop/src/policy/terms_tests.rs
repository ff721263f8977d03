use super::*;

const ENDS: [End; 6] = [
    End::Sender,
    End::Receiver,
    End::Sharer,
    End::Mounter,
    End::Pairer,
    End::Joiner,
];

/// An end at a terminal that was told nothing but where the other one is, elsewhere.
fn wishes(end: End) -> Wishes {
    Wishes {
        end,
        route: Some(Route::Dial),
        usual_relay: false,
        lan: false,
        local: false,
        code: false,
        given: false,
        keys: false,
        anyone: false,
        unchecked: false,
        person: true,
    }
}

#[test]
fn ends_come_together_as_was_said_else_the_first_one_waits() {
    for end in ENDS {
        for usual_relay in [false, true] {
            for route in [Route::Dial, Route::Wait, Route::Relay] {
                let said = Wishes {
                    route: Some(route),
                    usual_relay,
                    ..wishes(end)
                };
                let terms = said.terms().unwrap();
                assert_eq!(terms.route, route, "{end:?}: what was said counts");
                assert_eq!(terms.waits_first, end.is_first() && route == Route::Wait);
            }
        }
        let unsaid = Wishes {
            route: None,
            ..wishes(end)
        };
        match unsaid.terms() {
            Ok(terms) => assert_eq!((end.is_first(), terms.route), (true, Route::Wait)),
            Err(refused) => assert_eq!((end.is_first(), refused), (false, Refused::Nowhere(end))),
        }
        let usual = Wishes {
            usual_relay: true,
            ..unsaid
        };
        assert_eq!(usual.terms().unwrap().route, Route::Relay);
    }
}

#[test]
fn ends_on_one_network_look_for_each_other_where_nothing_is_said() {
    for end in ENDS {
        let unsaid = Wishes {
            route: None,
            lan: true,
            ..wishes(end)
        };
        let keys = Wishes { keys: true, ..unsaid };
        for found in [unsaid, keys] {
            let terms = found.terms().unwrap();
            let route = if end.is_first() { Route::Wait } else { Route::Lan };
            assert_eq!((terms.route, terms.announces), (route, end.is_first()), "{found:?}");
        }
        // What was said counts, and a relay that is always used.
        for (route, usual_relay) in [(Some(Route::Wait), false), (Some(Route::Dial), false), (None, true)] {
            let said = Wishes {
                route,
                usual_relay,
                ..unsaid
            };
            let terms = said.terms().unwrap();
            assert!(terms.route != Route::Lan && !terms.announces, "{said:?}");
        }
        // Nobody can look for anyone, or is found by anyone; and who was told not to is not.
        let anyone = Wishes { anyone: true, ..unsaid };
        let alone = Wishes { lan: false, ..unsaid };
        for hidden in [anyone, alone] {
            match hidden.terms() {
                Ok(terms) => assert!(
                    end.is_first() && !terms.announces && terms.route == Route::Wait,
                    "{hidden:?}"
                ),
                Err(refused) => assert_eq!((end.is_first(), refused), (false, Refused::Nowhere(end))),
            }
        }
    }
    assert_eq!(unsealed(Some(Route::Lan), true), Err(Refused::PlainNowhere));
}

#[test]
fn what_lets_in_follows_from_options_place_and_person() {
    use Proof::{Anyone, Code, Keys};
    use Source::{Given, Made, Read, Typed};
    /// Where the address is and who is there.
    const ELSEWHERE: (bool, bool) = (false, true);
    const UNATTENDED: (bool, bool) = (false, false);
    const LOCAL: (bool, bool) = (true, false);
    // Where, and what was said: of the first end, of the second, and the check.
    for ((local, person), said, first, second, check) in [
        (ELSEWHERE, "", Code(Made), Code(Typed), Check::Proved),
        (UNATTENDED, "", Code(Made), Code(Read), Check::Proved),
        (ELSEWHERE, "given", Code(Given), Code(Given), Check::Proved),
        (ELSEWHERE, "code", Code(Made), Code(Typed), Check::Proved),
        (ELSEWHERE, "keys", Keys, Keys, Check::Proved),
        (UNATTENDED, "given keys", Keys, Keys, Check::Proved),
        (ELSEWHERE, "anyone", Anyone, Anyone, Check::Asked),
        (ELSEWHERE, "given anyone", Anyone, Anyone, Check::Asked),
        (ELSEWHERE, "anyone unchecked", Anyone, Anyone, Check::Shown),
        (UNATTENDED, "anyone unchecked", Anyone, Anyone, Check::Shown),
        // On this machine itself nothing is needed, and a code or keys count if they were given.
        (LOCAL, "", Anyone, Anyone, Check::Local),
        (LOCAL, "anyone", Anyone, Anyone, Check::Local),
        (LOCAL, "code", Code(Made), Code(Read), Check::Proved),
        (LOCAL, "given", Code(Given), Code(Given), Check::Proved),
        (LOCAL, "keys", Keys, Keys, Check::Proved),
    ] {
        let [given, code, keys, anyone, unchecked] =
            ["given", "code", "keys", "anyone", "unchecked"].map(|word| said.contains(word));
        for end in ENDS {
            for route in [Route::Dial, Route::Wait] {
                let wishes = Wishes {
                    route: Some(route),
                    local,
                    person,
                    given,
                    code,
                    keys,
                    anyone,
                    unchecked,
                    ..wishes(end)
                };
                let terms = wishes.terms().unwrap();
                let proof = if end.is_first() { first } else { second };
                assert_eq!((terms.proof, terms.check), (proof, check), "{wishes:?}");
                assert_eq!(terms.says_code, local && terms.code().is_some(), "{wishes:?}");
            }
        }
    }
}

#[test]
fn anyone_from_elsewhere_needs_somebody_to_compare() {
    for end in ENDS {
        for route in [Route::Dial, Route::Wait, Route::Relay] {
            let wishes = Wishes {
                route: Some(route),
                anyone: true,
                person: false,
                ..wishes(end)
            };
            assert_eq!(wishes.terms(), Err(Refused::NobodyCompares));
        }
    }
}

#[test]
fn a_relay_brings_ends_together_who_can_prove_who_they_are() {
    for end in ENDS {
        let relay = Wishes {
            route: Some(Route::Relay),
            ..wishes(end)
        };
        for unchecked in [false, true] {
            let without = Wishes {
                anyone: true,
                unchecked,
                ..relay
            };
            assert_eq!(without.terms(), Err(Refused::RelayNeedsProof), "{without:?}");
        }
        let keys = Wishes { keys: true, ..relay };
        let terms = keys.terms().unwrap();
        assert_eq!(
            (terms.proof, terms.shows, terms.check),
            (Proof::Keys, Shows::Never, Check::Proved)
        );
        // A relay on this machine says nothing of who comes to it.
        let here = Wishes { local: true, ..relay };
        assert!(here.terms().unwrap().code().is_some());
    }
}

#[test]
fn a_code_is_shown_by_who_makes_it_once_it_is_whole() {
    for (end, route, given, shows) in [
        (End::Sender, Route::Wait, false, Shows::AtOnce),
        (End::Sharer, Route::Dial, false, Shows::AtOnce),
        (End::Sender, Route::Wait, true, Shows::Never),
        (End::Sender, Route::Relay, false, Shows::Numbered),
        (End::Sender, Route::Relay, true, Shows::Numbered),
        (End::Receiver, Route::Wait, false, Shows::Never),
        (End::Mounter, Route::Relay, false, Shows::Never),
        (End::Receiver, Route::Dial, true, Shows::Never),
    ] {
        let wishes = Wishes {
            route: Some(route),
            given,
            ..wishes(end)
        };
        let terms = wishes.terms().unwrap();
        assert_eq!(terms.shows, shows, "{wishes:?}");
        // Whoever waits for a person to type waits longer.
        let long = shows == Shows::AtOnce;
        assert_eq!(terms.patience, if long { TYPING } else { PATIENCE }, "{wishes:?}");
    }
    for (keys, anyone) in [(true, false), (false, true)] {
        let wishes = Wishes {
            keys,
            anyone,
            ..wishes(End::Sender)
        };
        let terms = wishes.terms().unwrap();
        assert_eq!((terms.shows, terms.patience), (Shows::Never, PATIENCE));
    }
}

#[test]
fn the_other_end_is_told_where_this_one_waits() {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let (here, there) = (at("192.0.2.1:4000"), [at("198.51.100.1:1"), at("198.51.100.2:1")]);
    let terms = |route| {
        let wishes = Wishes {
            route: Some(route),
            ..wishes(End::Sender)
        };
        wishes.terms().unwrap()
    };
    assert_eq!(
        terms(Route::Wait).meet(Some(here), &[here], None),
        Meet::Here(vec![here])
    );
    assert_eq!(terms(Route::Wait).meet(None, &[], None), Meet::Here(vec![]));
    assert_eq!(terms(Route::Dial).meet(None, &there, None), Meet::There(there.to_vec()));
    for relay in [Some("relay.example:26600"), None] {
        let told = terms(Route::Relay).meet(None, &[], relay);
        assert_eq!(told, Meet::Relay(relay.map(str::to_owned)));
    }
}

#[test]
fn every_end_names_the_command_of_the_other() {
    assert_eq!(
        ENDS.map(End::other),
        ["receive", "send", "mount", "share", "pair --join", "pair"]
    );
    assert_eq!(ENDS.map(End::is_first), [true, false, true, false, true, false]);
}

#[test]
fn what_is_not_sealed_stays_on_this_machine() {
    for (route, local, expected) in [
        (None, false, Err(Refused::PlainNowhere)),
        (Some(Route::Relay), true, Err(Refused::PlainNowhere)),
        (Some(Route::Dial), false, Err(Refused::PlainElsewhere)),
        (Some(Route::Wait), false, Err(Refused::PlainElsewhere)),
        (Some(Route::Dial), true, Ok(Route::Dial)),
        (Some(Route::Wait), true, Ok(Route::Wait)),
    ] {
        assert_eq!(unsealed(route, local), expected, "{route:?} {local}");
    }
}
