//! Both ends agree, and what is not a share is refused.

use super::*;

fn counting(mut byte: u8) -> impl FnMut(&mut [u8]) {
    move |out| {
        for place in out {
            byte = byte.wrapping_mul(109).wrapping_add(89);
            *place = byte;
        }
    }
}

#[test]
fn both_ends_agree_and_another_client_does_not() {
    for group in Group::ALL {
        let (client, other) = (ClientSecret::new(&mut counting(1)), ClientSecret::new(&mut counting(2)));
        let share = client.share(group);
        assert_eq!(share.len(), group.client_len());
        assert_eq!(share[group.client_x25519_at()..], client.x25519().public());
        let (own, shared) = answer(group, &share, &mut counting(3)).unwrap();
        assert_eq!(own.len(), group.server_len());
        assert_eq!(shared.len(), if group == Group::X25519 { 32 } else { 64 });
        assert_eq!(client.agree(group, &own).unwrap(), shared);
        assert_ne!(other.agree(group, &own).unwrap(), shared);
        assert_eq!(Group::from_id(group.id()), Some(group));
    }
    assert_eq!(Group::from_id(0x0017), None);
}

/// A changed byte anywhere in a share gives another secret, or a refusal.
#[test]
fn every_part_of_a_share_counts() {
    for group in Group::ALL {
        let client = ClientSecret::new(&mut counting(1));
        let share = client.share(group);
        let (own, shared) = answer(group, &share, &mut counting(3)).unwrap();
        for at in (0..own.len()).step_by(97).chain([own.len() - 1]) {
            let mut changed = own.clone();
            changed[at] ^= 1;
            assert!(
                client.agree(group, &changed).is_ok_and(|other| other != shared),
                "byte {at}"
            );
        }
    }
}

#[test]
fn what_is_no_share_is_refused() {
    let client = ClientSecret::new(&mut counting(1));
    let refused = |found: Result<(Vec<u8>, SharedSecret), Error>| {
        assert_eq!(
            found.err().and_then(|error| error.alert()),
            Some(Alert::IllegalParameter)
        );
    };
    for group in Group::ALL {
        let share = client.share(group);
        for len in [0, 1, share.len() - 1] {
            refused(answer(group, &share[..len], &mut counting(3)));
            assert!(client.agree(group, &vec![9; len]).is_err());
        }
        refused(answer(group, &[&share[..], &[0]].concat(), &mut counting(3)));
        // The point at infinity, and one of order two.
        for point in [[0; 32], {
            let mut one = [0; 32];
            one[0] = 1;
            one
        }] {
            let mut small = share.clone();
            small[group.client_x25519_at()..].copy_from_slice(&point);
            refused(answer(group, &small, &mut counting(3)));
            let mut own = answer(group, &share, &mut counting(3)).unwrap().0;
            let at = own.len() - 32;
            own[at..].copy_from_slice(&point);
            assert!(client.agree(group, &own).is_err());
        }
    }
    // A coefficient that is not reduced modulo 3329.
    let mut share = client.share(Group::X25519MlKem768);
    share[..3].fill(0xff);
    refused(answer(Group::X25519MlKem768, &share, &mut counting(3)));
}

/// The keys of the sheet on REALITY.
#[test]
fn x25519_is_that_of_the_vectors() {
    let counted = |first: u8| -> [u8; 32] { std::array::from_fn(|at| first + at as u8) };
    let (server, client) = (X25519Secret::new(&counted(1)), X25519Secret::new(&counted(0x41)));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(&server.public()),
        "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c"
    );
    let shared = client.agree(&server.public()).unwrap();
    assert_eq!(
        hex(&*shared),
        "26c2c17fdb82161cb21ad16e721315355b64d1763119b10bfc962530dc7cc163"
    );
    assert_eq!(server.agree(&client.public()).unwrap(), shared);
}
