//! What the store's verbs do to Postgres: one statement a batch, over arrays.

use super::keys::{release_keys, take_keys, take_keys_back};
use super::partitions;
use super::pipeline::{self, Pipeline};
use crate::store::insert::{KeyRow, Plan};
use crate::store::save::{
    ClaimColumns, KeyMove, Route, first_of_each, keys_released_by_start, start_all, sweep_all,
};
use crate::store::sql::postgres as sql;
use crate::store::{
    ApiKey, Change, Inserted, JobFilter, Logged, NewJob, PausedQueue, Prune, Saved, StoreError, Stored, Take,
    Taken, TermsOfKinds, rows,
};
use deadpool_postgres::Client;
use std::collections::{BTreeMap, HashMap, HashSet};
use tidings_core::fact::Act;
use tidings_core::id::JobId;
use tidings_core::job::{Job, Priority};
use tidings_core::time::Time;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row, Transaction};
use uuid::Uuid;

pub(super) type Result<T> = std::result::Result<T, StoreError>;
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

const RANKS: [i16; 4] = [1, 2, 3, 4];
const _: () = assert!(RANKS[0] == Priority::FIRST.get() && RANKS[3] == Priority::LAST.get());

/// Where a statement runs: a pooled connection or transaction, which remembers
/// prepared statements, or a caller's own transaction, which does not.
pub(super) trait Run: Sync {
    fn rows(&self, text: &str, values: Values<'_>) -> impl Future<Output = Result<Vec<Row>>> + Send;
}

impl Run for Client {
    async fn rows(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let statement = self.prepare_cached(text).await.map_err(StoreError::from)?;
        self.query(&statement, values).await.map_err(StoreError::from)
    }
}

impl Run for deadpool_postgres::Transaction<'_> {
    async fn rows(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        let statement = self.prepare_cached(text).await.map_err(StoreError::from)?;
        self.query(&statement, values).await.map_err(StoreError::from)
    }
}

impl Run for Transaction<'_> {
    async fn rows(&self, text: &str, values: Values<'_>) -> Result<Vec<Row>> {
        self.query(text, values).await.map_err(StoreError::from)
    }
}

pub(super) async fn now(db: &Client) -> Result<Time> {
    let rows = db.rows(sql::now_ms, &[]).await?;
    Ok(Time(rows.first().map_or(0, |row| row.get(0))))
}

/// Inserts jobs inside the caller's transaction.
///
/// # Errors
/// When the database refuses or cannot write; the transaction is then to be rolled back.
pub async fn insert(tx: &Transaction<'_>, jobs: Vec<NewJob>) -> Result<Vec<Inserted>> {
    insert_on(tx, Plan::new(jobs)).await
}

pub(super) async fn insert_batch(client: &mut Client, jobs: Vec<NewJob>) -> Result<Vec<Inserted>> {
    let plan = Plan::new(jobs);
    if !plan.has_keys() {
        // One statement is a transaction already.
        return insert_on(&*client, plan).await;
    }
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let inserted = insert_on(&tx, plan).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(inserted)
}

pub(super) async fn insert_on(db: &impl Run, mut plan: Plan) -> Result<Vec<Inserted>> {
    if plan.has_keys() {
        let held = take_keys(db, &plan.idempotency_keys()).await?;
        plan.idempotency_lost(&held);
        let held = take_keys(db, &plan.unique_keys()).await?;
        let (from, to): (Vec<Uuid>, Vec<Uuid>) =
            plan.unique_lost(&held).into_iter().map(|(from, to)| (from.0, to.0)).unzip();
        if !from.is_empty() {
            db.rows(sql::repoint_keys, &[&from, &to]).await?;
        }
    }
    insert_rows(db, &plan).await?;
    Ok(plan.results())
}

