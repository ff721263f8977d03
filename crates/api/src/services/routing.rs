//! Rules and balancers.

use std::mem::take;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_proxy::routes::Traits;
use sealway_proxy::{Control, Decided, Decisions, Missed};
use sealway_v2ray::{Address, Destination, Network};
use tokio::sync::mpsc::{Sender, channel};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::refused;
use crate::compiled;
use crate::options::Options;
use crate::proto::routing::routing_service_server::RoutingService;
use crate::proto::routing::{
    AddRuleRequest, AddRuleResponse, BalancerMsg, GetBalancerInfoRequest, GetBalancerInfoResponse, ListRuleItem,
    ListRuleRequest, ListRuleResponse, OverrideBalancerTargetRequest, OverrideBalancerTargetResponse, OverrideInfo,
    PrincipleTargetInfo, RemoveRuleRequest, RemoveRuleResponse, RoutingContext, SubscribeRoutingStatsRequest,
    TestRouteRequest,
};
use crate::proto::{ip, ip_bytes, net};

pub(crate) struct Routing {
    control: Control,
    options: Arc<Options>,
}

impl Routing {
    pub(crate) fn new(control: Control, options: &Arc<Options>) -> Routing {
        Routing {
            control,
            options: Arc::clone(options),
        }
    }
}

fn port(number: u32) -> Result<u16, Status> {
    u16::try_from(number).map_err(|_| Status::unknown(format!("{number} is no port")))
}

/// What a connection would be known by.
fn traits(context: &RoutingContext) -> Result<Traits, Status> {
    let network = match net::Network::try_from(context.network) {
        Ok(net::Network::Udp) => Network::Udp,
        _ => Network::Tcp,
    };
    let address = |ips: &[Vec<u8>], number: u32| -> Result<Option<SocketAddr>, Status> {
        let ip = ips.iter().find_map(|bytes| ip(bytes));
        let port = port(number)?;
        Ok(ip.map(|ip| SocketAddr::new(ip, port)))
    };
    let name = Some(&context.target_domain).filter(|name| !name.is_empty());
    let target_ip = context.target_i_ps.iter().find_map(|bytes| ip(bytes));
    let host = match (target_ip, name) {
        (Some(ip), _) => Address::from(ip),
        (None, Some(name)) => Address::parse(name).map_err(|error| Status::unknown(error.to_string()))?,
        (None, None) => Address::from(IpAddr::from([0, 0, 0, 0])),
    };
    let target = Destination {
        network,
        address: host,
        port: port(context.target_port)?,
    };
    Ok(Traits {
        name: name.cloned().filter(|_| target_ip.is_some()),
        source: address(&context.source_i_ps, context.source_port)?,
        local: address(&context.local_i_ps, context.local_port)?,
        email: context.user.clone(),
        vless_route: u16::try_from(context.vless_route).ok().filter(|route| *route != 0),
        inbound: context.inbound_tag.clone(),
        protocol: Some(context.protocol.clone()).filter(|protocol| !protocol.is_empty()),
        attributes: context.attributes.clone(),
        ..Traits::of(target)
    })
}

/// A field of a context, put from one into another.
type Field = fn(&mut RoutingContext, &mut RoutingContext);

/// What can be asked for, under Xray's names.
const FIELDS: [(&str, Field); 14] = [
    ("inbound", |to, from| to.inbound_tag = take(&mut from.inbound_tag)),
    ("network", |to, from| to.network = from.network),
    ("ip_source", |to, from| to.source_i_ps = take(&mut from.source_i_ps)),
    ("ip_target", |to, from| to.target_i_ps = take(&mut from.target_i_ps)),
    ("ip_local", |to, from| to.local_i_ps = take(&mut from.local_i_ps)),
    ("port_source", |to, from| to.source_port = from.source_port),
    ("port_target", |to, from| to.target_port = from.target_port),
    ("port_local", |to, from| to.local_port = from.local_port),
    ("domain", |to, from| to.target_domain = take(&mut from.target_domain)),
    ("protocol", |to, from| to.protocol = take(&mut from.protocol)),
    ("user", |to, from| to.user = take(&mut from.user)),
    ("attributes", |to, from| to.attributes = take(&mut from.attributes)),
    ("outbound_group", |to, from| {
        to.outbound_group_tags = take(&mut from.outbound_group_tags);
    }),
    ("outbound", |to, from| to.outbound_tag = take(&mut from.outbound_tag)),
];

/// Of a context, what was asked for; all that can be, if nothing was. A selector stands for every field that begins with it: `ip`
/// for three, and the empty one for all.
fn selected(mut context: RoutingContext, selectors: &[String]) -> RoutingContext {
    let mut out = RoutingContext::default();
    for (name, put) in &FIELDS {
        if selectors.is_empty() || selectors.iter().any(|selector| name.starts_with(selector.as_str())) {
            put(&mut out, &mut context);
        }
    }
    out
}

