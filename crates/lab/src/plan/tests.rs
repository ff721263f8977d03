#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// `cases` cases of `subjects` cells each.
fn layout(cases: usize, subjects: usize) -> Layout {
    Layout::by_case((0..cases * subjects).map(|cell| cell / subjects.max(1)))
}

fn plain(profile: Profile, layout: Layout) -> Plan {
    Plan::new(Duration::ZERO, profile, layout, Overhead::default(), None).unwrap()
}

#[test]
fn profiles_parse_and_print() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse(), Ok(profile));
    }
    let error = "fast".parse::<Profile>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown profile \"fast\": use quick, standard or full"
    );
    assert!("Quick".parse::<Profile>().is_err());
}

#[test]
fn rounds_are_rounded_up_to_whole_squares() {
    let rounds = |profile, subjects| plain(profile, layout(1, subjects)).rounds;
    let table = [
        (1, [3, 9, 15]),
        (2, [4, 10, 16]),
        (3, [6, 12, 18]),
        (4, [4, 12, 16]),
        (5, [3, 9, 15]),
        (9, [3, 9, 15]),
    ];
    for (subjects, expected) in table {
        assert_eq!(
            Profile::ALL.map(|profile| rounds(profile, subjects)),
            expected,
            "{subjects} subjects"
        );
    }
}

#[test]
fn standard_and_full_have_no_limit_of_their_own() {
    let plan = plain(Profile::Full, layout(500, 5));
    assert_eq!(plan.rounds, 15);
    assert_eq!(plan.window, Duration::from_secs(10));
    assert_eq!(plan.warmup, Duration::from_secs(2));
    assert_eq!(plan.expected, Duration::from_secs(500 * 5 * 15 * 12));
    assert_eq!(plan.cases_dropped, 0);
    assert_eq!(plain(Profile::Standard, layout(500, 5)).window, Duration::from_secs(2));
}

#[test]
fn quick_lowers_windows_to_fit_its_minute() {
    // About what the primitives have: 170 cells, four subjects in most cases, canaries of 5 ms around each window.
    let mut keys: Vec<usize> = (0..160).map(|cell| cell / 4).collect();
    keys.extend((0..10).map(|cell| 100 + cell / 2));
    let overhead = Overhead {
        per_cell: 2 * MS,
        per_window: 11 * MS,
    };
    let plan = Plan::new(Duration::ZERO, Profile::Quick, Layout::by_case(keys), overhead, None).unwrap();
    assert_eq!((plan.rounds, plan.cases_dropped, plan.layout.cells()), (4, 0, 170));
    assert!((40 * MS..60 * MS).contains(&plan.window), "{:?}", plan.window);
    assert_eq!(plan.warmup, plan.window.mul_f64(0.4));
    assert!(plan.window < Profile::Quick.window());
    assert!(
        plan.expected <= Duration::from_secs(50) && plan.expected > Duration::from_secs(48),
        "{:?}",
        plan.expected
    );
    let small = plain(Profile::Quick, layout(3, 2));
    assert_eq!((small.window, small.warmup), (500 * MS, 200 * MS));
    assert_eq!(small.expected, Duration::from_millis(3 * 2 * 4 * 700));
}

#[test]
fn cases_go_last_and_from_the_end() {
    let limit = Some(Duration::from_secs(60));
    let plan = Plan::new(
        Duration::ZERO,
        Profile::Standard,
        layout(100, 2),
        Overhead::default(),
        limit,
    )
    .unwrap();
    assert_eq!(plan.rounds, 10);
    // 125 ms a visit, 20 visits a case: 24 cases at the shortest window.
    assert_eq!(plan.layout.cases(), 24);
    assert_eq!(plan.cases_dropped, 76);
    assert_eq!(plan.window, 100 * MS);
    assert_eq!(plan.layout.groups()[23], [46, 47]);
    assert!(plan.schedule(1).iter().flatten().all(|cell| *cell < 48));
    let mild = Plan::new(
        Duration::ZERO,
        Profile::Standard,
        layout(10, 2),
        Overhead::default(),
        limit,
    )
    .unwrap();
    assert_eq!((mild.cases_dropped, mild.window, mild.warmup), (0, 240 * MS, 60 * MS));
}

