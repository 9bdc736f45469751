//! Handles: numbers that name objects of the library, in the form of pointers.
//!
//! ```text
//! | magic, 16 bits | generation, 24 bits | slot, 24 bits |
//! ```
//!
//! The magic is not that of an address of user space, so a program that follows a handle crashes at
//! once, and an address is never taken for a handle. Freeing an object raises the generation of its
//! slot, so old handles do not reach the next object there. A slot whose generations are used up is
//! retired.
//!
//! Invariant: nothing here follows a handle.

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Failure, corvid_error};

const MAGIC: u64 = 0xc05d;
const GENERATION_MAX: u32 = (1 << 24) - 1;
/// Objects at the same time; a call that would make one more reports
/// [`corvid_error::CORVID_ERR_LIMIT`].
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
    /// Whether threads keep the object at hand that they used last. It must be small once it is
    /// freed.
    const IS_CACHED: bool = false;
}

/// Grows whenever an object is taken out, which invalidates the caches of all threads.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// An object that a thread has cached.
#[derive(Default)]
struct Recent {
    handle: usize,
    epoch: u64,
    object: Option<Object>,
}

thread_local! {
    /// Indexed by the last bits of the handle.
    static RECENT: RefCell<[Recent; 4]> = RefCell::default();
}

/// Does something with the object of a handle. Costs less than [`get`] for the objects that a
/// thread uses all the time.
pub(crate) fn with<T: Kind, R>(
    handle: *const T::Opaque,
    work: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    if !T::IS_CACHED {
        return work(&*get::<T>(handle)?);
    }
    let address = handle.addr();
    let mut work = Some(work);
    let at_hand = RECENT.try_with(|recent| {
        // Nested calls read the cache too; only a call that adds an object needs it exclusively.
        let recent = recent.try_borrow().ok()?;
        let entry = &recent[address & 3];
        let is_same = entry.handle == address && entry.epoch == EPOCH.load(Ordering::Acquire);
        let object = entry.object.as_ref().filter(|_| is_same)?;
        let object = object.downcast_ref::<T>()?;
        Some(work.take()?(object))
    });
    if let Ok(Some(outcome)) = at_hand {
        return outcome;
    }
    let epoch = EPOCH.load(Ordering::Acquire);
    let object = get::<T>(handle)?;
    let former = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let entry = Recent {
            handle: address,
            epoch,
            object: Some(object.clone()),
        };
        Some(std::mem::replace(&mut recent[address & 3], entry))
    });
    // Its destructor may take long, so it runs after the borrow ends.
    drop(former);
    match work.take() {
        Some(work) => work(&object),
        None => Err(wrong::<T>(false)),
    }
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

/// Takes an object out, so that its handle becomes invalid. Null is fine, as it is for `free`.
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
    EPOCH.fetch_add(1, Ordering::Release);
    if slot.generation < GENERATION_MAX {
        slot.generation += 1;
        registry.free.push(found);
    }
    // The destructor of the object runs in the caller, when the lock is free again.
    drop(registry);
    Ok(object.and_then(|object| object.downcast::<T>().ok()))
}