async fn insert_rows(db: &impl Run, plan: &Plan) -> Result<()> {
    let new: Vec<&NewJob> = plan.rows().collect();
    if new.is_empty() {
        return Ok(());
    }
    let column = |n: &NewJob| n.job.unique.map(|unique| unique.key_hash.0.to_vec());
    db.rows(
        sql::insert_jobs,
        &[
            &new.iter().map(|n| n.job.id.0).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.kind.as_str()).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.queue.as_str()).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.priority.get()).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.tenant.as_str()).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.enqueued_at.0).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.run_at.0).collect::<Vec<_>>(),
            &new.iter().map(|n| column(n)).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.unique.map(|unique| unique.states.to_bits())).collect::<Vec<_>>(),
            &new.iter().map(|n| &*n.args).collect::<Vec<_>>(),
            &new.iter().map(|n| n.job.state.due_at().map(|due| due.0)).collect::<Vec<_>>(),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn load(client: &mut Client, ids: &[JobId]) -> Result<Vec<Option<Stored>>> {
    let mut found = HashMap::new();
    find(client, ids, &mut found).await?;
    if ids.iter().any(|id| !found.contains_key(id)) {
        // One may have come back from the finished table between the two statements.
        let snapshot = snapshot(client).await?;
        find(&snapshot, ids, &mut found).await?;
    }
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

/// Adds those of `ids` that are not found yet.
async fn find(db: &impl Run, ids: &[JobId], found: &mut HashMap<JobId, Stored>) -> Result<()> {
    for (text, read) in [(sql::load_live, live_row as fn(&Row) -> _), (sql::load_finished, finished_row)] {
        let missing: Vec<Uuid> = ids.iter().filter(|id| !found.contains_key(id)).map(|id| id.0).collect();
        if missing.is_empty() {
            break;
        }
        for row in db.rows(text, &[&missing]).await? {
            let stored: Stored = read(&row)?;
            found.insert(stored.job.id, stored);
        }
    }
    Ok(())
}

/// A transaction whose statements all see the same moment.
async fn snapshot(client: &mut Client) -> Result<deadpool_postgres::Transaction<'_>> {
    let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    snapshot.start().await.map_err(StoreError::from)
}

pub(super) async fn take_due(client: Client, take: &Take) -> Result<Taken> {
    let statements = [sql::take_due, sql::claim_jobs, sql::release_keys, sql::next_due];
    pipeline::prepare(&client, &statements).await?;
    let (tx, first) = Pipeline::begin(client, async |db: &Client| due(db, take, take.limit).await).await?;
    let mut reading = Reading::new(take.limit);
    reading.read(&first, live_row);
    while let Some(more) = reading.ask {
        reading.read(&due(tx.client(), take, more).await?, live_row);
    }
    let started = start_all(reading.jobs, take);
    let keys = keys_released_by_start(&started);
    let next_due = tx
        .commit(async |db: &Client| {
            let fewer = started.len() < take.limit;
            // Each is one statement, so that all are on their way before the commit is.
            let (claimed, released, next_due) =
                futures_util::future::join3(claim(db, take, &started), release_keys(db, &keys), async {
                    if fewer { next_due(db, take).await } else { Ok(None) }
                })
                .await;
            claimed.and(released).and(next_due)
        })
        .await?;
    Ok(Taken { started, next_due })
}

async fn due(db: &Client, take: &Take, limit: usize) -> Result<Vec<Row>> {
    let (limit, names) = (count(limit), take.terms.names());
    db.rows(sql::take_due, &[&take.queue, &take.now.0, &names, &limit, &RANKS.as_slice()]).await
}

async fn claim(db: &impl Run, take: &Take, started: &[Stored]) -> Result<()> {
    if started.is_empty() {
        return Ok(());
    }
    let claims: Vec<(Uuid, ClaimColumns)> = started
        .iter()
        .map(|stored| (stored.job.id.0, ClaimColumns::of(&stored.job).expect("a started job has a claim")))
        .collect();
    db.rows(
        sql::claim_jobs,
        &[
            &take.worker.0,
            &take.now.0,
            &claims.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
            &claims.iter().map(|(_, claim)| claim.version).collect::<Vec<_>>(),
            &claims.iter().map(|(_, claim)| claim.due_at_ms).collect::<Vec<_>>(),
            &claims.iter().map(|(_, claim)| claim.came_from).collect::<Vec<_>>(),
            &claims.iter().map(|(_, claim)| rows::on_unknown_word(claim.on_unknown)).collect::<Vec<_>>(),
            &claims.iter().map(|(_, claim)| claim.claims).collect::<Vec<_>>(),
        ],
    )
    .await?;
    Ok(())
}