/// What was decided, as a context.
fn context(decided: &Decided) -> RoutingContext {
    let ip = |address: Option<SocketAddr>| -> Vec<_> { address.map(|one| ip_bytes(one.ip())).into_iter().collect() };
    let port = |address: Option<SocketAddr>| address.map_or(0, |one| one.port().into());
    let target = &decided.target;
    let domain = match &target.address {
        Address::Domain(name) => Some(name.as_str()),
        _ => decided.name.as_deref(),
    };
    RoutingContext {
        inbound_tag: decided.inbound.clone(),
        network: match target.network {
            Network::Tcp => net::Network::Tcp.into(),
            Network::Udp => net::Network::Udp.into(),
        },
        source_i_ps: ip(decided.source),
        target_i_ps: target.address.ip().map(ip_bytes).into_iter().collect(),
        local_i_ps: ip(decided.local),
        source_port: port(decided.source),
        target_port: target.port.into(),
        local_port: port(decided.local),
        target_domain: domain.unwrap_or_default().to_owned(),
        protocol: decided.protocol.clone().unwrap_or_default(),
        user: decided.email.clone(),
        attributes: decided.attributes.clone(),
        outbound_group_tags: Some(decided.balancer.clone())
            .filter(|tag| !tag.is_empty())
            .into_iter()
            .collect(),
        outbound_tag: decided.outbound.clone(),
        ..RoutingContext::default()
    }
}

/// Sends decisions to a subscriber until he has gone, or until he has missed some.
async fn send_to(subscriber: Sender<Result<RoutingContext, Status>>, mut decisions: Decisions, selectors: Vec<String>) {
    loop {
        let next = tokio::select! {
            next = decisions.next() => next,
            () = subscriber.closed() => return,
        };
        let sent = match next {
            Ok(decided) => Ok(selected(context(&decided), &selectors)),
            Err(Missed::TooMany(missed)) => {
                let text = format!("the subscriber reads too slowly: {missed} decisions were dropped");
                Err(Status::resource_exhausted(text))
            }
            Err(_) => Err(Status::unavailable("Upstream closed the subscriber channel.")),
        };
        let is_last = sent.is_err();
        if subscriber.send(sent).await.is_err() || is_last {
            return;
        }
    }
}

#[tonic::async_trait]
impl RoutingService for Routing {
    type SubscribeRoutingStatsStream = ReceiverStream<Result<RoutingContext, Status>>;

    async fn subscribe_routing_stats(
        &self,
        request: Request<SubscribeRoutingStatsRequest>,
    ) -> Result<Response<Self::SubscribeRoutingStatsStream>, Status> {
        let decisions = self.control.watch_decisions().map_err(refused)?;
        let (to, from) = channel(1);
        tokio::spawn(send_to(to, decisions, request.into_inner().field_selectors));
        Ok(Response::new(ReceiverStream::new(from)))
    }

    async fn test_route(&self, request: Request<TestRouteRequest>) -> Result<Response<RoutingContext>, Status> {
        let request = request.into_inner();
        let Some(mut context) = request.routing_context else {
            return Err(Status::unknown("Invalid routing request."));
        };
        let traits = traits(&context)?;
        let routed = self.control.test_route(&traits).await.map_err(refused)?;
        if request.publish_result {
            self.control.publish(&traits, &routed);
        }
        context.outbound_tag = routed.outbound;
        context.outbound_group_tags = Some(routed.balancer)
            .filter(|tag| !tag.is_empty())
            .into_iter()
            .collect();
        Ok(Response::new(selected(context, &request.field_selectors)))
    }

    async fn get_balancer_info(
        &self,
        request: Request<GetBalancerInfoRequest>,
    ) -> Result<Response<GetBalancerInfoResponse>, Status> {
        let state = self.control.balancer(&request.into_inner().tag).map_err(refused)?;
        let balancer = BalancerMsg {
            r#override: Some(OverrideInfo {
                target: state.wanted.unwrap_or_default(),
            }),
            principle_target: Some(PrincipleTargetInfo { tag: state.picks }),
        };
        Ok(Response::new(GetBalancerInfoResponse {
            balancer: Some(balancer),
        }))
    }

    async fn override_balancer_target(
        &self,
        request: Request<OverrideBalancerTargetRequest>,
    ) -> Result<Response<OverrideBalancerTargetResponse>, Status> {
        let OverrideBalancerTargetRequest { balancer_tag, target } = request.into_inner();
        let done = self.control.override_balancer(&balancer_tag, &target).await;
        done.map_err(refused)?;
        Ok(Response::new(OverrideBalancerTargetResponse {}))
    }

    async fn add_rule(&self, request: Request<AddRuleRequest>) -> Result<Response<AddRuleResponse>, Status> {
        let AddRuleRequest { config, should_append } = request.into_inner();
        let Some(config) = config else {
            return Err(Status::unknown("the rules are missing"));
        };
        let (mut rules, balancers) = compiled::rules(&config)?;
        if !should_append {
            rules.splice(0..0, self.options.rule());
        }
        let done = self.control.add_rules(rules, balancers, should_append).await;
        done.map_err(refused)?;
        Ok(Response::new(AddRuleResponse {}))
    }

    async fn remove_rule(&self, request: Request<RemoveRuleRequest>) -> Result<Response<RemoveRuleResponse>, Status> {
        let name = request.into_inner().rule_tag;
        self.control.remove_rule(&name).await.map_err(refused)?;
        Ok(Response::new(RemoveRuleResponse {}))
    }

    async fn list_rule(&self, _: Request<ListRuleRequest>) -> Result<Response<ListRuleResponse>, Status> {
        let own = usize::from(self.options.rule().is_some());
        let rules = self.control.rules().into_iter().skip(own);
        let rules = rules.map(|rule| ListRuleItem {
            tag: rule.outbound,
            rule_tag: rule.name,
        });
        Ok(Response::new(ListRuleResponse { rules: rules.collect() }))
    }
}
