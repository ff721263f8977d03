//! Payload in headers and cookies: base64 of all of it (RFC 4648 section 5, without padding), cut into numbered pieces.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::padding::Dice;
use super::place;
use super::settings::{Data, DataPlace};

/// Most payload that a client writes into the headers of one request, bytes: with padding and all else it has to fit into
/// the 8 KiB of head that servers take.
pub const MAX_IN_HEAD: usize = 4096;

/// The names and values of a payload's pieces.
pub(super) fn pieces(data: &Data, payload: &[u8], dice: &mut Dice) -> Vec<(String, String)> {
    let text = URL_SAFE_NO_PAD.encode(payload);
    let (mut rest, mut pieces) = (text.as_str(), Vec::new());
    while !rest.is_empty() {
        let len = data.piece.pick(dice.roll()).max(1) as usize;
        let (piece, after) = rest.split_at(len.min(rest.len()));
        let at = pieces.len();
        let name = match data.place {
            DataPlace::Cookie => format!("{}_{at}", data.cookie),
            _ => format!("{}-{at}", data.header),
        };
        pieces.push((name, piece.to_owned()));
        rest = after;
    }
    pieces
}

/// The payload in the headers and cookies of a request, as far as the place allows to look there. `None` if it is not base64.
pub fn collect(data: &Data, headers: &[(&str, &str)]) -> Option<Vec<u8>> {
    let in_headers = matches!(data.place, DataPlace::Auto | DataPlace::Header);
    let in_cookies = matches!(data.place, DataPlace::Auto | DataPlace::Cookie);
    let mut payload = Vec::new();
    if in_headers {
        let text = joined(|at| place::header(headers, &format!("{}-{at}", data.header)));
        payload = URL_SAFE_NO_PAD.decode(text).ok()?;
    }
    if in_cookies {
        let text = joined(|at| place::cookie(headers, &format!("{}_{at}", data.cookie)));
        payload.extend(URL_SAFE_NO_PAD.decode(text).ok()?);
    }
    Some(payload)
}

/// Piece after piece, up to the first that is missing. A head has few lines, which bounds them.
fn joined<'a>(piece: impl Fn(usize) -> Option<&'a str>) -> String {
    (0..).map_while(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::super::settings::{Settings, Span};
    use super::*;

    #[test]
    fn both_ways_in_pieces() {
        let payload: Vec<u8> = (0..=255).cycle().take(1001).collect();
        for place in [DataPlace::Header, DataPlace::Cookie] {
            let data = Data {
                place,
                piece: Span::new(99, 101),
                ..Settings::default().data
            };
            let made = pieces(&data, &payload, &mut Dice::new(1));
            assert!(made.len() > 12 && made.iter().all(|(_, piece)| piece.len() <= 101));
            let cookies: Vec<String> = made.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let cookies = cookies.join("; ");
            let headers: Vec<(&str, &str)> = match place {
                DataPlace::Cookie => vec![("Cookie", &cookies)],
                _ => made
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect(),
            };
            assert_eq!(collect(&data, &headers), Some(payload.clone()));
            let auto = Data {
                place: DataPlace::Auto,
                ..data.clone()
            };
            assert_eq!(collect(&auto, &headers), Some(payload.clone()));
            let body = Data {
                place: DataPlace::Body,
                ..data.clone()
            };
            assert_eq!(collect(&body, &headers), Some(Vec::new()));
        }
        let auto = Settings::default().data;
        assert_eq!(collect(&auto, &[("X-Data-0", "!")]), None);
        assert_eq!(
            collect(&auto, &[("Cookie", "x_data_0=YmM"), ("X-Data-0", "YQ")]),
            Some(b"abc".to_vec())
        );
    }
}
