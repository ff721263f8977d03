//! Messages: questions to servers and what counts as their answer; questions of clients and what they are answered.
//!
//! Pure: ids, letter case and time come in as arguments.

use std::net::IpAddr;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{ClientSubnet, EdnsOption};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

/// Bytes of a datagram that we take from a server, as we tell it.
pub(crate) const PAYLOAD: u16 = 1350;
/// Bytes of a datagram that every client takes (RFC 1035).
pub(crate) const SMALLEST: u16 = 512;
/// Bytes of a datagram that no client is sent more than, whatever it says: an Ethernet frame holds it (RFC 9715).
pub(crate) const LARGEST: u16 = 1232;
/// Addresses of one answer that count.
pub(crate) const MAX_ADDRESSES: usize = 64;
/// Names that may stand for each other in one answer.
const MAX_ALIASES: usize = 16;
/// Sealed questions are filled up to a multiple of this (RFC 8467).
const BLOCK: usize = 128;
/// The option for that (RFC 7830).
const PADDING: u16 = 12;
/// Networks that a server is told as the client's: the rest of the address is nobody's business.
const SUBNET_V4: u8 = 24;
const SUBNET_V6: u8 = 96;

/// A family of addresses.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn kind(self) -> RecordType {
        match self {
            Family::V4 => RecordType::A,
            Family::V6 => RecordType::AAAA,
        }
    }

    /// That of an address.
    pub(crate) fn of(ip: IpAddr) -> Family {
        match ip {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

/// A name as servers are asked for it: lower-case, with its root. What its labels hold is theirs (RFC 2181 section 11).
pub(crate) fn name(text: &str) -> Option<Name> {
    if !text.is_ascii() || !is_name(text) {
        return None;
    }
    let labels = text.split('.').filter(|_| !text.is_empty());
    let mut name = Name::from_labels(labels.map(str::as_bytes)).ok()?.to_lowercase();
    name.set_fqdn(true);
    Some(name)
}

/// Whether a text, without a dot at its end, stands for one name only, and nothing in it means more than itself.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte > b' ' && byte != 0x7f && byte != b'\\';
    let label = |label: &str| (1..64).contains(&label.len()) && label.bytes().all(plain);
    text.is_empty() || text.len() < 254 && text.split('.').all(label)
}

/// What a server is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Lower-case.
    pub(crate) name: Name,
    pub(crate) family: Family,
    /// The client whose network the server is told.
    pub(crate) client: Option<IpAddr>,
}

/// How it is put into one message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    pub(crate) id: u16,
    /// Which letters are written large: bit 0 is for the first one, again from the start after 64 (draft "0x20").
    pub(crate) case: u64,
    /// Without the extensions of RFC 6891, for servers that do not know them.
    pub(crate) plain: bool,
    /// Filled up, so that the length of what is sealed tells little of the name.
    pub(crate) padded: bool,
}

impl Question {
    /// The name with the letters of `case` written large.
    fn cased(&self, case: u64) -> Name {
        if case == 0 {
            return self.name.clone();
        }
        let mut at = 0;
        let mut labels = Vec::new();
        for label in self.name.iter() {
            let mut label = label.to_vec();
            for letter in label.iter_mut().filter(|letter| letter.is_ascii_lowercase()) {
                if case >> (at % 64) & 1 == 1 {
                    letter.make_ascii_uppercase();
                }
                at += 1;
            }
            labels.push(label);
        }
        let labels = labels.iter().map(Vec::as_slice);
        Name::from_labels(labels).unwrap_or_else(|_| self.name.clone())
    }

    /// Letters of the name: as many bits there are to guess in their case, 64 at most.
    pub(crate) fn letters(&self) -> usize {
        let bytes = self.name.iter().flatten();
        bytes.filter(|byte| byte.is_ascii_alphabetic()).take(64).count()
    }