#[test]
fn impossible_plans_say_why() {
    let none = Plan::new(
        Duration::ZERO,
        Profile::Quick,
        Layout::default(),
        Overhead::default(),
        None,
    );
    assert_eq!(none.unwrap_err(), PlanError::NoCells);
    let limit = Some(Duration::from_secs(1));
    let error = Plan::new(
        Duration::ZERO,
        Profile::Standard,
        layout(3, 2),
        Overhead::default(),
        limit,
    )
    .unwrap_err();
    assert_eq!(
        error,
        PlanError::LimitTooShort {
            limit: Duration::from_secs(1),
            needed: Duration::from_millis(2_500)
        }
    );
    assert_eq!(
        error.to_string(),
        "the time limit of 1.0 s is too short: the first case, with the programs that take whole seconds, takes \
         2.5 s; raise the limit, choose fewer peers or a shorter profile"
    );
}

#[test]
fn cells_with_a_least_window_have_it_or_are_left_out() {
    let plan = |limit| {
        let limit = Some(Duration::from_secs(limit));
        Plan::new(250 * MS, Profile::Quick, layout(4, 2), Overhead::default(), limit)
    };
    // Four rounds of two subjects: eight visits a case, of 250 ms and a warm-up of 100 ms.
    let all = plan(12).unwrap();
    assert_eq!((all.cases_dropped, all.window), (0, 267 * MS));
    let some = plan(10).unwrap();
    assert!(some.cases_dropped == 1 && some.window >= 250 * MS, "{some:?}");
    assert!(plan(2).is_err() && plan(60).unwrap().window == 500 * MS);
}

#[test]
fn facts_are_the_plan() {
    let plan = plain(Profile::Standard, layout(2, 3));
    let facts = plan.facts();
    assert_eq!(
        (facts.rounds, facts.cells, facts.window_s, facts.warmup_s),
        (12, 6, 2.0, 0.5)
    );
    assert_eq!(facts.expected_s, 12.0 * 6.0 * 2.5);
}

proptest! {
    #[test]
    fn limits_hold(
        profile in prop::sample::select(&Profile::ALL[..]),
        cases in 1_usize..80,
        subjects in 1_usize..7,
        limit in 1_u64..4_000,
        per_cell in 0_u32..50,
        per_window in 0_u32..100,
    ) {
        let limit = Duration::from_secs(limit);
        let overhead = Overhead { per_cell: per_cell * MS, per_window: per_window * MS };
        match Plan::new(Duration::ZERO, profile, layout(cases, subjects), overhead, Some(limit)) {
            Ok(plan) => {
                prop_assert!(plan.expected <= limit);
                prop_assert!(plan.rounds >= profile.rounds());
                prop_assert!(profile == Profile::Quick || plan.rounds >= 7);
                prop_assert!(plan.window >= profile.shortest_window() && plan.window <= profile.window());
                prop_assert_eq!(plan.layout.cases() + plan.cases_dropped, cases);
                // One more millisecond of window would not fit, or nothing was lowered.
                let longer = plan.window + MS;
                let visits = plan.rounds * u32::try_from(plan.layout.cells()).unwrap();
                let more = plan.expected + (longer + warmup(profile, longer) - plan.window - plan.warmup) * visits;
                prop_assert!(plan.window == profile.window() || more > limit);
            }
            Err(PlanError::LimitTooShort { needed, .. }) => prop_assert!(needed > limit),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn huge_numbers_do_not_overflow(seconds in any::<u64>(), limit in any::<u64>()) {
        let overhead = Overhead { per_cell: Duration::from_secs(seconds), per_window: Duration::from_secs(seconds) };
        let _ = Plan::new(Duration::ZERO, Profile::Full, layout(3, 3), overhead, Some(Duration::from_secs(limit)));
        let plan = Plan::new(Duration::ZERO, Profile::Full, layout(3, 3), overhead, None).unwrap();
        prop_assert!(plan.expected >= overhead.per_cell);
    }
}
