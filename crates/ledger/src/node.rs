//! The name under which a node adds what was used.

use crate::Error;

/// Longest name, characters.
const LONGEST: usize = 64;

/// The name of a node. Nodes that share a database need names of their own only for reading it: sums hold also if two have the
/// same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node(String);

impl Node {
    /// A node of this name.
    ///
    /// # Errors
    /// [`Error::Node`] if it is empty, longer than 64 characters, or has control characters.
    pub fn new(name: &str) -> Result<Node, Error> {
        let right = (1..=LONGEST).contains(&name.chars().count()) && !name.chars().any(char::is_control);
        right.then(|| Node(name.to_owned())).ok_or(Error::Node)
    }

    /// The name of this machine, as the system has it.
    pub fn of_machine() -> Node {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Node::new(name.trim()).unwrap_or_else(|_| Node("localhost".to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_show() {
        for right in ["a", "paris-1", "Knoten 7", &"ж".repeat(64)] {
            assert_eq!(Node::new(right).unwrap().as_str(), right);
        }
        for wrong in ["", "a\nb", "a\0", &"a".repeat(65)] {
            assert!(matches!(Node::new(wrong), Err(Error::Node)), "{wrong:?}");
        }
        assert!(!Node::of_machine().as_str().is_empty());
    }
}
