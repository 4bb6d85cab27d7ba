//! API keys: how one is made, kept and recognised.
//!
//! A key is 32 random bytes, so its SHA-256 needs no salt and no slow hash. Only
//! hashes are stored; they are compared in constant time.

use crate::problem::{Problem, Sort};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use tidings::Tidings;
use tidings::core::unique::KeyHash;
use tidings::store::{ApiKey, StoreError};

/// The id of the key that the first start makes. Fixed, so that of several
/// processes that start at once only one stores a key under it.
const FIRST_KEY: &str = "first-admin";
/// How the key of `TIDINGS_ADMIN_KEY` is called in the history of jobs.
const ENVIRONMENT_KEY: &str = "environment";
const SCOPE_ADMIN: &str = "admin";
const PREFIX: &str = "tdk_";
const RANDOM_BYTES: usize = 32;

/// How long the stored keys are remembered.
const REMEMBERED: Duration = Duration::from_secs(10);
/// How often an unknown key may have them read again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Where the first admin key comes from.
pub(crate) enum FirstKey {
    /// Made just now: to be shown, this once.
    Made(String),
    /// From the environment.
    Given,
    /// The database has keys already.
    Kept,
}

/// Makes the first admin key of a database that has none, unless one is given.
pub(crate) async fn first(tidings: &Tidings, given: Option<&str>) -> Result<FirstKey, Problem> {
    if given.is_some() {
        return Ok(FirstKey::Given);
    }
    if !tidings.store().api_keys().await?.is_empty() {
        return Ok(FirstKey::Kept);
    }
    let key = generate()?;
    let hash = hash(&key);
    let stored = ApiKey { id: FIRST_KEY.into(), hash, scope: SCOPE_ADMIN.into(), tenant: String::new() };
    tidings.store().add_api_key(&stored, tidings.now()).await?;
    // Another process may have been faster; then its key is the one, and it prints it.
    let ours =
        tidings.store().api_keys().await?.iter().any(|kept| kept.id == FIRST_KEY && same(&kept.hash, &hash));
    Ok(if ours { FirstKey::Made(key) } else { FirstKey::Kept })
}

fn generate() -> Result<String, Problem> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(Sort::Internal, format!("the system gives no random bytes for a key: {error}"))
    })?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

fn hash(key: &str) -> KeyHash {
    KeyHash(Sha256::digest(key.as_bytes()).into())
}

fn same(one: &KeyHash, other: &KeyHash) -> bool {
    one.0.ct_eq(&other.0).into()
}

/// Who calls the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The id of the key.
    pub(crate) key_id: String,
}

/// The keys that are accepted.
pub(crate) struct Keys {
    tidings: Tidings,
    given: Option<KeyHash>,
    remembered: Mutex<Remembered>,
}

struct Remembered {
    read_at: Option<Instant>,
    keys: Arc<Vec<ApiKey>>,
}

impl Keys {
    /// The stored keys, and the given one.
    pub(crate) fn new(tidings: Tidings, given: Option<&str>) -> Keys {
        let remembered = Mutex::new(Remembered { read_at: None, keys: Arc::default() });
        Keys { tidings, given: given.map(hash), remembered }
    }

    /// Whose key it is; `None` where nobody's.
    pub(crate) async fn recognise(&self, key: &str) -> Result<Option<Caller>, Problem> {
        let hash = hash(key);
        if self.given.as_ref().is_some_and(|given| same(given, &hash)) {
            return Ok(Some(Caller { key_id: ENVIRONMENT_KEY.into() }));
        }
        if let Some(found) = find(&self.stored(REMEMBERED).await?, &hash) {
            return allowed(found).map(Some);
        }
        // It may have been made since.
        find(&self.stored(LOOK_AGAIN).await?, &hash).map(allowed).transpose()
    }

    /// The stored keys, read within the last `age`.
    async fn stored(&self, age: Duration) -> Result<Arc<Vec<ApiKey>>, StoreError> {
        {
            let remembered = self.remembered();
            if remembered.read_at.is_some_and(|at| at.elapsed() < age) {
                return Ok(Arc::clone(&remembered.keys));
            }
        }
        let keys = Arc::new(self.tidings.store().api_keys().await?);
        *self.remembered() = Remembered { read_at: Some(Instant::now()), keys: Arc::clone(&keys) };
        Ok(keys)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Remembered> {
        // A panic while it was held left what was read before, which is as good.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a>(keys: &'a [ApiKey], hash: &KeyHash) -> Option<&'a ApiKey> {
    keys.iter().find(|key| same(&key.hash, hash))
}

/// Keys of narrower scopes, or of one tenant, are a newer program's: what they must
/// not do is not known here, so they do nothing.
fn allowed(key: &ApiKey) -> Result<Caller, Problem> {
    if key.scope != SCOPE_ADMIN || !key.tenant.is_empty() {
        let detail = "this program knows admin keys of all tenants only; use such a key, or a newer program";
        return Err(Problem::new(Sort::Forbidden, detail));
    }
    Ok(Caller { key_id: key.id.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_prefix_and_all_of_its_randomness() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one, other);
        for key in [one, other] {
            let random = key.strip_prefix(PREFIX).unwrap();
            assert_eq!(random.len(), 43);
            assert!(
                random.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
                "{key}"
            );
        }
    }

    #[test]
    fn a_key_of_another_scope_or_of_one_tenant_does_nothing() {
        let key = |scope: &str, tenant: &str| ApiKey {
            id: "key".into(),
            hash: hash("tdk_x"),
            scope: scope.into(),
            tenant: tenant.into(),
        };
        assert_eq!(allowed(&key("admin", "")).unwrap().key_id, "key");
        for refused in [key("read", ""), key("enqueue", ""), key("admin", "acme"), key("", "")] {
            assert_eq!(allowed(&refused).unwrap_err().sort, Sort::Forbidden);
        }
    }
}
