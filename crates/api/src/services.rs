//! The services.

mod handler;
mod routing;
mod stats;

use sealway_proxy::{Control, Refusal};
use tonic::{Request, Response, Status};

use crate::compiled::Refused;
use crate::proto::xray::app::log::command::logger_service_server::LoggerService;
use crate::proto::xray::app::log::command::{RestartLoggerRequest, RestartLoggerResponse};
use crate::proto::xray::core::app::observatory::command::observatory_service_server::ObservatoryService;
use crate::proto::xray::core::app::observatory::command::{GetOutboundStatusRequest, GetOutboundStatusResponse};
use crate::proto::xray::core::app::observatory::{HealthPingMeasurementResult, ObservationResult, OutboundStatus};

pub(crate) use handler::Handler;
pub(crate) use routing::Routing;
pub(crate) use stats::Stats;

#[cfg(test)]
mod tests;

impl From<Refused> for Status {
    fn from(refused: Refused) -> Status {
        match refused {
            Refused::Unsupported(_) => Status::unimplemented(refused.to_string()),
            _ => Status::unknown(refused.to_string()),
        }
    }
}

/// A refusal as Xray has it: of one kind, and told by its words.
fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Unsupported(_) => Status::unimplemented(refusal.to_string()),
        Refusal::Busy => Status::resource_exhausted(refusal.to_string()),
        _ => Status::unknown(refusal.to_string()),
    }
}

/// Looks at what may be 100,000 users where that may take its time.
async fn aside<A: Send + 'static>(
    look: impl FnOnce() -> Result<A, Status> + Send + 'static,
) -> Result<Response<A>, Status> {
    let looked = tokio::task::spawn_blocking(look).await;
    let looked = looked.map_err(|error| Status::internal(error.to_string()))?;
    looked.map(Response::new)
}

/// Opens the log files again.
pub(crate) struct Logger;

#[tonic::async_trait]
impl LoggerService for Logger {
    async fn restart_logger(
        &self,
        _: Request<RestartLoggerRequest>,
    ) -> Result<Response<RestartLoggerResponse>, Status> {
        sealway_proxy::log::reopen();
        Ok(Response::new(RestartLoggerResponse {}))
    }
}

/// What measuring outbounds has found.
pub(crate) struct Observatory(pub(crate) Control);

#[tonic::async_trait]
impl ObservatoryService for Observatory {
    async fn get_outbound_status(
        &self,
        _: Request<GetOutboundStatusRequest>,
    ) -> Result<Response<GetOutboundStatusResponse>, Status> {
        let health = self.0.stats().health();
        let status = health.into_iter().map(|(tag, health)| {
            let many = health.measured > 1;
            OutboundStatus {
                alive: health.alive,
                // What does not answer is as far away as can be said.
                delay: match health.alive {
                    true => i64::try_from(health.delay.as_millis()).unwrap_or(i64::MAX),
                    false => 99_999_999,
                },
                last_error_reason: health.last_error,
                outbound_tag: tag,
                last_seen_time: health.last_seen,
                last_try_time: health.last_try,
                health_ping: many.then(|| HealthPingMeasurementResult {
                    all: health.measured.into(),
                    fail: health.failed.into(),
                    deviation: i64::try_from(health.deviation.as_nanos()).unwrap_or(i64::MAX),
                    average: i64::try_from(health.delay.as_nanos()).unwrap_or(i64::MAX),
                    max: 0,
                    min: 0,
                }),
            }
        });
        let status = ObservationResult {
            status: status.collect(),
        };
        Ok(Response::new(GetOutboundStatusResponse { status: Some(status) }))
    }
}