async fn next_due(db: &impl Run, take: &Take) -> Result<Option<Time>> {
    let rows = db.rows(sql::next_due, &[&take.queue, &RANKS.as_slice(), &take.now.0]).await?;
    Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(Time))
}

pub(super) async fn sweep(
    client: &mut Client,
    now: Time,
    queues: &[String],
    limit: usize,
    terms: &TermsOfKinds,
) -> Result<Vec<Change>> {
    let tx = client.transaction().await.map_err(StoreError::from)?;
    let mut expired = Reading::new(limit);
    while let Some(limit) = expired.ask {
        let values: Values<'_> = &[&queues, &now.0, &terms.names(), &count(limit)];
        expired.read(&tx.rows(sql::take_expired, values).await?, live_row);
    }
    let changes = sweep_all(&expired.jobs, now, terms);
    let saved = save(&tx, &changes).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(changes
        .into_iter()
        .zip(saved)
        .filter(|(_, saved)| *saved == Saved::Yes)
        .map(|(change, _)| change)
        .collect())
}

pub(super) async fn save_batch(client: &mut Client, changes: &[Change]) -> Result<Vec<Saved>> {
    let route = changes.first().map(Change::route);
    let keys = changes.iter().any(|change| change.key_move() != KeyMove::None);
    if !keys && changes.iter().all(|change| Some(change.route()) == route) {
        // One statement is a transaction already.
        return save(&*client, changes).await;
    }
    let tx = client.transaction().await.map_err(StoreError::from)?;
    lock(&tx, changes).await?;
    let saved = save(&tx, changes).await?;
    tx.commit().await.map_err(StoreError::from)?;
    Ok(saved)
}

/// Locks the rows of a batch that takes several statements, by id, and before any
/// key: two batches that overlap then wait for one another, but never in a circle.
async fn lock(db: &impl Run, changes: &[Change]) -> Result<()> {
    const LIVE: &str = "SELECT FROM tidings.job WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";
    const FINISHED: &str =
        "SELECT FROM tidings.finished_job WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";
    for (text, finished) in [(LIVE, false), (FINISHED, true)] {
        let of_table = changes.iter().filter(|change| change.was_finished == finished);
        let ids: Vec<Uuid> = of_table.map(|change| change.after.id.0).collect();
        if !ids.is_empty() {
            db.rows(text, &[&ids]).await?;
        }
    }
    Ok(())
}

async fn save(db: &impl Run, changes: &[Change]) -> Result<Vec<Saved>> {
    let first = first_of_each(changes);
    let mut saved = vec![Saved::Conflict; changes.len()];
    let keys = take_keys_back(db, changes, &first).await?;
    for (index, holder) in &keys.lost {
        saved[*index] = Saved::KeyTaken(*holder);
    }
    // By id, like everybody who locks rows.
    let mut order: Vec<usize> = (0..changes.len()).filter(|index| first.contains(index)).collect();
    order.sort_by_key(|index| changes[*index].after.id);
    let mut by_route: BTreeMap<Route, Vec<usize>> = BTreeMap::new();
    for index in order.into_iter().filter(|index| saved[*index] == Saved::Conflict) {
        by_route.entry(changes[index].route()).or_default().push(index);
    }
    for (route, indexes) in by_route {
        let group: Vec<&Change> = indexes.iter().map(|index| &changes[*index]).collect();
        let written: HashSet<Uuid> = write(db, route, &group).await?;
        for index in indexes.into_iter().filter(|index| written.contains(&changes[*index].after.id.0)) {
            saved[index] = Saved::Yes;
        }
    }
    let given_up = (0..changes.len()).filter(|index| match saved[*index] {
        Saved::Yes => changes[*index].key_move() == KeyMove::Released,
        Saved::Conflict => keys.taken.contains(index),
        Saved::KeyTaken(_) => false,
    });
    let given_up: Vec<KeyRow> = given_up.filter_map(|index| KeyRow::unique(&changes[index].after)).collect();
    release_keys(db, &given_up).await?;
    Ok(saved)
}

