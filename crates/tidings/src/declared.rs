//! The declared event types, as this process knows them. A type that is missing here
//! is asked of the database before anything is refused for it.

use std::sync::{PoisonError, RwLock};
use tidings_core::event::TypeName;

#[derive(Debug, Default)]
pub(crate) struct Declared(RwLock<Vec<TypeName>>);

impl Declared {
    pub(crate) fn get(&self) -> Vec<TypeName> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, names: Vec<TypeName>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
    }
}
