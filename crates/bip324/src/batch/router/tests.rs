use proptest::prelude::*;
use sealway_aead::batch::{Job, Slot, Status};

use super::*;
use crate::batch::{CostsError, ExecutorFailure, Line, Stopped};

/// Takes messages of up to 1000 bytes, with keys of 8 slots.
struct Nobody;

impl Executor for Nobody {
    fn set_key(&mut self, _: Slot, _: &[u8; 32]) {}

    fn clear_key(&mut self, _: Slot) {}

    fn longest(&self) -> usize {
        1000
    }

    fn slots(&self) -> usize {
        8
    }

    fn start(&mut self, _: &[Job], _: &[u8]) -> Result<(), ExecutorFailure> {
        Err(ExecutorFailure::new("nobody"))
    }

    fn finish(&mut self, _: &[Job], _: &mut [u8], _: &mut [Status]) -> Result<(), Stopped> {
        Ok(())
    }
}

fn jobs(lengths: impl IntoIterator<Item = (u32, u32)>) -> Vec<Job> {
    let job = |(slot, len)| Job::open(Slot(slot), &[0; 12], 0..len + 16, 0).unwrap();
    lengths.into_iter().map(job).collect()
}

fn even(count: usize, len: usize) -> Load {
    Load {
        jobs: count,
        bytes: count * len,
        taken: count,
        taken_bytes: count * len,
    }
}

const fn line(fixed: u64, job: u64, byte: u64) -> Line {
    Line { fixed, job, byte }
}

/// In nanoseconds: the processor 100 a job, this thread 40, the executor 20,000 and 20 a job.
const COSTS: Costs = Costs {
    cpu: line(0, 100_000, 0),
    thread: line(0, 40_000, 0),
    executor: line(20_000_000, 20_000, 0),
};

#[test]
fn shares_follow_the_costs() {
    let share = |count| COSTS.share(&even(count, 0));
    // Both end at one time with (100 n - 20,000) / 120 there: up to 200 there is none.
    assert_eq!([0, 1, 200, 201, 212].map(share), [0; 5]);
    // That saves (100 - 40) each, which is to be a 16th of 100 n: 60 (100 n - 20,000) / 120 = 100 n / 16, n = 228.6.
    assert_eq!([227, 228, 229, 230].map(share), [0, 0, 24, 25]);
    assert_eq!(COSTS.break_even(0), Some(229));
    assert_eq!([1000, 10_000].map(share), [666, 8166]);
    // Bytes count too: 64 of them 96 ns to the processor, 640 to the executor; 1000 (100 + 96) - 20,000 by 120 + 96 + 640.
    let bytes = Costs {
        cpu: line(0, 100_000, 1500),
        executor: line(20_000_000, 20_000, 10_000),
        ..COSTS
    };
    assert_eq!(bytes.share(&even(1000, 64)), 205);
}

#[test]
fn costs_that_leave_no_choice() {
    // This thread has no less to do if it gives jobs away.
    let busy = Costs {
        thread: line(0, 100_000, 0),
        ..COSTS
    };
    assert_eq!(busy.share(&even(1 << 20, 0)), 0);
    assert_eq!(busy.break_even(300), None);
    // The executor ends before the processor has begun: it gets all.
    let slow = Costs {
        cpu: line(50_000_000, 100_000, 0),
        executor: line(1000, 0, 0),
        ..COSTS
    };
    assert_eq!(slow.share(&even(100, 0)), 100);
    assert_eq!((slow.share(&even(1, 0)), slow.break_even(0)), (1, Some(1)));
    // Nothing costs anything, and everything costs more than can be said.
    assert_eq!(Costs::default().share(&even(1000, 10)), 0);
    let most = line(u64::MAX, u64::MAX, u64::MAX);
    let dear = Costs {
        cpu: most,
        thread: most,
        executor: most,
    };
    assert!(dear.share(&even(1 << 30, 1 << 30)) <= 1 << 30);
    assert_eq!(dear.break_even(usize::MAX), None);
}

#[test]
fn an_executor_gets_no_more_than_it_takes() {
    let router = |routing| Router::new(routing, &Nobody);
    let all = router(Routing::Always);
    assert_eq!(all.share(&[]), 0);
    assert_eq!(all.share(&jobs([(0, 5), (7, 1000), (3, 0)])), 3);
    assert_eq!(all.share(&jobs([(0, 5), (7, 1001), (3, 0)])), 1);
    assert_eq!(all.share(&jobs([(0, 5), (1, 5), (8, 1000), (3, 0)])), 2);
    let some = router(Routing::Threshold { jobs: 3 });
    assert_eq!(some.share(&jobs([(0, 1); 2])), 0);
    assert_eq!(some.share(&jobs([(0, 1); 3])), 3);
    assert_eq!(some.share(&jobs([(0, 1), (0, 1), (9, 1), (0, 1)])), 0, "it takes two");
    let measured = router(Routing::Measured(COSTS));
    assert_eq!(measured.share(&jobs([(0, 1); 1000])), 666);
    let up_to = |taken: usize| jobs((0..1000).map(|n| (if n == taken { 8 } else { 0 }, 1)));
    assert_eq!(measured.share(&up_to(700)), 666);
    assert_eq!(measured.share(&up_to(600)), 600);
    // The few that it takes before are not worth the way.
    assert_eq!(measured.share(&up_to(100)), 0);
}

