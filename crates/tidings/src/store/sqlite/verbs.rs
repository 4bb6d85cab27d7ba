//! What the store's verbs do to SQLite, inside a transaction that somebody else
//! opened. The one writer makes locks and `SKIP LOCKED` unnecessary.

use super::error;
use crate::store::insert::{Holder, Holders, KeyRow, Plan};
use crate::store::save::{
    ClaimColumns, KeyMove, Route, first_of_each, keys_released_by_start, start_all, sweep_all,
};
use crate::store::sql::sqlite as sql;
use crate::store::{
    ApiKey, Change, Inserted, JobFilter, Logged, NewJob, PausedQueue, Prune, Saved, StoreError, Stored, Take,
    Taken, TermsOfKinds, rows,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tidings_core::fact::Act;
use tidings_core::id::JobId;
use tidings_core::job::{Job, Priority};
use tidings_core::time::Time;
use uuid::Uuid;

type Result<T> = std::result::Result<T, StoreError>;

const RANKS: std::ops::RangeInclusive<i16> = Priority::FIRST.get()..=Priority::LAST.get();
/// Later than every id: lists start here.
const LAST_ID: [u8; 16] = [0xff; 16];

pub(super) fn now(db: &Connection) -> Result<Time> {
    db.prepare_cached(sql::now_ms)
        .and_then(|mut now| now.query_row([], |row| row.get(0)))
        .map(Time)
        .map_err(error)
}

/// Inserts jobs inside a transaction on `db`.
///
/// # Errors
/// When the database refuses or cannot write; the caller's transaction is then to be rolled back.
pub fn insert(db: &Connection, jobs: Vec<NewJob>) -> Result<Vec<Inserted>> {
    let mut plan = Plan::new(jobs);
    if plan.has_keys() {
        let held = take_keys(db, &plan.idempotency_keys())?;
        plan.idempotency_lost(&held);
        let held = take_keys(db, &plan.unique_keys())?;
        for (from, to) in plan.unique_lost(&held) {
            execute(db, sql::repoint_keys, params![from.0, to.0])?;
        }
    }
    let mut insert = db.prepare_cached(sql::insert_jobs).map_err(error)?;
    for NewJob { job, args, .. } in plan.rows() {
        let (hash, states) =
            (job.unique.map(|unique| unique.key_hash.0), job.unique.map(|unique| unique.states.to_bits()));
        insert
            .execute(params![
                job.id.0,
                job.kind,
                job.queue,
                job.priority.get(),
                job.tenant,
                job.enqueued_at.0,
                job.run_at.0,
                hash,
                states,
                &**args,
                job.state.due_at().map(|due| due.0),
            ])
            .map_err(error)?;
    }
    Ok(plan.results())
}

/// Tries to take each key; those that somebody else holds, with the holder.
pub(super) fn take_keys(db: &Connection, keys: &[KeyRow]) -> Result<Holders> {
    let mut held = Holders::new();
    for key in keys {
        let fingerprint = key.fingerprint.map(|hash| hash.0);
        let (hash, id) = (key.key_hash.0, key.job_id.0);
        let row = params![key.tenant, key.scope, hash, id, fingerprint, key.expires_at_ms];
        if execute(db, sql::take_keys, row)? == 0 {
            let mut find = db.prepare_cached(sql::find_keys).map_err(error)?;
            let holder = find
                .query_row(params![key.tenant, key.scope, hash], |row| {
                    Ok((row.get::<_, Uuid>(3)?, row.get::<_, Option<Vec<u8>>>(4)?))
                })
                .map_err(error)?;
            let fingerprint = holder.1.as_deref().and_then(rows::key_hash);
            held.insert(key.name(), Holder { job_id: JobId(holder.0), fingerprint });
        }
    }
    Ok(held)
}

pub(super) fn load(db: &Connection, id: JobId) -> Result<Option<Stored>> {
    let live = one(db, sql::load_live, id, live_row)?;
    match live {
        Some(stored) => Ok(Some(stored)),
        None => one(db, sql::load_finished, id, finished_row),
    }
}

fn one(db: &Connection, text: &str, id: JobId, read: fn(&Row<'_>) -> Parsed) -> Result<Option<Stored>> {
    let mut query = db.prepare_cached(text).map_err(error)?;
    query.query_row([id.0], read).optional().map_err(error)?.transpose()
}

pub(super) fn take_due(db: &Connection, take: &Take) -> Result<Taken> {
    let kinds = json_list(take.terms.names());
    let mut due = Vec::new();
    for rank in RANKS {
        let room = take.limit.saturating_sub(due.len());
        let values = params![take.queue, take.now.0, kinds, rank];
        due.extend(readable(db, sql::take_due, values, live_row, room)?);
    }
    let started = start_all(due, take);
    let mut claim = db.prepare_cached(sql::claim_jobs).map_err(error)?;
    for job in started.iter().map(|stored| &stored.job) {
        let columns = ClaimColumns::of(job).expect("a started job has a claim");
        claim
            .execute(params![
                take.worker.0,
                take.now.0,
                job.id.0,
                columns.version,
                columns.due_at_ms,
                columns.came_from,
                rows::on_unknown_word(columns.on_unknown),
                columns.claims,
            ])
            .map_err(error)?;
    }
    release_keys(db, &keys_released_by_start(&started))?;
    let next_due = if started.len() < take.limit { next_due(db, take)? } else { None };
    Ok(Taken { started, next_due })
}

fn next_due(db: &Connection, take: &Take) -> Result<Option<Time>> {
    let mut query = db.prepare_cached(sql::next_due).map_err(error)?;
    let mut least: Option<i64> = None;
    for rank in RANKS {
        let due: Option<i64> = query
            .query_row(params![take.queue, rank, take.now.0], |row| row.get(0))
            .optional()
            .map_err(error)?;
        least = least.into_iter().chain(due).min();
    }
    Ok(least.map(Time))
}

pub(super) fn sweep(
    db: &Connection,
    now: Time,
    queues: &[String],
    limit: usize,
    terms: &TermsOfKinds,
) -> Result<Vec<Change>> {
    let kinds = json_list(terms.names());
    let mut changes = Vec::new();
    for queue in queues {
        let room = limit.saturating_sub(changes.len());
        let expired = readable(db, sql::take_expired, params![queue, now.0, kinds], live_row, room)?;
        changes.extend(sweep_all(&expired, now, terms));
    }
    let saved = save(db, &changes)?;
    Ok(changes
        .into_iter()
        .zip(saved)
        .filter(|(_, saved)| *saved == Saved::Yes)
        .map(|(change, _)| change)
        .collect())
}

pub(super) fn save(db: &Connection, changes: &[Change]) -> Result<Vec<Saved>> {
    let first = first_of_each(changes);
    let mut saved = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        saved.push(if first.contains(&index) { save_one(db, change)? } else { Saved::Conflict });
    }
    Ok(saved)
}

fn save_one(db: &Connection, change: &Change) -> Result<Saved> {
    let id = change.after.id.0;
    let key = KeyRow::unique(&change.after);
    let wanted = key.as_slice().iter().filter(|_| change.key_move() == KeyMove::Taken);
    let wanted: Vec<KeyRow> = wanted.cloned().collect();
    let holder = take_keys(db, &wanted)?.into_values().next().map(|holder| holder.job_id);
    if let Some(holder) = holder.filter(|holder| change.was_finished && *holder != change.after.id) {
        return Ok(Saved::KeyTaken(holder));
    }
    let before = params![id, change.before_version];
    let written = match change.route() {
        Route::Live => write_live(db, sql::save_live, change)?,
        Route::Revives => match write_live(db, sql::save_revived, change)? {
            0 => 0,
            _ => execute(db, &sql::delete_finished, before)?,
        },
        Route::Finishes => match live_args(db, change)? {
            None => 0,
            Some(args) => {
                move_to_finished(db, change, &args)?;
                execute(db, &sql::delete_live, before)?
            }
        },
        Route::Amends => amend_finished(db, change)?,
    };
    if written == 0 {
        if holder.is_none() {
            release_keys(db, &wanted)?;
        }
        return Ok(Saved::Conflict);
    }
    if change.key_move() == KeyMove::Released {
        release_keys(db, key.as_slice())?;
    }
    let mut append = db.prepare_cached(&sql::append_fact).map_err(error)?;
    for line in &change.logged {
        append
            .execute(params![id, line.version, line.at.0, line.fact.name(), rows::fact_to_text(&line.fact)])
            .map_err(error)?;
    }
    Ok(Saved::Yes)
}

fn release_keys(db: &Connection, keys: &[KeyRow]) -> Result<()> {
    for key in keys {
        execute(db, sql::release_keys, params![key.tenant, key.scope, key.key_hash.0, key.job_id.0])?;
    }
    Ok(())
}

fn write_live(db: &Connection, text: &str, change: &Change) -> Result<usize> {
    let row = rows::live(&change.after);
    let values = params![
        change.after.id.0,
        change.before_version,
        row.version,
        row.state,
        row.due_at_ms,
        row.due_rank,
        row.worker,
        row.started_at_ms,
        row.came_from,
        row.on_unknown,
        row.cancel_requested,
        row.accepted_late,
        row.counts.claims,
        row.counts.attempts,
        row.counts.snoozes,
        row.counts.crashes,
    ];
    execute(db, text, values)
}

/// The arguments of a job that is still live at the version that the change was made from.
fn live_args(db: &Connection, change: &Change) -> Result<Option<String>> {
    let mut query = db.prepare_cached(&sql::live_args).map_err(error)?;
    let before = params![change.after.id.0, change.before_version];
    query.query_row(before, |row| row.get(0)).optional().map_err(error)
}

fn move_to_finished(db: &Connection, change: &Change, args: &str) -> Result<usize> {
    let job = &change.after;
    let at = job.state.finished_at().expect("this route ends in a finished state");
    let row = rows::finished(job, at);
    let values = params![
        job.id.0,
        row.version,
        row.state,
        row.finished_at_ms,
        row.counts.claims,
        row.counts.attempts,
        row.counts.snoozes,
        row.counts.crashes,
        job.kind,
        job.queue,
        job.priority.get(),
        job.tenant,
        job.enqueued_at.0,
        job.run_at.0,
        job.unique.map(|unique| unique.key_hash.0),
        job.unique.map(|unique| unique.states.to_bits()),
        args,
    ];
    execute(db, sql::save_finished, values)
}

fn amend_finished(db: &Connection, change: &Change) -> Result<usize> {
    let at = change.after.state.finished_at().expect("this route ends in a finished state");
    let row = rows::finished(&change.after, at);
    let values = params![
        change.after.id.0,
        change.before_version,
        row.version,
        row.state,
        row.finished_at_ms,
        row.counts.claims,
        row.counts.attempts,
        row.counts.snoozes,
        row.counts.crashes,
    ];
    execute(db, sql::save_amended, values)
}

pub(super) fn history(db: &Connection, id: JobId) -> Result<Vec<Logged>> {
    let mut query = db.prepare_cached(sql::history).map_err(error)?;
    let lines = query
        .query_map([id.0], |row| Ok((row.get(1)?, row.get(2)?, row.get::<_, String>(3)?)))
        .map_err(error)?;
    lines
        .map(|line| {
            let (version, at, body) = line.map_err(error)?;
            Ok(Logged { version, at: Time(at), fact: rows::text_to_fact(id.0, &body)? })
        })
        .collect()
}

pub(super) fn list(db: &Connection, filter: &JobFilter) -> Result<Vec<Job>> {
    let state = filter.state.map_or("", |state| state.as_str());
    let before = filter.before.map_or(LAST_ID, |id| *id.0.as_bytes());
    let mut jobs = Vec::new();
    for (text, read) in
        [(&*sql::list_live, live_row as fn(&Row<'_>) -> Parsed), (&*sql::list_finished, finished_row)]
    {
        let values = params![state, filter.kind, filter.queue, filter.tenant, before, i64::MAX];
        jobs.extend(readable(db, text, values, read, filter.limit)?.into_iter().map(|stored| stored.job));
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
    jobs.truncate(filter.limit);
    Ok(jobs)
}

pub(super) fn pause(db: &Connection, queue: &str, at: Time, act: &Act) -> Result<()> {
    execute(db, &sql::pause_queue, params![queue, at.0, act.actor, act.reason]).map(drop)
}

pub(super) fn resume(db: &Connection, queue: &str) -> Result<()> {
    execute(db, &sql::resume_queue, params![queue]).map(drop)
}

pub(super) fn paused(db: &Connection) -> Result<Vec<PausedQueue>> {
    let mut query = db.prepare_cached(&sql::paused_queues).map_err(error)?;
    let paused = query.query_map([], |row| {
        let act = Act { actor: row.get(2)?, reason: row.get(3)? };
        Ok(PausedQueue { queue: row.get(0)?, paused_at: Time(row.get(1)?), act })
    });
    paused.map_err(error)?.collect::<rusqlite::Result<_>>().map_err(error)
}

pub(super) fn prune(db: &Connection, what: Prune, limit: usize) -> Result<u64> {
    let gone = match what {
        Prune::Finished(state, before) => {
            let mut delete = db.prepare_cached(sql::prune_finished).map_err(error)?;
            let ids = delete
                .query_map(params![state.as_str(), before.0, count(limit)], |row| row.get::<_, Uuid>(0))
                .map_err(error)?
                .collect::<rusqlite::Result<Vec<_>>>()
                .map_err(error)?;
            for id in &ids {
                execute(db, &sql::release_keys_of_job, params![id])?;
            }
            ids.len()
        }
        Prune::Keys(before) => execute(db, sql::prune_keys, params![before.0, count(limit)])?,
        Prune::Events(before) => super::events::prune(db, before, limit)?,
        Prune::Facts(before) => {
            execute(db, &sql::raise_fact_horizon, params![before.0])?;
            execute(db, sql::prune_facts, params![before.0, count(limit)])?
        }
    };
    Ok(gone as u64)
}

pub(super) fn keep_policy(db: &Connection, name: &str, version: u32, body: &str) -> Result<String> {
    execute(db, &sql::keep_policy, params![name, version, body])?;
    let mut find = db.prepare_cached(&sql::find_policy).map_err(error)?;
    find.query_row(params![name, version], |row| row.get(0)).map_err(error)
}

pub(super) fn add_api_key(db: &Connection, key: &ApiKey, at: Time) -> Result<()> {
    execute(db, &sql::insert_api_key, params![key.id, key.hash.0, key.scope, key.tenant, at.0]).map(drop)
}

pub(super) fn api_keys(db: &Connection) -> Result<Vec<ApiKey>> {
    let mut query = db.prepare_cached(&sql::list_api_keys).map_err(error)?;
    let keys = query.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?, row.get(3)?))
    });
    keys.map_err(error)?
        .map(|key| {
            let (id, hash, scope, tenant) = key.map_err(error)?;
            let hash = rows::key_hash(&hash).ok_or_else(|| StoreError::CorruptRow {
                row: format!("API key {id}"),
                what: "a hash of the wrong length".into(),
            })?;
            Ok(ApiKey { id, hash, scope, tenant })
        })
        .collect()
}

type Parsed = rusqlite::Result<Result<Stored>>;

/// The first `limit` rows that read as jobs. One that does not is named in the log
/// and left alone: it must not stop the others.
fn readable(
    db: &Connection,
    text: &str,
    values: &[&dyn rusqlite::ToSql],
    read: fn(&Row<'_>) -> Parsed,
    limit: usize,
) -> Result<Vec<Stored>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut query = db.prepare_cached(text).map_err(error)?;
    let mut jobs = Vec::new();
    for row in query.query_map(values, read).map_err(error)? {
        match row {
            Ok(Ok(stored)) => jobs.push(stored),
            Ok(Err(problem)) => tracing::error!(%problem, "a job is left alone"),
            Err(problem) if is_about_the_value(&problem) => {
                tracing::error!(%problem, "a job is left alone");
            }
            Err(problem) => return Err(error(problem)),
        }
        if jobs.len() == limit {
            break;
        }
    }
    Ok(jobs)
}

/// Whether the row was read, but a column does not hold what it should.
fn is_about_the_value(problem: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        problem,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}

fn live_row(row: &Row<'_>) -> Parsed {
    let read = rows::LiveRead {
        version: row.get(10)?,
        state: row.get(11)?,
        due_at_ms: row.get(12)?,
        worker: row.get(14)?,
        started_at_ms: row.get(15)?,
        came_from: row.get(16)?,
        on_unknown: row.get(17)?,
        cancel_requested: row.get(18)?,
        accepted_late: row.get(19)?,
        counts: counts(row, 20)?,
    };
    Ok(rows::live_job(fixed(row)?, &read))
}

fn finished_row(row: &Row<'_>) -> Parsed {
    let read = rows::FinishedRead {
        version: row.get(10)?,
        state: row.get(11)?,
        finished_at_ms: row.get(12)?,
        counts: counts(row, 13)?,
    };
    Ok(rows::finished_job(fixed(row)?, &read))
}

fn fixed(row: &Row<'_>) -> rusqlite::Result<rows::Fixed> {
    Ok(rows::Fixed {
        id: row.get(0)?,
        kind: row.get(1)?,
        queue: row.get(2)?,
        priority: row.get(3)?,
        tenant: row.get(4)?,
        enqueued_at_ms: row.get(5)?,
        run_at_ms: row.get(6)?,
        unique_key_hash: row.get(7)?,
        unique_states: row.get(8)?,
        args: row.get(9)?,
    })
}

fn counts(row: &Row<'_>, at: usize) -> rusqlite::Result<rows::Counts> {
    Ok(rows::Counts {
        claims: row.get(at)?,
        attempts: row.get(at + 1)?,
        snoozes: row.get(at + 2)?,
        crashes: row.get(at + 3)?,
    })
}

pub(super) fn execute(db: &Connection, text: &str, values: &[&dyn rusqlite::ToSql]) -> Result<usize> {
    db.prepare_cached(text).and_then(|mut statement| statement.execute(values)).map_err(error)
}

/// A limit as SQL takes it.
pub(super) fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

fn json_list(names: &[String]) -> String {
    serde_json::to_string(names).expect("a list of strings is JSON")
}
