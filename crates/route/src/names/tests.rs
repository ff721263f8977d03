use proptest::prelude::*;

use super::*;

fn set(fill: impl FnOnce(&mut Builder)) -> NameSet {
    let mut builder = NameSet::builder();
    fill(&mut builder);
    builder.build().unwrap()
}

#[test]
fn each_form_holds_what_it_says() {
    let full = set(|b| {
        b.full("a.example");
    });
    assert!(full.matches("a.example"));
    assert!(!full.matches("b.a.example") && !full.matches("example") && !full.matches("a.examples"));
    let domain = set(|b| {
        b.domain("a.example");
    });
    assert!(domain.matches("a.example") && domain.matches("x.y.a.example"));
    assert!(!domain.matches("xa.example") && !domain.matches("example") && !domain.matches(""));
    let keyword = set(|b| {
        b.keyword("ampl");
    });
    assert!(keyword.matches("a.example") && !keyword.matches("a.exaple"));
    let regex = set(|b| {
        b.regex(r"^\d+\.example$");
    });
    assert!(regex.matches("17.example") && !regex.matches("a17.example") && !regex.matches("\u{661}.example"));
    let dotless = set(|b| {
        b.dotless("host");
    });
    assert!(dotless.matches("myhost1") && !dotless.matches("my.host") && !dotless.matches("other"));
    assert!(
        set(|b| {
            b.dotless("");
        })
        .matches("x")
    );
}

#[test]
fn an_empty_set_holds_nothing() {
    let empty = set(|_| ());
    assert!(empty.is_empty() && !empty.matches("") && !empty.matches("a"));
}

#[test]
fn one_text_may_be_a_name_and_a_domain() {
    for order in [[true, false], [false, true]] {
        let both = set(|b| {
            for domain in order {
                if domain {
                    b.domain("a.example")
                } else {
                    b.full("a.example")
                };
            }
        });
        assert!(both.matches("a.example") && both.matches("b.a.example"));
        assert_eq!(both.len(), 1);
    }
}

#[test]
fn names_longer_than_any_name_are_left_out() {
    let (most, more) = ("x".repeat(MAX_NAME), "x".repeat(MAX_NAME + 1));
    let both = set(|b| {
        b.full(&most).full(&more);
    });
    assert!(both.matches(&most) && !both.matches(&more));
    assert_eq!(both.len(), 1);
}

#[test]
fn texts_longer_than_any_name_take_no_memory() {
    let long: Vec<String> = (0..100).map(|i| format!("{i:03}").repeat(5000)).collect();
    let all = set(|b| {
        for text in &long {
            b.keyword(text).dotless(text);
        }
    });
    assert!(all.is_empty() && all.memory() < 1024, "{}", all.memory());
    let most = "x".repeat(MAX_NAME);
    let both = set(|b| {
        b.keyword(&most).dotless(&most);
    });
    assert!(both.len() == 2 && both.matches(&most));
}

#[test]
fn texts_take_bounded_memory() {
    let number = |i: usize| format!("{i:04x}").repeat(32);
    let filled = |count: usize| {
        let mut builder = NameSet::builder();
        for i in 0..count {
            builder.keyword(&number(i));
        }
        builder.build()
    };
    for (count, most) in [
        (FAST_KEYWORDS / 128, FAST_KEYWORDS << 10),
        (FAST_KEYWORDS / 128 + 1, 64 * FAST_KEYWORDS),
        (MAX_KEYWORDS / 128, 40 * MAX_KEYWORDS),
    ] {
        let full = filled(count).unwrap();
        assert!(full.memory() < most, "{count}: {}", full.memory());
        assert!(full.matches(&format!("a{}.b", number(count - 1))) && !full.matches(&number(count)));
    }
    assert_eq!(filled(MAX_KEYWORDS / 128 + 1).unwrap_err(), Error::TooLarge);
}

#[test]
fn empty_texts_hold_for_nothing() {
    let empty = set(|b| {
        b.keyword("").regex("").full("").domain("").full(".").domain(".");
    });
    assert!(empty.is_empty());
    for name in ["", "a", "a.b"] {
        assert!(!empty.matches(name), "{name}");
    }
}

#[test]
fn a_dot_at_the_end_is_no_part_of_a_name() {
    let both = set(|b| {
        b.full("full.example.").domain("a.example.");
    });
    assert!(both.matches("full.example") && both.matches("a.example") && both.matches("x.a.example"));
    assert!(!both.matches("x.full.example"));
}

#[test]
fn a_broken_expression_is_named() {
    let mut builder = NameSet::builder();
    builder.regex("fine").regex("(broken");
    let error = builder.build().unwrap_err();
    assert!(
        error.to_string().starts_with("\"(broken\" is no regular expression: "),
        "{error}"
    );
}