/// Writes the changes of one route with one statement; the jobs that were written.
async fn write(db: &impl Run, route: Route, group: &[&Change]) -> Result<HashSet<Uuid>> {
    let written = match route {
        Route::Live => write_live(db, sql::save_live, group).await?,
        Route::Revives => write_live(db, sql::save_revived, group).await?,
        Route::Finishes => write_finished(db, sql::save_finished, group).await?,
        Route::Amends => write_finished(db, sql::save_amended, group).await?,
    };
    Ok(written.iter().map(|row| row.get(0)).collect())
}

/// The facts of a group as columns.
struct Facts {
    job_ids: Vec<Uuid>,
    versions: Vec<i64>,
    at_ms: Vec<i64>,
    names: Vec<&'static str>,
    bodies: Vec<String>,
}

impl Facts {
    fn of(group: &[&Change]) -> Facts {
        let mut facts =
            Facts { job_ids: vec![], versions: vec![], at_ms: vec![], names: vec![], bodies: vec![] };
        for change in group {
            for line in &change.logged {
                facts.job_ids.push(change.after.id.0);
                facts.versions.push(line.version);
                facts.at_ms.push(line.at.0);
                facts.names.push(line.fact.name());
                facts.bodies.push(rows::fact_to_text(&line.fact));
            }
        }
        facts
    }
}

async fn write_live(db: &impl Run, text: &str, group: &[&Change]) -> Result<Vec<Row>> {
    let live: Vec<rows::Live> = group.iter().map(|change| rows::live(&change.after)).collect();
    let facts = Facts::of(group);
    db.rows(
        text,
        &[
            &group.iter().map(|change| change.after.id.0).collect::<Vec<_>>(),
            &group.iter().map(|change| change.before_version).collect::<Vec<_>>(),
            &live.iter().map(|row| row.version).collect::<Vec<_>>(),
            &live.iter().map(|row| row.state).collect::<Vec<_>>(),
            &live.iter().map(|row| row.due_at_ms).collect::<Vec<_>>(),
            &live.iter().map(|row| row.due_rank).collect::<Vec<_>>(),
            &live.iter().map(|row| row.worker).collect::<Vec<_>>(),
            &live.iter().map(|row| row.started_at_ms).collect::<Vec<_>>(),
            &live.iter().map(|row| row.came_from).collect::<Vec<_>>(),
            &live.iter().map(|row| row.on_unknown).collect::<Vec<_>>(),
            &live.iter().map(|row| row.cancel_requested).collect::<Vec<_>>(),
            &live.iter().map(|row| row.accepted_late).collect::<Vec<_>>(),
            &live.iter().map(|row| row.counts.claims).collect::<Vec<_>>(),
            &live.iter().map(|row| row.counts.attempts).collect::<Vec<_>>(),
            &live.iter().map(|row| row.counts.snoozes).collect::<Vec<_>>(),
            &live.iter().map(|row| row.counts.crashes).collect::<Vec<_>>(),
            &facts.job_ids,
            &facts.versions,
            &facts.at_ms,
            &facts.names,
            &facts.bodies,
        ],
    )
    .await
}