    /// The message. `None`: the name does not fit into one.
    pub(crate) fn encode(&self, form: Form) -> Option<Vec<u8>> {
        let mut message = Message::new(form.id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(self.cased(form.case), self.family.kind()));
        if form.plain {
            return message.to_vec().ok();
        }
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD);
        if let Some(client) = self.client {
            edns.options_mut().insert(EdnsOption::Subnet(subnet(client)));
        }
        if form.padded {
            message.set_edns(edns.clone());
            let bare = message.to_vec().ok()?.len() + 4;
            let fill = bare.next_multiple_of(BLOCK) - bare;
            edns.options_mut().insert(EdnsOption::Unknown(PADDING, vec![0; fill]));
        }
        message.set_edns(edns);
        message.to_vec().ok()
    }

    /// What some bytes from the server are to the question in this form.
    pub(crate) fn read(&self, form: Form, bytes: &[u8]) -> Reply {
        // Most of what strangers send ends here, before anything is parsed.
        let header = bytes.get(..12);
        if header.is_none_or(|header| header[..2] != form.id.to_be_bytes() || header[2] & 0x80 == 0) {
            return Reply::Foreign;
        }
        // An answer that does not fit may end anywhere. A server that repeats the question will say nothing better.
        let read = match bytes[4..6] {
            [0, 0] => Message::from_vec(bytes).ok(),
            [0, 1] => Message::from_vec(bytes).ok().or_else(|| first_question(bytes)),
            _ => None,
        };
        let Some(message) = read else {
            return Reply::Foreign;
        };
        if message.metadata.op_code != OpCode::Query || message.metadata.message_type != MessageType::Response {
            return Reply::Foreign;
        }
        let code = message.metadata.response_code;
        let asked = match message.queries.as_slice() {
            [asked] => asked,
            // What could not be read is not repeated.
            [] if code == ResponseCode::FormErr && !form.plain => return Reply::TooNew,
            _ => return Reply::Foreign,
        };
        let same_kind = asked.query_type() == self.family.kind() && asked.query_class() == DNSClass::IN;
        if !same_kind || *asked.name() != self.name {
            return Reply::Foreign;
        }
        if form.case != 0 && !asked.name().eq_case(&self.cased(form.case)) {
            return Reply::OtherCase;
        }
        match code {
            _ if message.metadata.truncation => Reply::Truncated,
            ResponseCode::NoError | ResponseCode::NXDomain => Reply::Answer(self.answer(&message)),
            ResponseCode::FormErr | ResponseCode::BADVERS | ResponseCode::NotImp if !form.plain => Reply::TooNew,
            other => Reply::Refused(other.into()),
        }
    }

    /// The addresses of the name, by way of the names that stand for it. What is said about other names does not count: the
    /// server was not asked for them.
    fn answer(&self, message: &Message) -> Answer {
        let code = u16::from(message.metadata.response_code);
        let mut owner = &self.name;
        let mut ttl: Option<u32> = None;
        let mut shortest = |record: &Record| ttl = Some(ttl.map_or(record.ttl, |ttl: u32| ttl.min(record.ttl)));
        let of = |owner: &Name| {
            let owner = owner.clone();
            let records = message.answers.iter();
            records.filter(move |record| record.dns_class == DNSClass::IN && record.name == owner)
        };
        let mut aliases = Vec::new();
        for _ in 0..MAX_ALIASES {
            let next = of(owner).find_map(|record| match &record.data {
                RData::CNAME(alias) => Some((record, &alias.0)),
                _ => None,
            });
            let Some((record, alias)) = next else { break };
            if aliases.contains(&alias) || *alias == self.name {
                break;
            }
            shortest(record);
            aliases.push(alias);
            owner = alias;
        }
        let mut ips = Vec::new();
        for record in of(owner) {
            let ip: IpAddr = match &record.data {
                RData::A(A(ip)) => (*ip).into(),
                RData::AAAA(AAAA(ip)) => (*ip).into(),
                _ => continue,
            };
            if Family::of(ip) == self.family && ips.len() < MAX_ADDRESSES && !ips.contains(&ip) {
                shortest(record);
                ips.push(ip);
            }
        }
        if ips.is_empty() {
            // How long nothing holds is said by the zone that the name, or what stands for it, would be in (RFC 2308).
            let soa = message.authorities.iter().find_map(|record| match &record.data {
                RData::SOA(soa) if record.name.zone_of(owner) => Some(record.ttl.min(soa.minimum)),
                _ => None,
            });
            ttl = soa.map(|soa| ttl.map_or(soa, |ttl| ttl.min(soa)));
        }
        Answer { ips, ttl, code }
    }
}