#[test]
fn expressions_take_bounded_memory() {
    let mut builder = NameSet::builder();
    builder.regex("(a{1000}){1000}");
    assert!(matches!(builder.build(), Err(Error::Pattern { .. })));
    let mut builder = NameSet::builder();
    for i in 0..400 {
        builder.regex(&format!("{i}[a-z]{{900}}"));
    }
    assert_eq!(builder.build().unwrap_err(), Error::TooLarge);
}

#[test]
fn expressions_may_need_unicode() {
    let han = set(|b| {
        b.regex(r"\p{Han}").regex("^a.c$");
    });
    assert!(han.matches("中.example") && han.matches("abc") && !han.matches("example"));
}

#[test]
fn a_name_takes_four_bytes_and_its_text() {
    let memory = |label: &str| {
        let all = set(|b| {
            for i in 0..30_000 {
                b.domain(&format!("name{i}.{label}"));
            }
        });
        all.memory() as f64 / 30_000.0
    };
    let text = (0..30_000).map(|i| format!("name{i}").len()).sum::<usize>() as f64 / 30_000.0;
    let (own, common) = (memory("example"), memory("com"));
    assert!((text + 12.0..text + 12.1).contains(&own), "{own} for {text}");
    assert!((text + 4.0..text + 4.1).contains(&common), "{common} for {text}");
}

#[test]
fn names_that_come_twice_take_the_memory_of_one() {
    let fill = |times| {
        set(|b| {
            for i in 0..3000 {
                for _ in 0..times {
                    b.domain(&format!("name{i}.example")).full(&format!("www{i}.com"));
                }
            }
        })
    };
    let (once, thrice) = (fill(1), fill(3));
    assert_eq!(once.len(), 6000);
    assert_eq!(thrice.len(), 6000);
    // It was made with buckets for more names.
    assert!(
        thrice.memory() < once.memory() + 4 * 3000 * 6,
        "{} {}",
        thrice.memory(),
        once.memory()
    );
    for i in 0..3000 {
        let (domain, full) = (format!("a.name{i}.example"), format!("www{i}.com"));
        assert!(thrice.matches(&domain) && thrice.matches(&full) && !thrice.matches(&format!("a.{full}")));
    }
}

#[test]
fn a_common_label_is_a_part_of_the_name() {
    let names = ["com", "a.com", "b.net", "c", "d.example", "e.com.cn", ".org", "f..io"];
    for held in names {
        let full = set(|b| {
            b.full(held);
        });
        for name in names {
            assert_eq!(full.matches(name), name == held, "{held} {name}");
        }
        for other in [
            "a", "b", "net", "a.net", "b.com", "c.com", "e.com", "e.cn", "com.cn", "d", "xa.com", "org", "io",
        ] {
            assert!(!full.matches(other) || other == held, "{held} {other}");
        }
    }
}

#[test]
fn names_of_many_labels_are_found() {
    for labels in [1, 15, 16, 17, 40, 100] {
        let name = vec!["a"; labels].join(".");
        let held = set(|b| {
            b.full(&name).domain("only.example");
        });
        assert!(held.matches(&name) && !held.matches(&format!("{name}.a")), "{labels}");
        assert!(!held.matches(&format!("a.{name}")), "{labels}");
        assert!(held.matches(&format!("{name}.only.example")), "{labels}");
    }
    // Longer than a name can be, and below one.
    let deep = format!("{}.only.example", "x".repeat(300));
    assert!(
        set(|b| {
            b.domain("only.example");
        })
        .matches(&deep)
    );
}

/// One condition as it is written: its form, and its text.
fn naive((form, text): &(u8, String), name: &str) -> bool {
    let bare = text.strip_suffix('.').unwrap_or(text);
    match form {
        0 | 1 if bare.is_empty() => false,
        0 => name == bare,
        1 => name
            .strip_suffix(bare)
            .is_some_and(|above| above.is_empty() || above.ends_with('.')),
        2 => name.contains(text.as_str()),
        _ => !name.contains('.') && name.contains(text.as_str()),
    }
}

proptest! {
    #[test]
    fn sets_answer_as_their_conditions_one_by_one(
        conditions in proptest::collection::vec((0u8..4, "[a-c.]{1,5}|[ab.]{0,2}\\.(com|cn|io)"), 0..40),
        names in proptest::collection::vec("[a-c.]{0,9}|[ab.]{0,4}\\.?(com|cn|io)", 40),
    ) {
        let all = set(|b| for (form, text) in &conditions {
            match form { 0 => b.full(text), 1 => b.domain(text), 2 => b.keyword(text), _ => b.dotless(text) };
        });
        // Keywords hide the rest, so names are asked alone too.
        let exact: Vec<_> = conditions.iter().filter(|(form, _)| *form < 2).cloned().collect();
        let table = set(|b| for (form, text) in &exact {
            if *form == 0 { b.full(text) } else { b.domain(text) };
        });
        for name in &names {
            prop_assert_eq!(all.matches(name), conditions.iter().any(|one| naive(one, name)), "{}", name);
            prop_assert_eq!(table.matches(name), exact.iter().any(|one| naive(one, name)), "{}", name);
        }
    }
}