async fn write_finished(db: &impl Run, text: &str, group: &[&Change]) -> Result<Vec<Row>> {
    let finished: Vec<rows::Finished> = group
        .iter()
        .map(|change| {
            let at = change.after.state.finished_at().expect("this route ends in a finished state");
            rows::finished(&change.after, at)
        })
        .collect();
    let facts = Facts::of(group);
    db.rows(
        text,
        &[
            &group.iter().map(|change| change.after.id.0).collect::<Vec<_>>(),
            &group.iter().map(|change| change.before_version).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.version).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.state).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.finished_at_ms).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.counts.claims).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.counts.attempts).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.counts.snoozes).collect::<Vec<_>>(),
            &finished.iter().map(|row| row.counts.crashes).collect::<Vec<_>>(),
            &facts.job_ids,
            &facts.versions,
            &facts.at_ms,
            &facts.names,
            &facts.bodies,
        ],
    )
    .await
}

pub(super) async fn history(db: &Client, ids: &[JobId]) -> Result<Vec<Vec<Logged>>> {
    let wanted: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let mut by_job: HashMap<JobId, Vec<Logged>> = HashMap::new();
    for row in db.rows(sql::history, &[&wanted]).await? {
        let id: Uuid = row.get(0);
        let fact = rows::text_to_fact(id, row.get(3))?;
        by_job.entry(JobId(id)).or_default().push(Logged { version: row.get(1), at: Time(row.get(2)), fact });
    }
    Ok(ids.iter().map(|id| by_job.get(id).cloned().unwrap_or_default()).collect())
}

pub(super) async fn list(client: &mut Client, filter: &JobFilter) -> Result<Vec<Job>> {
    let state = filter.state.map_or("", |state| state.as_str());
    let before = filter.before.map_or(Uuid::max(), |id| id.0);
    // A job that moves between the tables meanwhile is listed once.
    let snapshot = snapshot(client).await?;
    let mut jobs = Vec::new();
    for (text, read) in [(sql::list_live, live_row as fn(&Row) -> _), (sql::list_finished, finished_row)] {
        let mut listed = Reading::new(filter.limit);
        while let Some(limit) = listed.ask {
            let values: Values<'_> =
                &[&state, &filter.kind, &filter.queue, &filter.tenant, &before, &count(limit)];
            listed.read(&snapshot.rows(text, values).await?, read);
        }
        jobs.extend(listed.jobs.into_iter().map(|stored| stored.job));
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
    jobs.truncate(filter.limit);
    Ok(jobs)
}

pub(super) async fn pause(db: &Client, queue: &str, at: Time, act: &Act) -> Result<()> {
    db.rows(sql::pause_queue, &[&queue, &at.0, &act.actor, &act.reason]).await.map(drop)
}

pub(super) async fn resume(db: &Client, queue: &str) -> Result<()> {
    db.rows(sql::resume_queue, &[&queue]).await.map(drop)
}

pub(super) async fn paused(db: &Client) -> Result<Vec<PausedQueue>> {
    let rows = db.rows(sql::paused_queues, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| PausedQueue {
            queue: row.get(0),
            paused_at: Time(row.get(1)),
            act: Act { actor: row.get(2), reason: row.get(3) },
        })
        .collect())
}

pub(super) async fn prune(client: &mut Client, what: Prune, limit: usize) -> Result<u64> {
    let (text, values): (&str, Values<'_>) = match &what {
        Prune::Facts(before) => return prune_facts(client, *before, limit).await,
        Prune::Finished(state, before) => (sql::prune_finished, &[&state.as_str(), &before.0, &count(limit)]),
        Prune::Keys(before) => (sql::prune_keys, &[&before.0, &count(limit)]),
        Prune::Events(before) => (sql::prune_events, &[&before.0, &count(limit)]),
    };
    let statement = client.prepare_cached(text).await.map_err(StoreError::from)?;
    client.execute(&statement, values).await.map_err(StoreError::from)
}

/// Whole weeks at once, then what lies outside of any week's partition.
async fn prune_facts(client: &mut Client, before: Time, limit: usize) -> Result<u64> {
    let dropped = partitions::drop_before(client, before).await?;
    client.rows(sql::raise_fact_horizon, &[&before.0]).await?;
    let statement = client.prepare_cached(sql::prune_facts).await.map_err(StoreError::from)?;
    Ok(dropped + client.execute(&statement, &[&before.0, &count(limit)]).await.map_err(StoreError::from)?)
}