fn subnet(client: IpAddr) -> ClientSubnet {
    match client {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            ClientSubnet::new([a, b, c, 0].into(), SUBNET_V4, 0)
        }
        IpAddr::V6(ip) => {
            let mut octets = ip.octets();
            octets[usize::from(SUBNET_V6 / 8)..].fill(0);
            ClientSubnet::new(octets.into(), SUBNET_V6, 0)
        }
    }
}

/// What a server says of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// Addresses of the family that was asked for.
    pub(crate) ips: Vec<IpAddr>,
    /// How long it holds, seconds. `None`: the server does not say.
    pub(crate) ttl: Option<u32>,
    /// 0, or 3 for a name that does not exist.
    pub(crate) code: u16,
}

/// What some bytes are to a question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Reply {
    /// Nothing: not an answer, or one to another question. Anyone may have sent it.
    Foreign,
    /// It would be the answer, but the letters are of another case: the server does not keep it, or somebody guessed.
    OtherCase,
    /// The server does not know the extensions.
    TooNew,
    /// The answer does not fit into a datagram.
    Truncated,
    /// The server has no answer, with its response code.
    Refused(u16),
    Answer(Answer),
}

/// The head of a message and its question, without anything behind them, which is said to be cut off.
fn first_question(bytes: &[u8]) -> Option<Message> {
    let mut at = 12;
    loop {
        match usize::from(*bytes.get(at)?) {
            0 => break,
            // Nothing stands before it that a pointer could lead to.
            len @ 1..64 => at += 1 + len,
            _ => return None,
        }
    }
    let mut head = bytes.get(..at + 5)?.to_vec();
    head[2] |= TRUNCATED;
    head[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    Message::from_vec(&head).ok()
}

/// Bit of the third byte of a message that does not fit.
const TRUNCATED: u8 = 2;
/// Longest question of a client, bytes: a name, what EDNS may say, and a signature.
pub(crate) const MAX_QUESTION: usize = 4096;

/// A question of a client, without what stands beside it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    message: Message,
}

/// Why bytes of a client are no question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum NoQuestion {
    /// They get no answer: whoever sent them may not be who it says.
    Silence,
    /// They get this.
    Answer(Vec<u8>),
}

impl Asked {
    /// Reads a question: one name, one type.
    pub(crate) fn read(bytes: &[u8]) -> Result<Asked, NoQuestion> {
        // An answer to an answer could go on for ever.
        let header = bytes.get(..12).ok_or(NoQuestion::Silence)?;
        if header[2] & 0x80 != 0 {
            return Err(NoQuestion::Silence);
        }
        let refuse = |code: ResponseCode| {
            let id = u16::from_be_bytes([header[0], header[1]]);
            let answer = Message::error_msg(id, OpCode::Query, code).to_vec();
            Err(answer.map_or(NoQuestion::Silence, NoQuestion::Answer))
        };
        if header[2] & 0x78 != 0 {
            return refuse(ResponseCode::NotImp);
        }
        // Room is made for as many questions as the head says, and what a question needs no answers for is not kept.
        if header[4..8] != [0, 1, 0, 0] || bytes.len() > MAX_QUESTION {
            return refuse(ResponseCode::FormErr);
        }
        let Ok(mut message) = Message::from_vec(bytes) else {
            return refuse(ResponseCode::FormErr);
        };
        message.authorities = Vec::new();
        message.additionals = Vec::new();
        Ok(Asked { message })
    }

