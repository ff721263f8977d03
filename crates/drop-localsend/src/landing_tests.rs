use super::*;

fn file(name: &str, size: u64) -> (String, File) {
    let file = File {
        file_name: name.into(),
        size,
        ..File::default()
    };
    (format!("{name}{size}"), file)
}

#[test]
fn an_offer_becomes_folders_and_files_each_once() {
    let offer = [
        file("album/one/IMG.jpg", 1),
        file("album/one/IMG.jpg", 2),
        file("album/two.jpg", 3),
        file("../out", 4),
        file("album", 5),
        file("big", u64::MAX),
    ];
    let plan = Plan::of(&offer, Rules::POSIX);
    let paths: Vec<_> = plan.entries.iter().map(|entry| entry.path.to_string()).collect();
    assert_eq!(
        paths,
        [
            "album",
            "album/one",
            "album/one/IMG.jpg",
            "album/one/IMG (1).jpg",
            "album/two.jpg",
            "album (1)"
        ]
    );
    assert_eq!(plan.refused.len(), 2);
    assert!(plan.refused[0].starts_with("../out: ") && plan.refused[1].starts_with("big: "));
    assert!(Plan::of(&[file("..", 1)], Rules::POSIX).is_empty());
}