pub(super) async fn keep_policy(db: &Client, name: &str, version: u32, body: &str) -> Result<String> {
    let version = i64::from(version);
    db.rows(sql::keep_policy, &[&name, &version, &body]).await?;
    let rows = db.rows(sql::find_policy, &[&name, &version]).await?;
    rows.first()
        .map(|row| row.get(0))
        .ok_or_else(|| corrupt(name, "the policy was removed while it was kept"))
}

pub(super) async fn add_api_key(db: &Client, key: &ApiKey, at: Time) -> Result<()> {
    let hash: &[u8] = &key.hash.0;
    db.rows(sql::insert_api_key, &[&key.id, &hash, &key.scope, &key.tenant, &at.0]).await.map(drop)
}

pub(super) async fn api_keys(db: &Client) -> Result<Vec<ApiKey>> {
    let rows = db.rows(sql::list_api_keys, &[]).await?;
    rows.iter()
        .map(|row| {
            let hash = rows::key_hash(row.get(1))
                .ok_or_else(|| corrupt("an API key", "a hash of the wrong length"))?;
            Ok(ApiKey { id: row.get(0), hash, scope: row.get(2), tenant: row.get(3) })
        })
        .collect()
}

/// The first `limit` rows that read as jobs. One that does not is named in the log
/// and left alone: it must not stop the others. Where such rows filled what was
/// asked for, more is asked for.
struct Reading {
    limit: usize,
    /// How many rows to ask for; `None` when the jobs are complete.
    ask: Option<usize>,
    jobs: Vec<Stored>,
}

impl Reading {
    fn new(limit: usize) -> Reading {
        Reading { limit, ask: Some(limit), jobs: Vec::new() }
    }

    /// Reads what was asked for.
    fn read(&mut self, rows: &[Row], read: fn(&Row) -> Result<Stored>) {
        let left_alone = |problem: &StoreError| tracing::error!(%problem, "a job is left alone");
        self.jobs = rows.iter().filter_map(|row| read(row).inspect_err(left_alone).ok()).collect();
        let there_may_be_more = self.ask.is_some_and(|asked| rows.len() >= asked);
        // More each time, so it ends.
        self.ask = (there_may_be_more && self.jobs.len() < self.limit)
            .then(|| self.limit + (rows.len() - self.jobs.len()));
    }
}

fn live_row(row: &Row) -> Result<Stored> {
    let read = rows::LiveRead {
        version: row.get(10),
        state: row.get(11),
        due_at_ms: row.get(12),
        worker: row.get(14),
        started_at_ms: row.get(15),
        came_from: row.get(16),
        on_unknown: row.get(17),
        cancel_requested: row.get(18),
        accepted_late: row.get(19),
        counts: counts(row, 20),
    };
    rows::live_job(fixed(row), &read)
}

fn finished_row(row: &Row) -> Result<Stored> {
    let read = rows::FinishedRead {
        version: row.get(10),
        state: row.get(11),
        finished_at_ms: row.get(12),
        counts: counts(row, 13),
    };
    rows::finished_job(fixed(row), &read)
}

fn fixed(row: &Row) -> rows::Fixed {
    rows::Fixed {
        id: row.get(0),
        kind: row.get(1),
        queue: row.get(2),
        priority: row.get(3),
        tenant: row.get(4),
        enqueued_at_ms: row.get(5),
        run_at_ms: row.get(6),
        unique_key_hash: row.get(7),
        unique_states: row.get(8),
        args: row.get(9),
    }
}

fn counts(row: &Row, at: usize) -> rows::Counts {
    rows::Counts {
        claims: row.get(at),
        attempts: row.get(at + 1),
        snoozes: row.get(at + 2),
        crashes: row.get(at + 3),
    }
}

/// A limit as SQL takes it.
pub(super) fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

pub(super) fn corrupt(row: &str, what: &str) -> StoreError {
    StoreError::CorruptRow { row: row.to_owned(), what: what.to_owned() }
}
