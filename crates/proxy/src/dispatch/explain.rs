//! What the rules say of a question, and why.

use std::net::IpAddr;
use std::sync::Arc;

use crate::program::Program;

use super::router::{Asked, Decision, Help, Question};
use super::{Asking, Dispatcher};

/// What the rules say.
pub(crate) struct Explained {
    /// The conditions of each rule that was asked, in the order of the rules.
    pub(crate) asked: Vec<Vec<Asked>>,
    /// What the last of them decides, if it fits.
    pub(crate) decision: Option<Decision>,
    /// The addresses that the name was found to have, if they were looked for.
    pub(crate) resolved: Option<Vec<IpAddr>>,
}

/// Finds out what rules need, and keeps it.
struct Keeping<'a> {
    asking: Asking<'a>,
    ips: Option<Vec<IpAddr>>,
    program: Option<Arc<Program>>,
}

impl Help for Keeping<'_> {
    async fn addresses(&mut self) -> Vec<IpAddr> {
        let ips = self.asking.addresses().await;
        self.ips = Some(ips.clone());
        ips
    }

    async fn program(&mut self) -> Option<Arc<Program>> {
        self.program = self.asking.program().await;
        self.program.clone()
    }
}

impl Dispatcher {
    /// The number of the rule that decides, as for a connection.
    pub(crate) async fn decide(&self, question: &Question<'_>) -> Option<usize> {
        let mut asking = self.asking(question);
        let table = self.table();
        let decision = table.router.choose(question, &mut asking).await;
        decision.map(|decision| decision.rule)
    }

    /// Where the rule that decides leads now: its name, the tag of its balancer or nothing, and that of the outbound. Names are
    /// looked up as for a connection.
    pub(crate) async fn test(&self, question: &Question<'_>) -> Option<(String, String, String)> {
        let mut asking = self.asking(question);
        let table = self.table();
        let decision = table.router.choose(question, &mut asking).await?;
        let (outbound, _) = table.lead(Some(decision));
        let rule = table.router.rule(decision.rule)?;
        Some((rule.name.clone(), rule.balancer_tag.clone(), outbound.tag.clone()))
    }

    fn asking<'a>(&'a self, question: &Question<'a>) -> Asking<'a> {
        Asking {
            dispatcher: self,
            to: question.target,
            source: question.source,
            resolves: true,
        }
    }

    /// What the rules decide, as for a connection, with what each condition says of it.
    pub(crate) async fn explain(&self, question: &Question<'_>) -> Explained {
        let mut help = Keeping {
            asking: self.asking(question),
            ips: None,
            program: None,
        };
        let table = self.table();
        let decision = table.router.choose(question, &mut help).await.cloned();
        let own = question.target.address.ip();
        let ips = help.ips.as_deref().unwrap_or(own.as_slice());
        let asked = table.router.explain(question, ips, help.program.as_deref());
        Explained {
            asked,
            decision,
            resolved: help.ips,
        }
    }
}
