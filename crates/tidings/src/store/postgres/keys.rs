//! Unique and idempotency keys: whoever inserts the row has the key.
//!
//! Taken in the order of their names, and after the rows of jobs, so that nobody
//! waits in a circle. Absent on purpose: who wins is decided in `insert`, not here.

use super::verbs::{Result, Run, corrupt};
use crate::store::insert::{Holder, Holders, KeyRow};
use crate::store::save::KeyMove;
use crate::store::sql::postgres as sql;
use crate::store::{Change, rows};
use std::collections::HashSet;
use tidings_core::id::JobId;
use uuid::Uuid;

/// Tries to take each key; those that somebody else holds, with the holder.
pub(super) async fn take_keys(db: &impl Run, keys: &[KeyRow]) -> Result<Holders> {
    let mut held = Holders::new();
    let mut wanted: Vec<&KeyRow> = keys.iter().collect();
    while !wanted.is_empty() {
        let taken = insert_keys(db, &wanted).await?;
        wanted.retain(|key| !taken.contains(&key.job_id.0));
        held.extend(find_keys(db, &wanted).await?);
        // A key that nobody has any more was given up between the two statements: once more.
        wanted.retain(|key| !held.contains_key(&key.name()));
    }
    Ok(held)
}

/// The jobs that got their key.
async fn insert_keys(db: &impl Run, keys: &[&KeyRow]) -> Result<HashSet<Uuid>> {
    let taken = db
        .rows(
            sql::take_keys,
            &[
                &keys.iter().map(|key| key.tenant.as_str()).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.scope.as_str()).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.key_hash.0.to_vec()).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.job_id.0).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.fingerprint.map(|hash| hash.0.to_vec())).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.expires_at_ms).collect::<Vec<_>>(),
            ],
        )
        .await?;
    Ok(taken.iter().map(|row| row.get(0)).collect())
}

/// Who holds these keys. A statement of its own, so that it sees what a concurrent
/// insert has committed by now.
async fn find_keys(db: &impl Run, keys: &[&KeyRow]) -> Result<Holders> {
    if keys.is_empty() {
        return Ok(Holders::new());
    }
    let held = db
        .rows(
            sql::find_keys,
            &[
                &keys.iter().map(|key| key.tenant.as_str()).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.scope.as_str()).collect::<Vec<_>>(),
                &keys.iter().map(|key| key.key_hash.0.to_vec()).collect::<Vec<_>>(),
            ],
        )
        .await?;
    held.iter()
        .map(|row| {
            let hash =
                rows::key_hash(row.get(2)).ok_or_else(|| corrupt("a key", "a hash of the wrong length"))?;
            let fingerprint = row.get::<_, Option<&[u8]>>(4).and_then(rows::key_hash);
            Ok(((row.get(0), row.get(1), hash), Holder { job_id: JobId(row.get(3)), fingerprint }))
        })
        .collect()
}

/// Unique keys that the changes of a batch reached for, by the place of the change.
pub(super) struct KeysTakenBack {
    pub(super) taken: HashSet<usize>,
    /// Jobs that cannot be revived, and who has their key.
    pub(super) lost: Vec<(usize, JobId)>,
}

/// Takes the unique keys of jobs that come back.
pub(super) async fn take_keys_back(
    db: &impl Run,
    changes: &[Change],
    first: &HashSet<usize>,
) -> Result<KeysTakenBack> {
    let mut wanted: Vec<(usize, KeyRow)> = changes
        .iter()
        .enumerate()
        .filter(|(index, change)| first.contains(index) && change.key_move() == KeyMove::Taken)
        .filter_map(|(index, change)| Some((index, KeyRow::unique(&change.after)?)))
        .collect();
    wanted.sort_by_key(|(_, key)| key.name());
    let rows: Vec<KeyRow> = wanted.iter().map(|(_, key)| key.clone()).collect();
    let held = take_keys(db, &rows).await?;
    let mut keys = KeysTakenBack { taken: HashSet::new(), lost: Vec::new() };
    for (index, key) in wanted {
        match held.get(&key.name()).map(|holder| holder.job_id) {
            None => drop(keys.taken.insert(index)),
            // Of a job that was live all the time, the key is only tried for.
            Some(holder) if holder != key.job_id && changes[index].was_finished => {
                keys.lost.push((index, holder));
            }
            Some(_) => {}
        }
    }
    Ok(keys)
}

/// One statement, or none.
pub(super) async fn release_keys(db: &impl Run, keys: &[KeyRow]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    db.rows(
        sql::release_keys,
        &[
            &keys.iter().map(|key| key.tenant.as_str()).collect::<Vec<_>>(),
            &keys.iter().map(|key| key.scope.as_str()).collect::<Vec<_>>(),
            &keys.iter().map(|key| key.key_hash.0.to_vec()).collect::<Vec<_>>(),
            &keys.iter().map(|key| key.job_id.0).collect::<Vec<_>>(),
        ],
    )
    .await?;
    Ok(())
}
