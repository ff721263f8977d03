//! A PostgreSQL server, to which many nodes write.
//!
//! Each process that writes has a row in `sealway.writer` with the number of its last batch. One statement raises that number and
//! adds what is in the batch, or does neither: a batch that comes a second time, because the answer to the first was lost,
//! finds its number taken.

mod server;
mod tls;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::pending::Batch;
use crate::{Ask, Error, KEPT_DAYS, Node, SCHEMA, Sum};

pub use server::{Server, Session};

/// How long the server may take to connect, and for each answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// How often what is old is deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 3600);

/// The tables. Several may make them at once: the lock is let go of with the transaction.
const TABLES: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(6009017265417257804);
    CREATE SCHEMA IF NOT EXISTS sealway;
    CREATE TABLE IF NOT EXISTS sealway.version (version int NOT NULL);
    CREATE TABLE IF NOT EXISTS sealway.used (
        person text NOT NULL,
        since bigint NOT NULL,
        node text NOT NULL,
        up bigint NOT NULL,
        down bigint NOT NULL,
        PRIMARY KEY (person, since, node)
    );
    CREATE INDEX IF NOT EXISTS used_since ON sealway.used (since);
    CREATE TABLE IF NOT EXISTS sealway.writer (
        run bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        node text NOT NULL,
        batch bigint NOT NULL DEFAULT 0,
        seen timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO sealway.version SELECT 1 WHERE NOT EXISTS (SELECT FROM sealway.version);
    COMMIT";

/// True in the answer: the process is known, so the batch is in the sums, now or since an earlier time.
const WRITE: &str = "
    WITH fresh AS (
        UPDATE sealway.writer SET batch = $2, seen = now() WHERE run = $1 AND batch < $2 RETURNING run
    ), added AS (
        INSERT INTO sealway.used (person, since, node, up, down)
        SELECT r.person, r.since, $3, r.up, r.down
        FROM fresh, unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) AS r (person, since, up, down)
        ON CONFLICT (person, since, node) DO UPDATE SET up = used.up + excluded.up, down = used.down + excluded.down
        RETURNING 1
    )
    SELECT EXISTS (SELECT FROM sealway.writer WHERE run = $1)";

const READ: &str = "
    SELECT coalesce(sum(used.up), 0)::bigint, coalesce(sum(used.down), 0)::bigint
    FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS asked (person, since, place)
    LEFT JOIN sealway.used ON used.person = asked.person AND used.since >= asked.since
    GROUP BY asked.place ORDER BY asked.place";

/// Parameters of a statement, with their types.
type Values<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// The server, connected to when something is asked of it.
#[derive(Debug)]
pub(crate) struct Postgres {
    server: Server,
    node: Node,
    session: Option<Session>,
    /// By what number the server knows this process.
    run: Option<i64>,
    pruned: Option<Instant>,
}

impl Postgres {
    pub(crate) fn new(server: Server, node: Node) -> Self {
        Postgres {
            server,
            node,
            session: None,
            run: None,
            pruned: None,
        }
    }

    /// Connects, unless that has been done and holds.
    pub(crate) async fn connect(&mut self) -> Result<(), Error> {
        if self
            .session
            .as_ref()
            .is_some_and(|session| !session.client().is_closed())
        {
            return Ok(());
        }
        self.session = None;
        let open = async {
            let session = self.server.connect().await?;
            self.migrate(&session).await?;
            Ok(session)
        };
        self.session = Some(timeout(PATIENCE, open).await.unwrap_or_else(|_| Err(late()))?);
        Ok(())
    }

    async fn migrate(&self, session: &Session) -> Result<(), Error> {
        let is_there = "SELECT to_regclass('sealway.version') IS NOT NULL, current_setting('server_encoding')";
        let row = session
            .client()
            .query_typed_one(is_there, &[])
            .await
            .map_err(server::fault)?;
        let encoding: &str = value(&row, 1)?;
        if !["UTF8", "SQL_ASCII"].contains(&encoding) {
            // One name that it cannot hold would keep back all that are written with it.
            return Err(Error::Refused(format!(
                "its encoding is {encoding}, which cannot hold every name: make one with ENCODING 'UTF8'"
            )));
        }
        if !value::<bool>(&row, 0)? {
            session.client().batch_execute(TABLES).await.map_err(server::fault)?;
        }
        let version = "SELECT max(version) FROM sealway.version";
        let row = session
            .client()
            .query_typed_one(version, &[])
            .await
            .map_err(server::fault)?;
        match value::<Option<i32>>(&row, 0)? {
            Some(SCHEMA) => Ok(()),
            Some(version) if version > SCHEMA => Err(Error::Newer {
                store: self.server.to_string(),
                version,
            }),
            _ => Err(Error::Foreign(format!("the schema sealway of {}", self.server))),
        }
    }