    fn query(&self) -> &Query {
        // `read` lets nothing else through.
        &self.message.queries[0]
    }

    /// The name, lower-case, without a dot at its end. Behind a backslash stands what no name has that one can write.
    pub(crate) fn name(&self) -> String {
        let mut name = String::with_capacity(64);
        for (at, label) in self.query().name().iter().enumerate() {
            if at > 0 {
                name.push('.');
            }
            for byte in label {
                match byte {
                    b'.' | b'\\' | 0..=b' ' | 0x7f.. => name.push_str(&format!("\\{byte:03}")),
                    _ => name.push(byte.to_ascii_lowercase().into()),
                }
            }
        }
        name
    }

    /// The number of its type.
    pub(crate) fn kind(&self) -> u16 {
        self.query().query_type().into()
    }

    /// The family of addresses that is asked for.
    pub(crate) fn family(&self) -> Option<Family> {
        match (self.query().query_class(), self.query().query_type()) {
            (DNSClass::IN, RecordType::A) => Some(Family::V4),
            (DNSClass::IN, RecordType::AAAA) => Some(Family::V6),
            _ => None,
        }
    }

    /// Bytes that an answer in a datagram may have.
    pub(crate) fn room(&self) -> usize {
        let told = self.message.edns.as_ref().map_or(SMALLEST, Edns::max_payload);
        told.clamp(SMALLEST, LARGEST).into()
    }

    /// An answer of at most `room` bytes. What does not fit is left out, and said to be.
    pub(crate) fn answer(&self, code: u16, ips: &[IpAddr], ttl: u32, room: usize) -> Vec<u8> {
        let query = self.query();
        let mut message = Message::response(self.message.metadata.id, OpCode::Query);
        message.metadata.recursion_desired = self.message.metadata.recursion_desired;
        message.metadata.recursion_available = true;
        // Without extensions there are four bits for the code.
        let code = if code > 15 && self.message.edns.is_none() {
            2
        } else {
            code
        };
        message.metadata.response_code = code.into();
        message.add_query(query.clone());
        for ip in ips {
            let data = match ip {
                IpAddr::V4(ip) => RData::A(A(*ip)),
                IpAddr::V6(ip) => RData::AAAA(AAAA(*ip)),
            };
            message.add_answer(Record::from_rdata(query.name().clone(), ttl, data));
        }
        if self.message.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(LARGEST);
            edns.set_rcode_high((code >> 4) as u8);
            message.set_edns(edns);
        }
        match message.to_vec() {
            Ok(bytes) if bytes.len() <= room => bytes,
            _ => self.truncated(),
        }
    }

    /// The answer that tells the client to ask by a stream.
    pub(crate) fn truncated(&self) -> Vec<u8> {
        let mut message = Message::response(self.message.metadata.id, OpCode::Query);
        message.metadata.recursion_desired = self.message.metadata.recursion_desired;
        message.metadata.recursion_available = true;
        message.metadata.truncation = true;
        message.add_query(self.query().clone());
        message.to_vec().unwrap_or_default()
    }

    /// Whether bytes from a server answer this question, sent on with another id.
    pub(crate) fn is_answered_by(&self, id: u16, bytes: &[u8]) -> bool {
        if bytes.len() < 12 || bytes[..2] != id.to_be_bytes() || bytes[2] & 0x80 == 0 {
            return false;
        }
        let Ok(message) = Message::from_vec(bytes) else {
            return false;
        };
        let query = self.query();
        match message.queries.as_slice() {
            [one] => {
                one.query_type() == query.query_type()
                    && one.query_class() == query.query_class()
                    && one.name() == query.name()
            }
            // What is refused need not be repeated.
            [] => message.metadata.response_code != ResponseCode::NoError && message.answers.is_empty(),
            _ => false,
        }
    }

    /// The id that the client knows its question by.
    pub(crate) fn id(&self) -> u16 {
        self.message.metadata.id
    }
}

#[cfg(test)]
mod tests;
