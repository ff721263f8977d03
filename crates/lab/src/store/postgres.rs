//! A PostgreSQL server, in which the machines of a fleet keep their runs together.

use std::time::Duration;

use sealway_ledger::{Error, Server, Session};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Row};

use super::kept::{COLUMNS, kept_from};
use super::{Access, Added, Backend, Kept, MOST_LISTED, SCHEMA, StoreError};

/// How long the server may take to connect, and for each answer; a result has up to 64 MiB.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tables. Several may make them at once: the lock is let go of with the transaction.
const TABLES: &str = r#"
    BEGIN;
    SELECT pg_advisory_xact_lock(6009017265417257805);
    CREATE SCHEMA IF NOT EXISTS sealway;
    CREATE TABLE IF NOT EXISTS sealway.lab_version (version int NOT NULL);
    CREATE TABLE IF NOT EXISTS sealway.lab_run (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run text NOT NULL UNIQUE,
        started text COLLATE "C" NOT NULL,
        workloads text NOT NULL,
        profile text NOT NULL,
        complete boolean NOT NULL,
        sealway text NOT NULL,
        cpu text NOT NULL,
        machine text NOT NULL,
        name text,
        branch text,
        revision text,
        result bytea NOT NULL
    );
    CREATE INDEX IF NOT EXISTS lab_run_started ON sealway.lab_run (started, id);
    INSERT INTO sealway.lab_version SELECT 1 WHERE NOT EXISTS (SELECT FROM sealway.lab_version);
    COMMIT"#;

/// No run is kept twice, however many bring it at once.
const ADD: &str = "
    WITH added AS (
        INSERT INTO sealway.lab_run
            (run, started, workloads, profile, complete, sealway, cpu, machine, name, branch, revision, result)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
        WHERE NOT EXISTS (SELECT FROM sealway.lab_run WHERE run = $1)
        ON CONFLICT (run) DO NOTHING
        RETURNING id
    )
    SELECT id FROM added";

const PRUNE: &str = "
    WITH gone AS (
        DELETE FROM sealway.lab_run WHERE name IS NULL AND id NOT IN (
            SELECT id FROM sealway.lab_run WHERE name IS NULL ORDER BY started DESC, id DESC LIMIT $1)
        RETURNING 1
    )
    SELECT count(*) FROM gone";

/// Parameters of a statement, with their types.
type Values<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// An open connection, with what drives it.
pub(super) struct Postgres {
    session: Session,
    runtime: Runtime,
}

impl Postgres {
    pub(super) fn open(server: &Server, access: Access) -> Result<Postgres, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Database(Error::Away(error.to_string())))?;
        let session = wait(&runtime, server.connect())?;
        let postgres = Postgres { session, runtime };
        let found = postgres.query("SELECT to_regclass('sealway.lab_version') IS NOT NULL", &[])?;
        match (column::<bool>(&found, 0)?, access) {
            (true, _) => {}
            (false, Access::Read) => return Err(StoreError::Missing(server.to_string())),
            (false, Access::Write) => postgres.batch(TABLES)?,
        }
        if access == Access::Read {
            postgres.batch("SET default_transaction_read_only TO on")?;
        }
        let version = postgres.query("SELECT max(version) FROM sealway.lab_version", &[])?;
        match column::<Option<i32>>(&version, 0)? {
            Some(SCHEMA) => Ok(postgres),
            Some(version) if version > SCHEMA => Err(StoreError::Newer {
                store: server.to_string(),
                version,
            }),
            _ => Err(StoreError::Foreign(format!("the schema sealway of {server}"))),
        }
    }

    fn client(&self) -> &Client {
        self.session.client()
    }

    fn query(&self, statement: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        wait(&self.runtime, async {
            Ok(self.client().query_typed(statement, values).await?)
        })
    }

    fn batch(&self, statements: &str) -> Result<(), StoreError> {
        wait(&self.runtime, async {
            Ok(self.client().batch_execute(statements).await?)
        })
    }
}

impl Backend for Postgres {
    fn add(&mut self, kept: &Kept, text: &[u8]) -> Result<Added, StoreError> {
        let label = &kept.label;
        let added = self.query(
            ADD,
            &[
                (&kept.run, Type::TEXT),
                (&kept.started, Type::TEXT),
                (&kept.workloads, Type::TEXT),
                (&kept.profile, Type::TEXT),
                (&kept.complete, Type::BOOL),
                (&kept.sealway, Type::TEXT),
                (&kept.cpu, Type::TEXT),
                (&kept.machine, Type::TEXT),
                (&label.name, Type::TEXT),
                (&label.branch, Type::TEXT),
                (&label.commit, Type::TEXT),
                (&text, Type::BYTEA),
            ],
        )?;
        if !added.is_empty() {
            return Ok(Added::New(column(&added, 0)?));
        }
        let there = self.query(
            "SELECT id FROM sealway.lab_run WHERE run = $1",
            &[(&kept.run, Type::TEXT)],
        )?;
        Ok(Added::Already(column(&there, 0)?))
    }

