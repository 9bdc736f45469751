//! Handles: numbers that stand for objects of the library, dressed as pointers.
//!
//! ```text
//! | magic, 16 bits | generation, 24 bits | slot, 24 bits |
//! ```
//!
//! The magic is not that of an address of user space, so a program that follows a handle crashes at once, and an address is never taken for a handle. Freeing an
//! object raises the generation of its slot, so old handles do not reach the next object there. A slot whose generations are used up is retired.
//!
//! Invariant: nothing here follows a handle.

use std::any::Any;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Failure, corvid_error};

const MAGIC: u64 = 0xc05d;
const GENERATION_MAX: u32 = (1 << 24) - 1;
/// Objects at the same time; a call that would make one more reports [`corvid_error::CORVID_ERR_LIMIT`].
const SLOTS_MAX: usize = 1 << 24;

const _: () = assert!(
    size_of::<usize>() == 8,
    "a handle takes 64 bits, so this library is for such processors"
);

type Object = Arc<dyn Any + Send + Sync>;

struct Slot {
    generation: u32,
    object: Option<Object>,
}

struct Registry {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

static REGISTRY: RwLock<Registry> = RwLock::new(Registry {
    slots: Vec::new(),
    free: Vec::new(),
});

/// A type of objects, named by its opaque type in C.
pub(crate) trait Kind: Send + Sync + 'static {
    /// The opaque type.
    type Opaque;
    /// Its name in messages.
    const NAME: &'static str;
}

/// Stores an object; returns its handle.
pub(crate) fn store<T: Kind>(object: T) -> Result<*mut T::Opaque, Failure> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    let number = match registry.free.pop() {
        Some(number) => number,
        None if registry.slots.len() == SLOTS_MAX => {
            let text = "there are too many objects: is something not freed?";
            return Err(Failure::new(corvid_error::CORVID_ERR_LIMIT, text));
        }
        None => {
            registry.slots.push(Slot {
                generation: 1,
                object: None,
            });
            registry.slots.len() - 1
        }
    };
    let slot = &mut registry.slots[number];
    slot.object = Some(Arc::new(object));
    let handle = MAGIC << 48 | u64::from(slot.generation) << 24 | number as u64;
    Ok(std::ptr::without_provenance_mut(handle as usize))
}

/// The number of the slot that a handle names, if its generation is the present one.
fn slot_of(registry: &Registry, handle: usize) -> Option<usize> {
    let handle = handle as u64;
    let number = (handle & 0xff_ffff) as usize;
    let slot = registry.slots.get(number)?;
    let generation = (handle >> 24 & 0xff_ffff) as u32;
    let is_same = handle >> 48 == MAGIC && slot.generation == generation && slot.object.is_some();
    is_same.then_some(number)
}

fn wrong<T: Kind>(is_null: bool) -> Failure {
    let text = if is_null {
        format!("the {} is null", T::NAME)
    } else {
        format!("the handle is no {} that is in use", T::NAME)
    };
    Failure::new(corvid_error::CORVID_ERR_HANDLE, text)
}

/// The object of a handle.
pub(crate) fn get<T: Kind>(handle: *const T::Opaque) -> Result<Arc<T>, Failure> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let number = slot_of(&registry, handle.addr());
    let object = number.and_then(|number| registry.slots[number].object.clone());
    drop(registry);
    object
        .and_then(|object| object.downcast::<T>().ok())
        .ok_or_else(|| wrong::<T>(handle.is_null()))
}

/// Takes an object out, so that its handle is of no use any more. Null is fine, as it is for `free`.
pub(crate) fn take<T: Kind>(handle: *mut T::Opaque) -> Result<Option<Arc<T>>, Failure> {
    if handle.is_null() {
        return Ok(None);
    }
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    let found = slot_of(&registry, handle.addr())
        .filter(|&number| {
            let object = registry.slots[number].object.as_ref();
            object.is_some_and(|object| (**object).is::<T>())
        })
        .ok_or_else(|| wrong::<T>(false))?;
    let slot = &mut registry.slots[found];
    let object = slot.object.take();
    if slot.generation < GENERATION_MAX {
        slot.generation += 1;
        registry.free.push(found);
    }
    // The destructor of the object runs in the caller, when the lock is free again.
    drop(registry);
    Ok(object.and_then(|object| object.downcast::<T>().ok()))
}
