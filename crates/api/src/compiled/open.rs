//! Messages in messages.

use prost::Message;

use super::{Refused, unsupported};
use crate::describe;
use crate::proto::{TypedMessage, canonical};

/// Reads a message of a type that is known before.
pub(crate) fn open<M: Message + Default>(message: &TypedMessage) -> Result<M, Refused> {
    describe::check(&message.r#type, &message.value).map_err(Refused::Unsupported)?;
    M::decode(&message.value[..]).map_err(|error| Refused::Broken(format!("{}: {error}", message.r#type)))
}

/// Reads a message that must be there and be of this type.
pub(crate) fn expect<M: Message + Default>(message: Option<&TypedMessage>, kind: &str) -> Result<M, Refused> {
    let Some(message) = message else {
        return Err(Refused::Broken(format!("{kind} is missing")));
    };
    if canonical(&message.r#type) != kind {
        return unsupported(format!("the type {:?} in place of {kind}", message.r#type));
    }
    open(message)
}

/// A message with its type.
pub(crate) fn typed(kind: &str, message: &impl Message) -> TypedMessage {
    TypedMessage {
        r#type: kind.to_owned(),
        value: message.encode_to_vec(),
    }
}