prop_compose! {
    fn any_line(fixed: u64)(fixed in 0..fixed, job in 0u64..300_000, byte in 0u64..2000) -> Line {
        Line { fixed, job, byte }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// No other share ends sooner, but for what one job takes and for the margin.
    #[test]
    fn no_other_share_is_better(
        cpu in any_line(1_000_000),
        thread in any_line(20_000_000),
        executor in any_line(50_000_000),
        count in 1usize..3000,
        len in 0usize..600,
        taken in 0usize..3000,
    ) {
        let costs = Costs { cpu, thread, executor };
        let taken = taken.min(count);
        let load = Load { taken, taken_bytes: taken * len, ..even(count, len) };
        let share = costs.share(&load);
        prop_assert!(share <= taken);
        let takes = |share: usize| {
            let rest = cpu.of(count - share, (count - share) * len);
            thread.of(share, share * len) + rest.max(executor.of(share, share * len))
        };
        let best = (0..=taken).map(takes).min().unwrap();
        let one = cpu.of(1, len) - u128::from(cpu.fixed);
        if share > 0 {
            prop_assert!(takes(share) <= best + one);
            prop_assert!(takes(share) < takes(0));
        } else {
            prop_assert!(takes(0) * 15 / 16 <= best + one);
        }
    }

    #[test]
    fn costs_are_read_as_they_were_written(numbers: [[u64; 3]; 3]) {
        let [cpu, thread, executor] = numbers.map(|[fixed, job, byte]| Line { fixed, job, byte });
        let costs = Costs { cpu, thread, executor };
        prop_assert_eq!(costs.to_string().parse(), Ok(costs));
        let spaced = format!("\n{}\r\n", costs.to_string().replace(' ', " \t"));
        prop_assert_eq!(spaced.parse(), Ok(costs));
    }

    /// What is read is written as it was, but for white space and zeros in front.
    #[test]
    fn any_text_is_read_or_refused(words in prop::collection::vec("sealway-costs/1|cpu|thread|executor|[0-9]{1,21}|[ -~]{0,4}", 0..16)) {
        let text = words.join(" ");
        if let Ok(costs) = text.parse::<Costs>() {
            prop_assert_eq!(costs.to_string().split(' ').count(), text.split_ascii_whitespace().count());
        }
    }
}

#[test]
fn lines_that_are_refused() {
    let good = COSTS.to_string();
    assert_eq!(
        good,
        "sealway-costs/1 cpu 0 100000 0 thread 0 40000 0 executor 20000000 20000 0"
    );
    let number = |of| Err(CostsError::Number { of });
    let word = |expected| Err(CostsError::Word { expected });
    for (text, expected) in [
        (String::new(), Err(CostsError::Version)),
        (good.replace("/1", "/2"), Err(CostsError::Version)),
        (good.replace("cpu", "gpu"), word("cpu")),
        (good.replace(" executor 20000000 20000 0", ""), word("executor")),
        (good.replace(" 40000", ""), number("thread")),
        (good.replace(" 40000", " -40000"), number("thread")),
        (good.replace(" 40000", " +40000"), number("thread")),
        (good.replace(" 40000", " 4e4"), number("thread")),
        (good.replace(" 40000", " 18446744073709551616"), number("thread")),
        (good.trim_end_matches(" 0").to_owned(), number("executor")),
        (good.clone() + " 0", Err(CostsError::Surplus)),
        (good.clone() + " # of today", Err(CostsError::Surplus)),
        (good.clone(), Ok(COSTS)),
        (good.replace(" 40000", " 18446744073709551615"), {
            let thread = line(0, u64::MAX, 0);
            Ok(Costs { thread, ..COSTS })
        }),
    ] {
        assert_eq!(text.parse::<Costs>(), expected, "{text}");
    }
    for error in [
        number("cpu"),
        word("thread"),
        Err(CostsError::Version),
        Err(CostsError::Surplus),
    ] {
        assert!(error.unwrap_err().to_string().contains("costs"));
    }
}

#[test]
fn slabs_follow_the_costs() {
    // 4096 jobs: here 410 us, given 164, there 102.
    assert!(COSTS.pays(4096, 0, &[], true) && COSTS.pays(4096, 0, &[], false));
    // 300 jobs: here 30 us, given 12, there 26. Only if something else is done meanwhile.
    assert!(COSTS.pays(300, 0, &[], true) && !COSTS.pays(300, 0, &[], false));
    // Behind one under way both are waited for.
    assert!(!COSTS.pays(300, 0, &[(300, 0)], true) && COSTS.pays(4096, 0, &[(4096, 0)], true));
    assert!(!COSTS.pays(4096, 0, &[(8192, 0)], true));
    let slow = Costs {
        executor: line(0, 1000 * COSTS.cpu.job, 0),
        ..COSTS
    };
    for jobs in [1, 300, 4096] {
        assert!(!slow.pays(jobs, 0, &[], true) && !slow.pays(jobs, 0, &[], false));
    }
}

/// A full slab reaches a threshold that no slab with such packets has room for.
#[test]
fn a_full_slab_is_enough() {
    let mut router = Router::new(Routing::Threshold { jobs: 4096 }, &Nobody);
    (router.slab_bytes, router.slab_jobs) = (1 << 20, 16_384);
    assert!(router.takes(730, 730 * 1400, &[], false) && !router.takes(400, 400 * 1400, &[], false));
    assert!(!router.takes(4095, 4095 * 40, &[], true) && router.takes(4096, 4096 * 40, &[], true));
    assert!(!router.takes(1, 0, &[], true) && router.takes(1, 0, &[(1, 0)], true));
}
