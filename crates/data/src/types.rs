//! Column types: base types with constraints, and the number of elements that a column holds
//! (docs/spec/protocol.md 2.2, 2.4).

use crate::schema::TableId;
use crate::{Datum, Str};

/// The five atomic types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomType {
    /// A signed 64-bit integer.
    Integer,
    /// A finite double.
    Real,
    /// True or false.
    Boolean,
    /// UTF-8 without NUL.
    String,
    /// 128 bits.
    Uuid,
}

impl AtomType {
    /// The name in schemas and messages, for example `integer`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AtomType::Integer => "integer",
            AtomType::Real => "real",
            AtomType::Boolean => "boolean",
            AtomType::String => "string",
            AtomType::Uuid => "uuid",
        }
    }
}

/// Bounds of a base type. Bounds equal to the type's own limits count as absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// No bounds.
    None,
    /// `minInteger`, `maxInteger`, inclusive.
    Integer {
        /// The lowest allowed value.
        min: i64,
        /// The highest allowed value.
        max: i64,
    },
    /// `minReal`, `maxReal`, inclusive.
    Real {
        /// The lowest allowed value.
        min: f64,
        /// The highest allowed value.
        max: f64,
    },
    /// `minLength`, `maxLength`, in code points.
    Length {
        /// The shortest allowed length.
        min: u32,
        /// The longest allowed length.
        max: u32,
    },
}

/// Whether a reference keeps its target alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefType {
    /// The target must exist, and is kept alive.
    Strong,
    /// The reference is removed with its target.
    Weak,
}

/// A uuid base type's `refTable` and `refType`. Two are equal if they name the same table: its id
/// may be another in another schema, for example after a conversion that adds a table.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Name of the referenced table.
    pub table_name: Str,
    /// The referenced table's id in the schema.
    pub table: TableId,
    /// Strong or weak.
    pub ref_type: RefType,
}

impl PartialEq for Reference {
    fn eq(&self, other: &Reference) -> bool {
        (&self.table_name, self.ref_type) == (&other.table_name, other.ref_type)
    }
}

impl Eq for Reference {}

/// The type of keys or values.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseType {
    /// The atomic type.
    pub atom: AtomType,
    /// `enum`: the allowed atoms, a non-empty set.
    pub enumeration: Option<Datum>,
    /// Range or length bounds.
    pub bounds: Bounds,
    /// For uuid: the table that the type refers to.
    pub reference: Option<Reference>,
}

impl BaseType {
    /// An unconstrained base type.
    #[must_use]
    pub fn plain(atom: AtomType) -> BaseType {
        BaseType {
            atom,
            enumeration: None,
            bounds: Bounds::None,
            reference: None,
        }
    }
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnType {
    /// Type of elements, or of map keys.
    pub key: BaseType,
    /// Type of map values; `None` for scalars and sets.
    pub value: Option<BaseType>,
    /// 0 or 1.
    pub min: u32,
    /// 1 or more; [`ColumnType::UNLIMITED`] for `"unlimited"`.
    pub max: u32,
}

impl ColumnType {
    /// `"unlimited"`.
    pub const UNLIMITED: u32 = u32::MAX;

    /// A scalar of an unconstrained base type.
    #[must_use]
    pub fn scalar(atom: AtomType) -> ColumnType {
        ColumnType {
            key: BaseType::plain(atom),
            value: None,
            min: 1,
            max: 1,
        }
    }

    /// Whether the type has a value type.
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.value.is_some()
    }

    /// Whether the type has no value type and exactly one element.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        self.value.is_none() && self.min == 1 && self.max == 1
    }

    /// Whether the type has no value type and at most one element.
    #[must_use]
    pub fn is_optional_scalar(&self) -> bool {
        self.value.is_none() && self.min == 0 && self.max == 1
    }

    /// Whether the type may hold more than one element, so that its differences are symmetric
    /// differences (docs/spec/protocol.md 4.7).
    #[must_use]
    pub fn is_composite(&self) -> bool {
        self.max > 1
    }

    /// Whether a datum of `count` elements is neither too short nor too long.
    #[must_use]
    pub fn admits(&self, count: usize) -> bool {
        // Data hold at most u32::MAX elements, which equals "unlimited".
        count >= self.min as usize && count <= self.max as usize
    }

    /// The details of the error about a datum of `count` elements, which the type does not admit.
    #[must_use]
    pub fn count_problem(&self, count: usize) -> String {
        let (class, min, max) = (self.class(), self.min, self.max);
        if min == 1 && max == 1 {
            format!("{class} must have exactly one member but {count} are present")
        } else {
            format!("{class} must have {min} to {max} members but {count} are present")
        }
    }

    /// The English name in messages (docs/spec/protocol.md 2.7).
    ///
    /// ```
    /// use corvid_data::{AtomType, ColumnType};
    ///
    /// let mut column_type = ColumnType::scalar(AtomType::Integer);
    /// assert_eq!(column_type.english(), "integer");
    /// column_type.min = 0;
    /// assert_eq!(column_type.english(), "set of up to 1 integers");
    /// ```
    #[must_use]
    pub fn english(&self) -> String {
        if self.is_scalar() {
            return self.key.atom.name().to_owned();
        }
        let class = self.class();
        let key = self.key.atom.name();
        let count = match (self.min, self.max) {
            (0, ColumnType::UNLIMITED) => String::new(),
            (min, ColumnType::UNLIMITED) => format!("{min} or more "),
            (0, max) => format!("up to {max} "),
            (min, max) => format!("{min} to {max} "),
        };
        match &self.value {
            None => format!("{class} of {count}{key}s"),
            Some(value) => format!("{class} of {count}({key}, {}) pairs", value.atom.name()),
        }
    }

    /// `map` or `set`, as in messages.
    #[must_use]
    pub fn class(&self) -> &'static str {
        if self.is_map() { "map" } else { "set" }
    }
}
