//! Both ends agree, and what is not a share is refused.

use super::*;
use crate::fuzzing::ends::fixed;

#[test]
fn both_ends_agree_and_another_client_does_not() {
    for group in Group::ALL {
        let of = |byte| ClientSecret::of(group, &mut fixed(byte));
        let (client, other) = (of(1), of(2));
        let share = client.share(group).unwrap();
        assert_eq!(share.len(), group.client_len());
        let x25519 = client.x25519().map(X25519Secret::public);
        assert_eq!(
            group.client_x25519_at().map(|at| &share[at..]),
            x25519.as_ref().map(|key| &key[..])
        );
        let (own, shared) = answer(group, &share, &mut fixed(3)).unwrap();
        assert_eq!(own.len(), group.server_len());
        let lens = [(0x1d, 32), (0x11ec, 64), (0x17, 32), (0x18, 48)];
        assert!(lens.contains(&(group.id(), shared.len())));
        assert_eq!(client.agree(group, &own).unwrap(), shared);
        assert_ne!(other.agree(group, &own).unwrap(), shared);
        assert_eq!(Group::from_id(group.id()), Some(group));
    }
    assert_eq!(Group::from_id(0x0019), None);
    let (x25519, curve) = (
        ClientSecret::new(&mut fixed(1)),
        ClientSecret::of(Group::Secp256r1, &mut fixed(1)),
    );
    assert_eq!(x25519.share(Group::Secp256r1), Err(OTHER));
    for group in [Group::X25519, Group::X25519MlKem768, Group::Secp384r1] {
        assert_eq!(curve.share(group), Err(OTHER));
        assert!(curve.agree(group, &vec![4; group.server_len()]).is_err());
    }
}

/// A changed byte anywhere in a share gives another secret, or a refusal.
#[test]
fn every_part_of_a_share_counts() {
    for group in Group::ALL {
        let client = ClientSecret::of(group, &mut fixed(1));
        let share = client.share(group).unwrap();
        let (own, shared) = answer(group, &share, &mut fixed(3)).unwrap();
        for at in (0..own.len()).step_by(97).chain([own.len() - 1]) {
            let mut changed = own.clone();
            changed[at] ^= 1;
            let agreed = client.agree(group, &changed);
            match group.client_x25519_at() {
                Some(_) => assert!(agreed.is_ok_and(|other| other != shared), "byte {at}"),
                None => assert_eq!(agreed.unwrap_err().alert(), Some(Alert::IllegalParameter), "byte {at}"),
            }
        }
    }
}

#[test]
fn what_is_no_share_is_refused() {
    let refused = |found: Result<(Vec<u8>, SharedSecret), Error>| {
        assert_eq!(
            found.err().and_then(|error| error.alert()),
            Some(Alert::IllegalParameter)
        );
    };
    for group in Group::ALL {
        let client = ClientSecret::of(group, &mut fixed(1));
        let share = client.share(group).unwrap();
        for len in [0, 1, share.len() - 1] {
            refused(answer(group, &share[..len], &mut fixed(3)));
            assert!(client.agree(group, &vec![9; len]).is_err());
        }
        refused(answer(group, &[&share[..], &[0]].concat(), &mut fixed(3)));
        let Some(at) = group.client_x25519_at() else {
            // A compressed point, a point of neither form, and none of the curve.
            for first in [2, 3, 0, 5, 6, 7] {
                let mut changed = share.clone();
                changed[0] = first;
                refused(answer(group, &changed, &mut fixed(3)));
                refused(answer(group, &changed[..1 + share.len() / 2], &mut fixed(3)));
            }
            refused(answer(
                group,
                &[&[4][..], &vec![0; share.len() - 1]].concat(),
                &mut fixed(3),
            ));
            continue;
        };
        // The point at infinity, and one of order two.
        for point in [[0; 32], {
            let mut one = [0; 32];
            one[0] = 1;
            one
        }] {
            let mut small = share.clone();
            small[at..].copy_from_slice(&point);
            refused(answer(group, &small, &mut fixed(3)));
            let mut own = answer(group, &share, &mut fixed(3)).unwrap().0;
            let at = own.len() - 32;
            own[at..].copy_from_slice(&point);
            assert!(client.agree(group, &own).is_err());
        }
    }
    // A coefficient that is not reduced modulo 3329.
    let mut share = ClientSecret::new(&mut fixed(1)).share(Group::X25519MlKem768).unwrap();
    share[..3].fill(0xff);
    refused(answer(Group::X25519MlKem768, &share, &mut fixed(3)));
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

/// RFC 5903 sections 8.1 and 8.2, and secrets that stand for no number of the curve.
#[test]
fn curves_are_those_of_the_vectors() {
    let bytes = |hex: &str| -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
    };
    for (group, secret, x, y, theirs, shared) in [
        (
            Group::Secp256r1,
            "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
            "dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180",
            "5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
            "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63\
             56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
            "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de",
        ),
        (
            Group::Secp384r1,
            "099f3c7034d4a2c699884d73a375a67f7624ef7c6b3c0f160647b67414dce655e35b538041e649ee3faef896783ab194",
            "667842d7d180ac2cde6f74f37551f55755c7645c20ef73e31634fe72b4c55ee6de3ac808acb4bdb4c88732aee95f41aa",
            "9482ed1fc0eeb9cafc4984625ccfc23f65032149e0e144ada024181535a0f38eeb9fcff3c2c947dae69b4c634573a81c",
            "04e558dbef53eecde3d3fccfc1aea08a89a987475d12fd950d83cfa41732bc509d0d1ac43a0336def96fda41d0774a3571\
             dcfbec7aacf3196472169e838430367f66eebe3c6e70c416dd5f0c68759dd1fff83fa40142209dff5eaad96db9e6386c",
            "11187331c279962d93d604243fd592cb9d0a926f422e47187521287e7156c5c4d603135569b9e9d09cf5d4a270f59746",
        ),
    ] {
        let secret = bytes(secret);
        let client = ClientSecret::of(group, &mut |out| out.copy_from_slice(&secret));
        assert_eq!(client.share(group).unwrap(), [&[4][..], &bytes(x), &bytes(y)].concat());
        let theirs = bytes(&theirs.replace(' ', ""));
        assert_eq!(*client.agree(group, &theirs).unwrap(), bytes(shared));
        for byte in [0, 0xff] {
            let client = ClientSecret::of(group, &mut |out| out.fill(byte));
            let (own, shared) = answer(group, &client.share(group).unwrap(), &mut |out| out.fill(!byte)).unwrap();
            assert_eq!(client.agree(group, &own).unwrap(), shared);
        }
    }
}
