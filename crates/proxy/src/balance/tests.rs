use super::*;

/// A balancer of `p0`, `p1`, … with this strategy and what follows it.
fn balancer(count: usize, rest: &str) -> (settings::Balancer, Vec<String>) {
    let tags: Vec<String> = (0..count).map(|at| format!("p{at}")).collect();
    let outbounds = tags
        .iter()
        .map(|tag| format!(r#"{{"tag": "{tag}", "protocol": "freedom"}},"#));
    let text = format!(
        r#"{{"inbounds": [], "outbounds": [{}{{"tag": "other", "protocol": "freedom"}}],
            "observatory": {{"subjectSelector": ["p"]}},
            "routing": {{"balancers": [{{"tag": "b", "selector": ["p"], {rest}}}]}}}}"#,
        outbounds.collect::<String>()
    );
    let mut settings = settings::Settings::of_text(&text);
    let tags = settings.outbounds.into_iter().map(|one| one.tag).collect();
    (settings.balancers.remove(0), tags)
}

fn made(count: usize, rest: &str) -> Balancer {
    let (settings, tags) = balancer(count, rest);
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    Balancer::new("routing.balancers[0]", &settings, &tags).unwrap()
}

/// `x`: nothing is known; `-`: down; a number: up, after so many milliseconds; `a~d`: on average and with that deviation;
/// `a~d/f`: `f` of ten measurements failed.
fn readings(text: &str) -> Vec<Option<Reading>> {
    let ms = |text: &str| Duration::from_millis(text.parse().unwrap());
    let read = |text: &str| match text {
        "x" => None,
        "-" => Some(Reading::default()),
        _ => {
            let (text, failed) = text.split_once('/').unwrap_or((text, "0"));
            let (delay, deviation) = text.split_once('~').unwrap_or((text, text));
            Some(Reading {
                alive: true,
                delay: ms(delay),
                deviation: ms(deviation),
                all: 10,
                failed: failed.parse().unwrap(),
            })
        }
    };
    text.split_whitespace().map(read).collect()
}

fn picks(rest: &str, text: &str) -> Vec<usize> {
    let readings = readings(text);
    let balancer = made(readings.len(), rest);
    balancer.refresh(|at| readings.get(at).copied().flatten());
    balancer.picks().to_vec()
}

