//! A server that asks for another hello.

use super::*;

#[test]
fn a_second_hello_differs_in_what_was_asked_for_only() {
    let only_hybrid = || {
        let offer = Offer {
            shares: 1,
            ..Offer::default()
        };
        Hello::plain(&offer, &mut fixed(1)).unwrap()
    };
    for (hello, group, cookie) in [
        (only_hybrid as fn() -> Hello, Some(0x001d), None),
        (only_hybrid, Some(0x001d), Some(vec![9; 300])),
        (only_hybrid, None, Some(vec![1])),
        (browser, None, Some(vec![1; 20])),
        (browser, Some(0x0017), None),
        (only_hybrid, Some(0x0017), None),
        (browser, Some(0x0018), Some(vec![1; 20])),
    ] {
        let first = hello().to_bytes().unwrap();
        let script = Script {
            group: group.and_then(Group::from_id).unwrap_or(Group::X25519MlKem768),
            retry: Some((group, cookie.clone())),
            ..Script::default()
        };
        let (done, second) = shake(&script, hello(), Likes::default(), 50).unwrap();
        assert_eq!(done.group, script.group);
        let read = |bytes: &[u8]| -> (Vec<u8>, Vec<(u16, Vec<u8>)>) {
            let hello = ClientHello::read(Message::first(bytes, MAX_HELLO).unwrap().unwrap()).unwrap();
            let extensions = hello.extensions.iter().map(|(kind, body)| (kind, body.to_vec()));
            (bytes[HEAD..hello.session_id_at().end].to_vec(), extensions.collect())
        };
        let ((start, mut before), (start_again, mut after)) = (read(&first), read(&second));
        assert_eq!(start, start_again);
        if let Some(cookie) = cookie {
            let (_, told) = after.iter().find(|(kind, _)| *kind == extension::COOKIE).unwrap();
            assert_eq!(*told, body::cookie(&cookie).unwrap());
            after.retain(|(kind, _)| *kind != extension::COOKIE);
        }
        if let Some(group) = group {
            let (_, shares) = after.iter().find(|(kind, _)| *kind == extension::KEY_SHARE).unwrap();
            let len = 6 + script.group.client_len();
            assert_eq!((shares.len(), &shares[2..4]), (len, &u16::to_be_bytes(group)[..]));
            after.retain(|(kind, _)| *kind != extension::KEY_SHARE);
            before.retain(|(kind, _)| *kind != extension::KEY_SHARE);
        }
        assert_eq!(before, after);
    }
}

#[test]
fn a_cookie_has_its_place_in_the_order_that_was_drawn() {
    let mut places = std::collections::HashSet::new();
    for seed in 0..40 {
        let mut hello = template::chrome(Some("a.test"), true, &mut fixed(seed)).unwrap();
        let before = hello.extensions.clone();
        hello.retry(None, Some(&[1]), &mut fixed(1)).unwrap();
        let kinds: Vec<u16> = hello.extensions.iter().map(|(kind, _)| *kind).collect();
        let place = kinds.iter().position(|kind| *kind == extension::COOKIE).unwrap();
        assert!(
            (1..kinds.len() - 1).contains(&place),
            "made-up extensions are the outermost"
        );
        places.insert(place);
        hello.extensions.remove(place);
        assert_eq!(hello.extensions, before);
    }
    assert!(places.len() > 8, "{places:?}");
}
