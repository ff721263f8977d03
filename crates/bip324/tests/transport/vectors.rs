//! The test vectors of BIP324: keys, packets, and the damages to them that must show.

use sealway_bip324::fschacha::RecvChain;
use sealway_bip324::{Kind, LocalKey, Magic, PacketOpener, PacketSealer, Role, SessionKeys};
use secp256k1::ellswift::{ElligatorSwift, ElligatorSwiftParty, ElligatorSwiftSharedSecret};
use secp256k1::{PublicKey, SecretKey};

use crate::common::{array, hex, rows};

/// The x coordinate that an encoding stands for.
fn decode(encoding: [u8; 64]) -> [u8; 32] {
    let point = PublicKey::from_ellswift(ElligatorSwift::from_array(encoding));
    point.serialize()[1..].try_into().unwrap()
}

#[test]
fn decoding_of_ellswift() {
    let rows = rows("ellswift_decode_test_vectors.csv");
    assert_eq!(rows.len(), 76);
    for row in rows {
        assert_eq!(decode(array(&row[0])), array::<32>(&row[1]), "{}", row[2]);
    }
}

/// The inverse is not to be called from here; that each of its results decodes to what it was made of is.
#[test]
fn results_of_the_inverse_decode_to_their_x() {
    let rows = rows("xswiftec_inv_test_vectors.csv");
    assert_eq!(rows.len(), 32);
    let mut checked = 0;
    for row in rows {
        for t in row[2..10].iter().filter(|t| !t.is_empty()) {
            let mut encoding = [0; 64];
            encoding[..32].copy_from_slice(&hex(&row[0]));
            encoding[32..].copy_from_slice(&hex(t));
            assert_eq!(decode(encoding), array::<32>(&row[1]), "{row:?}");
            checked += 1;
        }
    }
    assert!(checked > 32, "{checked}");
}

/// A row of the packet file.
struct Row {
    index: u64,
    ours: [u8; 32],
    encoding: [u8; 64],
    theirs: [u8; 64],
    role: Role,
    contents: Vec<u8>,
    aad: Vec<u8>,
    kind: Kind,
    /// mid_x_ours to out_session_id.
    derived: Vec<Vec<u8>>,
    whole: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

fn packet_rows() -> Vec<Row> {
    let rows = rows("packet_encoding_test_vectors.csv");
    assert_eq!(rows.len(), 7);
    let given = |field: &str| (!field.is_empty()).then(|| hex(field));
    let row = |row: Vec<String>| Row {
        index: row[0].parse().unwrap(),
        ours: array(&row[1]),
        encoding: array(&row[2]),
        theirs: array(&row[3]),
        role: if row[4] == "1" {
            Role::Initiator
        } else {
            Role::Responder
        },
        contents: hex(&row[5]).repeat(row[6].parse().unwrap()),
        aad: hex(&row[7]),
        kind: if row[8] == "1" { Kind::Decoy } else { Kind::Genuine },
        derived: row[9..20].iter().map(|field| hex(field)).collect(),
        whole: given(&row[20]),
        end: given(&row[21]),
    };
    rows.into_iter().map(row).collect()
}

impl Row {
    fn keys(&self) -> SessionKeys {
        let key = LocalKey::with_encoding(&self.ours, self.encoding).unwrap();
        key.agree(&self.theirs, self.role, Magic::MAINNET).unwrap()
    }

    /// The packet, after as many empty ones as the row says.
    fn packet(&self, keys: &SessionKeys) -> Vec<u8> {
        let mut sealer = PacketSealer::new(keys.send_chain(self.role).unwrap());
        let mut wire = Vec::new();
        for _ in 0..self.index {
            wire.clear();
            sealer.seal(Kind::Genuine, &[], &[], &mut wire).unwrap();
        }
        wire.clear();
        sealer.seal(self.kind, &self.aad, &self.contents, &mut wire).unwrap();
        wire
    }

    /// What the peer opens with, `index` packets on.
    fn chain(&self, keys: &SessionKeys, role: Role, index: u64) -> RecvChain {
        let mut chain = keys.recv_chain(role).unwrap();
        for _ in 0..index {
            chain.open_length([0; 3]).unwrap();
        }
        chain
    }