#[test]
fn without_a_fallback_all_are_tried() {
    assert_eq!(picks(r#""strategy": {"type": "random"}"#, "- x 30"), [0, 1, 2]);
    assert_eq!(picks(r#""strategy": {"type": "roundRobin"}"#, "- - -"), [0, 1, 2]);
}

#[test]
fn with_a_fallback_those_that_are_down_are_left_out() {
    let rest = r#""strategy": {"type": "random"}, "fallbackTag": "other""#;
    assert_eq!(picks(rest, "- x 30"), [1, 2]);
    let balancer = made(2, rest);
    balancer.refresh(|_| Some(Reading::default()));
    assert_eq!((balancer.picks().len(), balancer.pick()), (0, Some(2)));
}

#[test]
fn the_least_ping_is_taken() {
    let rest = r#""strategy": {"type": "leastPing"}"#;
    for (text, wanted) in [
        ("50 20 30", &[1][..]),
        ("- 20 10", &[2]),
        ("20 20", &[0]),
        ("x x", &[]),
        ("- -", &[]),
        ("x 900", &[1]),
    ] {
        assert_eq!(picks(rest, text), wanted, "{text}");
    }
    // Nothing is known, and nothing stands in: the first outbound of all.
    assert_eq!(made(2, rest).pick(), None);
}

#[test]
fn the_least_load_is_taken() {
    for (settings, text, wanted) in [
        // One, if nothing else is said, by the deviation and not the time.
        ("", "50~9 20~10 90~8", &[2][..]),
        // Of equal deviations the shorter time, then the fewer failures.
        ("", "50~9 20~9 90~9", &[1]),
        ("", "50~9/2 50~9/1", &[1]),
        // One measurement stands for the deviation too.
        ("", "50 20 90", &[1]),
        (r#""expected": 2"#, "50~9 20~10 90~8", &[2, 0]),
        // More than there are: all of them, whatever the baselines.
        (r#""expected": 4, "baselines": ["1ms"]"#, "50~9 - 90~8 x", &[2, 0]),
        (r#""maxRTT": "60ms""#, "50~9 20~10 60~8", &[0]),
        (r#""maxRTT": "10ms""#, "50~9 20~10 60~8", &[]),
        (r#""tolerance": 0.1"#, "50~9/2 20~10/1 60~8/3", &[1]),
        (r#""tolerance": 0"#, "50~9/1 20~10 60~8/1", &[1]),
        // All below the first baseline under which there is one.
        (
            r#""baselines": ["5ms", "10ms", "50ms"]"#,
            "50~9 20~10 60~8 70~40",
            &[2, 0],
        ),
        // The next baseline, for there are too few below the first.
        (
            r#""expected": 3, "baselines": ["9ms", "20ms", "50ms"]"#,
            "50~9 20~10 60~8 70~40",
            &[2, 0, 1],
        ),
        // None below any: as many as expected, or none where nothing is.
        (r#""expected": 2, "baselines": ["1ms"]"#, "50~9 20~10 60~8", &[2, 0]),
        (r#""baselines": ["1ms"]"#, "50~9 20~10 60~8", &[]),
        // 9 × √4 = 18 and 10 × √1 = 10.
        (r#""costs": [{"match": "p0", "value": 4}]"#, "50~9 20~10", &[1]),
        (r#""costs": [{"match": "p0", "value": 1.1}]"#, "50~9 20~10", &[0]),
        // The number in the tag is the cost: 1 for p1, 4 for p4.
        (
            r#""costs": [{"regexp": true, "match": "p[0-9]$"}]"#,
            "- 50~18 - - 50~10",
            &[1],
        ),
        (
            r#""costs": [{"regexp": true, "match": "p[0-9]$"}]"#,
            "- 50~18 - - 50~8",
            &[4],
        ),
        // The first that fits counts.
        (
            r#""costs": [{"match": "p1", "value": 9}, {"match": "p", "value": 100}]"#,
            "50~9 20~10",
            &[1],
        ),
    ] {
        let rest = format!(r#""strategy": {{"type": "leastLoad", "settings": {{{settings}}}}}"#);
        assert_eq!(picks(&rest, text), wanted, "{settings} {text}");
    }
}

#[test]
fn costs_are_found_in_tags() {
    for (text, wanted) in [
        ("a2b3", 2.0),
        ("x", 1.0),
        ("v1.5x", 1.5),
        ("7.", 7.0),
        ("", 1.0),
        (".5", 5.0),
    ] {
        assert_eq!(number(text), wanted, "{text}");
    }
}

#[test]
fn connections_take_turns_or_chances() {
    let turns = made(3, r#""strategy": {"type": "roundRobin"}"#);
    let taken: Vec<usize> = (0..7).filter_map(|_| turns.pick()).collect();
    assert_eq!(taken, [0, 1, 2, 0, 1, 2, 0]);
    let chances = made(3, r#""strategy": {"type": "random"}"#);
    let mut counts = [0_u32; 3];
    for _ in 0..3000 {
        counts[chances.pick().unwrap()] += 1;
    }
    // A thousand each; ten standard deviations are 258.
    assert!(counts.iter().all(|count| count.abs_diff(1000) < 258), "{counts:?}");
}

#[test]
fn candidates_stand_in_the_order_of_their_tags() {
    let (settings, _) = balancer(1, r#""fallbackTag": "other""#);
    let balancer = Balancer::new("b", &settings, &["pb", "other", "", "pa", "q"]).unwrap();
    let tags: Vec<(usize, &str)> = balancer
        .candidates()
        .iter()
        .map(|one| (one.outbound, one.tag.as_str()))
        .collect();
    assert_eq!(tags, [(3, "pa"), (0, "pb")]);
    assert_eq!(balancer.fallback(), Some(1));
    let error = Balancer::new("b", &settings, &["pa"]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "b.fallbackTag: there is no outbound with the tag \"other\""
    );
}
