//! How users of a configuration are packed.

use sealway_v2ray::UserId;
use sealway_v2ray::trojan::Key;
use sealway_v2ray::vless::Flow;
use sealway_v2ray::vless::vision::Seed;

use super::inbound::{TrojanUser, User, VlessUser};
use super::packed::{Pack, Packer, Unpacker};

impl Pack for User {
    fn pack(&self, to: &mut Packer) {
        to.bytes(self.id.as_bytes());
        to.text(&self.email);
        to.number(self.level.into());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<User> {
        Some(User {
            id: UserId::from_bytes(from.array()?),
            email: from.text()?,
            level: from.number_of()?,
        })
    }
}

/// Bits of what stands behind a [`User`] for VLESS: how his payload goes, and that the numbers of its padding follow because they are
/// not the usual ones.
const VISION: u64 = 1;
const SEED: u64 = 2;

impl Pack for VlessUser {
    fn pack(&self, to: &mut Packer) {
        self.user.pack(to);
        let vision = match self.flow {
            Flow::None => 0,
            Flow::Vision => VISION,
        };
        match self.seed == Seed::default() {
            true => to.number(vision),
            false => {
                to.number(vision | SEED);
                self.seed
                    .numbers()
                    .iter()
                    .for_each(|number| to.number((*number).into()));
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<VlessUser> {
        let user = User::unpack(from)?;
        let bits = from.number()?;
        let seed = match bits & SEED {
            0 => Seed::default(),
            _ => Seed::new([
                from.number_of()?,
                from.number_of()?,
                from.number_of()?,
                from.number_of()?,
            ]),
        };
        let flow = match bits & VISION {
            0 => Flow::None,
            _ => Flow::Vision,
        };
        Some(VlessUser { user, flow, seed })
    }
}

impl Pack for TrojanUser {
    fn pack(&self, to: &mut Packer) {
        to.bytes(self.id.as_bytes());
        to.text(&self.email);
        to.number(self.level.into());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<TrojanUser> {
        Some(TrojanUser {
            id: Key::from_bytes(from.array()?),
            email: from.text()?,
            level: from.number_of()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::settings::Packed;

    fn user(number: u8, email: &str, level: u32) -> User {
        User {
            id: UserId::from_bytes([number; 16]),
            email: email.into(),
            level,
        }
    }

    /// What comes out is what went in, in its order, and equals it alone.
    fn holds<T: Pack + PartialEq + fmt::Debug + Clone>(all: &[T]) {
        let packed: Packed<T> = all.iter().cloned().collect();
        assert_eq!(packed.iter().collect::<Vec<_>>(), all);
        assert_eq!((packed.len(), packed.is_empty()), (all.len(), all.is_empty()));
        assert_eq!(packed.bytes().len(), packed.capacity());
        assert_eq!(format!("{packed:?}"), format!("{all:?}"));
        assert_eq!(packed, packed.clone());
        let without_first: Packed<T> = all.iter().skip(1).cloned().collect();
        assert_eq!(packed == without_first, all.is_empty());
        let mut other_order = all.to_vec();
        other_order.reverse();
        assert_eq!(packed == other_order.into_iter().collect(), all.len() < 2);
    }

    #[test]
    fn users_come_out_as_they_went_in() {
        let long = "ü".repeat(300);
        let users = [
            user(1, "", 0),
            user(2, &long, u32::MAX),
            user(0xff, "a@b", 0x80),
            user(0, "\0", 127),
        ];
        holds::<User>(&[]);
        holds(&users[..1]);
        holds(&users);
        let odd = Seed::new([900, 500, 900, 257]);
        let vless = |(user, flow, seed): (&User, _, _)| VlessUser {
            user: user.clone(),
            flow,
            seed,
        };
        let flows = [Flow::None, Flow::Vision, Flow::Vision, Flow::None];
        let seeds = [Seed::default(), Seed::default(), odd, odd];
        let three = users.iter().zip(flows).zip(seeds);
        holds(
            &three
                .map(|((user, flow), seed)| vless((user, flow, seed)))
                .collect::<Vec<_>>(),
        );
        let trojan = |user: &User| TrojanUser {
            id: Key::of_password(&user.email),
            email: user.email.clone(),
            level: user.level,
        };
        holds(&users.iter().map(trojan).collect::<Vec<_>>());
    }

    #[test]
    fn a_user_takes_little_beside_his_email() {
        let all: Packed<VlessUser> = (0..1000)
            .map(|number| VlessUser::from(user(number as u8, "user000001@example.org", 0)))
            .collect();
        assert!(all.capacity() <= 1000 * (22 + 20), "{}", all.capacity());
    }

    #[test]
    fn what_is_cut_off_is_no_user() {
        let packed: Packed<VlessUser> = [VlessUser {
            user: user(1, "anna", 300),
            flow: Flow::Vision,
            seed: Seed::new([1, 2, 3, 4]),
        }]
        .into_iter()
        .collect();
        for end in 0..packed.bytes().len() {
            assert!(
                VlessUser::unpack(&mut Unpacker::new(&packed.bytes()[..end])).is_none(),
                "{end}"
            );
        }
        assert!(Unpacker::new(&[0xff; 20]).number().is_none());
    }
}