    /// One statement. After a failure the connection is not used any more: nobody knows what of it was done.
    async fn query(&mut self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.connect().await?;
        let session = self.session.take().ok_or_else(late)?;
        let answer = timeout(PATIENCE, session.client().query_typed(statement, values)).await;
        let rows = answer.map_err(|_| late())?.map_err(server::fault)?;
        self.session = Some(session);
        Ok(rows)
    }

    /// Adds a batch, once however often it is asked for.
    pub(crate) async fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        let users: Vec<&str> = batch.rows.iter().map(|row| row.user.as_str()).collect();
        let sinces: Vec<i64> = batch.rows.iter().map(|row| row.since).collect();
        let ups: Vec<i64> = batch.rows.iter().map(|row| row.up).collect();
        let downs: Vec<i64> = batch.rows.iter().map(|row| row.down).collect();
        // The row of a process that was silent for a month is gone. It gets another.
        for _ in 0..2 {
            let run = self.run().await?;
            let node = self.node.as_str().to_owned();
            let values: Values<'_> = &[
                (&run, Type::INT8),
                (&batch.number, Type::INT8),
                (&node, Type::TEXT),
                (&users, Type::TEXT_ARRAY),
                (&sinces, Type::INT8_ARRAY),
                (&ups, Type::INT8_ARRAY),
                (&downs, Type::INT8_ARRAY),
            ];
            let rows = self.query(WRITE, values).await?;
            if rows.first().map_or(Ok(false), |row| value(row, 0))? {
                self.prune().await;
                return Ok(());
            }
            self.run = None;
        }
        Err(Error::Refused(
            "the row of this process in sealway.writer does not stay".to_owned(),
        ))
    }

    /// Deletes what is old, once a day. What has been written stays so if this fails.
    async fn prune(&mut self) {
        if self.pruned.is_some_and(|at| at.elapsed() <= PRUNE_EVERY) {
            return;
        }
        self.pruned = Some(Instant::now());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let oldest = i64::try_from(now).unwrap_or(0) - i64::from(KEPT_DAYS) * 86_400;
        let old_sums = "DELETE FROM sealway.used WHERE since < $1";
        let old_writers = "DELETE FROM sealway.writer WHERE seen < now() - interval '30 days'";
        let done = async {
            self.query(old_sums, &[(&oldest, Type::INT8)]).await?;
            self.query(old_writers, &[]).await
        };
        if let Err(error) = done.await {
            tracing::warn!("{}: what is old is not deleted: {error}", self.server);
        }
    }

    /// The number of this process, asked for once.
    async fn run(&mut self) -> Result<i64, Error> {
        if let Some(run) = self.run {
            return Ok(run);
        }
        let node = self.node.as_str().to_owned();
        let claim = "INSERT INTO sealway.writer (node) VALUES ($1) RETURNING run";
        let rows = self.query(claim, &[(&node, Type::TEXT)]).await?;
        let run = rows.first().map(|row| value(row, 0)).ok_or_else(late)??;
        self.run = Some(run);
        Ok(run)
    }

    pub(crate) async fn read(&mut self, asked: &[Ask]) -> Result<Vec<Sum>, Error> {
        let users: Vec<&str> = asked.iter().map(|ask| ask.user.as_str()).collect();
        let sinces: Vec<i64> = asked.iter().map(|ask| ask.since).collect();
        let values: Values<'_> = &[(&users, Type::TEXT_ARRAY), (&sinces, Type::INT8_ARRAY)];
        let rows = self.query(READ, values).await?;
        let sum = |row: &Row| {
            let (up, down): (i64, i64) = (value(row, 0)?, value(row, 1)?);
            Ok(Sum {
                up: up.try_into().unwrap_or(0),
                down: down.try_into().unwrap_or(0),
            })
        };
        rows.iter().map(sum).collect()
    }
}

/// A column of an answer.
fn value<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Error> {
    row.try_get(at).map_err(server::fault)
}

fn late() -> Error {
    Error::Away(format!("no answer within {} s", PATIENCE.as_secs()))
}

#[cfg(test)]
mod tests;