    fn list(&mut self) -> Result<Vec<Kept>, StoreError> {
        let list = format!("SELECT {COLUMNS} FROM sealway.lab_run ORDER BY started DESC, id DESC LIMIT $1");
        let rows = self.query(&list, &[(&i64::from(MOST_LISTED), Type::INT8)])?;
        rows.iter().map(|row| kept(row).map_err(refused)).collect()
    }

    fn kept(&mut self, id: i64) -> Result<Option<Kept>, StoreError> {
        let one = format!("SELECT {COLUMNS} FROM sealway.lab_run WHERE id = $1");
        let rows = self.query(&one, &[(&id, Type::INT8)])?;
        rows.first().map(|row| kept(row).map_err(refused)).transpose()
    }

    fn text(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self.query("SELECT result FROM sealway.lab_run WHERE id = $1", &[(&id, Type::INT8)])?;
        rows.first().map(|row| row.try_get(0).map_err(refused)).transpose()
    }

    fn delete(&mut self, id: i64) -> Result<bool, StoreError> {
        let gone = self.query(
            "DELETE FROM sealway.lab_run WHERE id = $1 RETURNING id",
            &[(&id, Type::INT8)],
        )?;
        Ok(!gone.is_empty())
    }

    fn prune(&mut self, keep: u32) -> Result<u64, StoreError> {
        let gone = self.query(PRUNE, &[(&i64::from(keep), Type::INT8)])?;
        column::<i64>(&gone, 0).map(|gone| gone.try_into().unwrap_or(0))
    }
}

/// What comes of something that is asked of the server, unless it takes too long.
fn wait<T>(runtime: &Runtime, asked: impl Future<Output = Result<T, Error>>) -> Result<T, StoreError> {
    let late = || Error::Away(format!("no answer within {} s", PATIENCE.as_secs()));
    let answer = runtime.block_on(async { timeout(PATIENCE, asked).await });
    answer.unwrap_or_else(|_| Err(late())).map_err(StoreError::Database)
}

/// A column of the one row of an answer.
fn column<'a, T: FromSql<'a>>(rows: &'a [Row], at: usize) -> Result<T, StoreError> {
    let none = || StoreError::Database(Error::Refused("an answer without a row".to_owned()));
    rows.first().ok_or_else(none)?.try_get(at).map_err(refused)
}

fn refused(error: tokio_postgres::Error) -> StoreError {
    StoreError::Database(error.into())
}

fn kept(row: &Row) -> Result<Kept, tokio_postgres::Error> {
    Ok(kept_from!(row.try_get))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sealway_ledger::testing::Real;

    use super::*;
    use crate::store::tests::{behaves, prunes, run};
    use crate::store::{Label, Place, Store};

    #[test]
    fn a_database_keeps_runs_as_a_file_does() {
        let Some(real) = Real::get() else { return };
        let place = Place::parse(&real.database("lab")).unwrap();
        behaves(&|access| Store::open(&place, access));
        let other = Place::parse(&real.database("pruned")).unwrap();
        prunes(&mut Store::open(&other, Access::Write).unwrap());
    }

    #[test]
    fn many_machines_write_at_once() {
        let Some(real) = Real::get() else { return };
        let place = Place::parse(&real.database("fleet")).unwrap();
        std::thread::scope(|scope| {
            for day in 1..=8_u32 {
                let place = &place;
                scope.spawn(move || {
                    let mut store = Store::open(place, Access::Write).unwrap();
                    // Each run comes twice, from two machines.
                    store
                        .keep(&run(day.div_ceil(2), 110.0, 100.0), &Label::default())
                        .unwrap();
                });
            }
        });
        assert_eq!(Store::open(&place, Access::Read).unwrap().list().unwrap().len(), 4);
    }

    #[test]
    fn what_is_not_ours_is_refused_and_no_password_is_shown() {
        let Some(real) = Real::get() else { return };
        let url = real.database("refused");
        let place = Place::parse(&url).unwrap();
        drop(Store::open(&place, Access::Write).unwrap());
        let refused = |place: &Place| {
            let error = Store::open(place, Access::Write).err().unwrap().to_string();
            assert!(!error.contains("hunter"), "{error}");
            error
        };
        real.sql("refused", "UPDATE sealway.lab_version SET version = 7");
        assert!(refused(&place).contains("use the newer sealway"));
        real.sql("refused", "DELETE FROM sealway.lab_version");
        assert!(refused(&place).contains("something else"));
        let wrong = Place::parse(&url.replace("hunter2", "hunter3")).unwrap();
        assert!(refused(&wrong).contains("the database refuses"));
        let nobody = Place::parse("postgres://u:hunter2@127.0.0.1:9/none").unwrap();
        assert!(refused(&nobody).contains("the database is away"));
    }
}