    /// Opens a packet as a peer that is `role` and has opened `index` packets.
    fn open(&self, keys: &SessionKeys, role: Role, index: u64, aad: &[u8], packet: &[u8]) -> Option<(Kind, Vec<u8>)> {
        let mut opener = PacketOpener::new(self.chain(keys, role, index));
        let (length, rest) = packet.split_first_chunk().unwrap();
        if opener.open_length(*length).unwrap() != rest.len() {
            return None;
        }
        let mut rest = rest.to_vec();
        let opened = opener.open_in_place(aad, &mut rest);
        let opened = opened.map(|(kind, contents)| (kind, contents.to_vec())).ok();
        if opened.is_none() {
            assert!(
                rest.iter().all(|byte| *byte == 0),
                "something is left of a wrong packet"
            );
            assert!(opener.is_closed());
        }
        opened
    }
}

#[test]
fn keys_of_the_packet_file() {
    let rows = packet_rows();
    for row in &rows {
        let keys = row.keys();
        let party = match row.role {
            Role::Initiator => ElligatorSwiftParty::A,
            Role::Responder => ElligatorSwiftParty::B,
        };
        let (ours, theirs) = (row.encoding, row.theirs);
        let (a, b) = match row.role {
            Role::Initiator => (ours, theirs),
            Role::Responder => (theirs, ours),
        };
        let (a, b) = (ElligatorSwift::from_array(a), ElligatorSwift::from_array(b));
        let secret = SecretKey::from_slice(&row.ours).unwrap();
        let x_only = |x: [u8; 32], _, _| ElligatorSwiftSharedSecret::from_secret_bytes(x);
        let x = ElligatorSwift::shared_secret_with_hasher(a, b, secret, party, x_only);
        let shared = ElligatorSwift::shared_secret(a, b, secret, party, None);
        let derived: [&[u8]; 11] = [
            &decode(ours),
            &decode(theirs),
            x.as_secret_bytes(),
            shared.as_secret_bytes(),
            keys.length_key(Role::Initiator),
            keys.content_key(Role::Initiator),
            keys.length_key(Role::Responder),
            keys.content_key(Role::Responder),
            &keys.terminator(row.role),
            &keys.terminator(row.role.other()),
            &keys.session_id(),
        ];
        assert_eq!(derived[..], row.derived[..], "row with packet {}", row.index);
    }
}

#[test]
fn packets_of_the_packet_file() {
    let rows = packet_rows();
    for row in &rows {
        let keys = row.keys();
        let packet = row.packet(&keys);
        assert_eq!(packet.len(), row.contents.len() + 20);
        assert!(row.whole.is_some() || row.end.is_some());
        if let Some(whole) = &row.whole {
            assert_eq!(&packet, whole, "packet {}", row.index);
        }
        if let Some(end) = &row.end {
            assert!(packet.ends_with(end), "packet {}", row.index);
        }
        let opened = row.open(&keys, row.role.other(), row.index, &row.aad, &packet);
        let (kind, contents) = opened.unwrap();
        assert_eq!(kind, row.kind);
        assert!(contents == row.contents, "packet {}", row.index);
    }
}

/// Wrong role, a bit anywhere, a bit of the AAD, a byte more of it, another packet number.
#[test]
fn damages_to_the_packet_file() {
    let rows = packet_rows();
    for row in &rows {
        let keys = row.keys();
        let packet = row.packet(&keys);
        let peer = row.role.other();
        let opens = |role, index, aad: &[u8], packet: &[u8]| row.open(&keys, role, index, aad, packet).is_some();
        assert!(opens(peer, row.index, &row.aad, &packet));
        assert!(!opens(row.role, row.index, &row.aad, &packet), "wrong role");
        // Each bit of a short packet, and 8 places of a long one, whose first are in length, header and tag.
        let len = packet.len();
        let places: Vec<usize> = if len < 200 {
            (0..8 * len).collect()
        } else {
            [0, 1, 2, 3, 4, len / 2, len - 17, len - 1]
                .iter()
                .enumerate()
                .map(|(bit, byte)| 8 * byte + bit)
                .collect()
        };
        for bit in places {
            let mut bad = packet.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !opens(peer, row.index, &row.aad, &bad),
                "bit {bit} of packet {}",
                row.index
            );
        }
        let mut longer = row.aad.clone();
        longer.push(0);
        assert!(!opens(peer, row.index, &longer, &packet), "a byte more of AAD");
        for bit in (0..8 * row.aad.len()).step_by(997) {
            let mut aad = row.aad.clone();
            aad[bit / 8] ^= 1 << (bit % 8);
            assert!(!opens(peer, row.index, &aad, &packet), "bit {bit} of the AAD");
        }
        for other in [
            row.index + 1,
            row.index + 224,
            row.index.wrapping_sub(1),
            row.index.wrapping_sub(224),
        ] {
            if other < row.index + 1000 {
                assert!(
                    !opens(peer, other, &row.aad, &packet),
                    "packet {other} for {}",
                    row.index
                );
            }
        }
    }
}
