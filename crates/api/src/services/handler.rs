//! Inbounds, outbounds and users.

use std::sync::Arc;

use sealway_proxy::{Control, Refusal};
use tonic::{Request, Response, Status};

use super::{aside, refused};
use crate::compiled;
use crate::options::{LISTENER, Options};
use crate::proto::canonical;
use crate::proto::handler::handler_service_server::HandlerService;
use crate::proto::handler::*;

pub(crate) struct Handler {
    control: Control,
    options: Arc<Options>,
}

impl Handler {
    pub(crate) fn new(control: Control, options: &Arc<Options>) -> Handler {
        Handler {
            control,
            options: Arc::clone(options),
        }
    }
}

/// Refuses what would have the tag of the API's own listener.
fn not_our_own(tag: &str) -> Result<(), Status> {
    match tag == LISTENER {
        true => Err(refused(Refusal::TagTaken(tag.to_owned()))),
        false => Ok(()),
    }
}

/// What is done to an inbound.
const ADD_USER: &str = "xray.app.proxyman.command.AddUserOperation";
const REMOVE_USER: &str = "xray.app.proxyman.command.RemoveUserOperation";

#[tonic::async_trait]
impl HandlerService for Handler {
    async fn add_inbound(&self, request: Request<AddInboundRequest>) -> Result<Response<AddInboundResponse>, Status> {
        let Some(given) = request.into_inner().inbound else {
            return Err(Status::unknown("the inbound is missing"));
        };
        not_our_own(&given.tag)?;
        let inbound = compiled::inbound(&given)?;
        self.control.add_inbound(inbound).await.map_err(refused)?;
        Ok(Response::new(AddInboundResponse {}))
    }

    async fn remove_inbound(
        &self,
        request: Request<RemoveInboundRequest>,
    ) -> Result<Response<RemoveInboundResponse>, Status> {
        let tag = request.into_inner().tag;
        // Its own listener is not among the inbounds that there are.
        let tag = if tag == LISTENER { String::new() } else { tag };
        self.control.remove_inbound(&tag).await.map_err(refused)?;
        Ok(Response::new(RemoveInboundResponse {}))
    }

    async fn alter_inbound(
        &self,
        request: Request<AlterInboundRequest>,
    ) -> Result<Response<AlterInboundResponse>, Status> {
        let AlterInboundRequest { tag, operation } = request.into_inner();
        let Some(operation) = operation else {
            return Err(Status::unknown("the operation is missing"));
        };
        match &*canonical(&operation.r#type) {
            ADD_USER => {
                let AddUserOperation { user } = compiled::open(&operation)?;
                let Some(user) = user else {
                    return Err(Status::unknown("the user is missing"));
                };
                self.control
                    .add_user(&tag, &compiled::new_user(user)?)
                    .map_err(refused)?;
            }
            REMOVE_USER => {
                let RemoveUserOperation { email } = compiled::open(&operation)?;
                self.control.remove_user(&tag, &email).map_err(refused)?;
            }
            other => return Err(Status::unimplemented(format!("not supported: the operation {other}"))),
        }
        Ok(Response::new(AlterInboundResponse {}))
    }

    async fn list_inbounds(
        &self,
        request: Request<ListInboundsRequest>,
    ) -> Result<Response<ListInboundsResponse>, Status> {
        let only_tags = request.into_inner().is_only_tags;
        let (all, secrets) = (self.control.inbounds(), self.options.expose_secrets);
        aside(move || {
            let all = all.iter().filter(|one| one.tag != LISTENER);
            let inbounds = all.map(|one| match only_tags {
                true => compiled::write::only_tag(&one.tag),
                false => compiled::write::inbound(one, secrets),
            });
            Ok(ListInboundsResponse {
                inbounds: inbounds.collect(),
            })
        })
        .await
    }

    async fn get_inbound_users(
        &self,
        request: Request<GetInboundUserRequest>,
    ) -> Result<Response<GetInboundUserResponse>, Status> {
        let GetInboundUserRequest { tag, email } = request.into_inner();
        let control = self.control.clone();
        aside(move || {
            let users = match email.as_str() {
                "" => control.users(&tag).map_err(refused)?,
                email => control.user(&tag, email).into_iter().collect(),
            };
            let inbounds = control.inbounds();
            let Some(inbound) = inbounds.iter().find(|one| one.tag == tag) else {
                return Err(refused(Refusal::NoHandler(tag)));
            };
            let users = users.into_iter();
            let users = users.map(|user| compiled::write::user(&inbound.protocol, user.email, user.level));
            Ok(GetInboundUserResponse { users: users.collect() })
        })
        .await
    }

    async fn get_inbound_users_count(
        &self,
        request: Request<GetInboundUserRequest>,
    ) -> Result<Response<GetInboundUsersCountResponse>, Status> {
        let count = self.control.count_users(&request.into_inner().tag).map_err(refused)?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        Ok(Response::new(GetInboundUsersCountResponse { count }))
    }

    async fn add_outbound(
        &self,
        request: Request<AddOutboundRequest>,
    ) -> Result<Response<AddOutboundResponse>, Status> {
        let Some(given) = request.into_inner().outbound else {
            return Err(Status::unknown("the outbound is missing"));
        };
        not_our_own(&given.tag)?;
        let outbound = compiled::outbound(&given)?;
        self.control.add_outbound(outbound).await.map_err(refused)?;
        Ok(Response::new(AddOutboundResponse {}))
    }

    async fn remove_outbound(
        &self,
        request: Request<RemoveOutboundRequest>,
    ) -> Result<Response<RemoveOutboundResponse>, Status> {
        let tag = request.into_inner().tag;
        self.control.remove_outbound(&tag).await.map_err(refused)?;
        Ok(Response::new(RemoveOutboundResponse {}))
    }

    async fn alter_outbound(
        &self,
        _: Request<AlterOutboundRequest>,
    ) -> Result<Response<AlterOutboundResponse>, Status> {
        Err(Status::unimplemented("not supported: operations on outbounds"))
    }

    async fn list_outbounds(
        &self,
        _: Request<ListOutboundsRequest>,
    ) -> Result<Response<ListOutboundsResponse>, Status> {
        let outbounds = self.control.outbounds();
        let outbounds = outbounds
            .iter()
            .map(|one| compiled::write::outbound(one, self.options.expose_secrets));
        Ok(Response::new(ListOutboundsResponse {
            outbounds: outbounds.collect(),
        }))
    }
}
