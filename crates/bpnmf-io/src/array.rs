//! Arrays as they go into and come out of numpy files: a shape and its values. Knows nothing of files.

use std::borrow::Cow;

/// An array: its shape and its values, last index fastest (numpy's C order).
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    shape: Vec<usize>,
    values: Values<'a>,
}

/// The values of an [`Array`], borrowed or owned.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Values<'a> {
    /// numpy's float32.
    F32(Cow<'a, [f32]>),
    /// numpy's float64.
    F64(Cow<'a, [f64]>),
    /// numpy's uint8.
    U8(Cow<'a, [u8]>),
    /// numpy's uint32.
    U32(Cow<'a, [u32]>),
    /// numpy's int64.
    I64(Cow<'a, [i64]>),
}

impl<'a> Array<'a> {
    /// An array of this shape; whether the values fill it is checked when it is written.
    pub fn new(shape: &[usize], values: impl Into<Values<'a>>) -> Self {
        Self { shape: shape.to_vec(), values: values.into() }
    }

    /// The length along each dimension; empty for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, last index fastest.
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// The values as f64, last index fastest. Whole numbers beyond 2^53 are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.values {
            Values::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Values::F64(values) => values.to_vec(),
            Values::U8(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Values::U32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Values::I64(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }

    /// The values as f64 without a copy where they already are.
    pub(crate) fn into_f64(self) -> Vec<f64> {
        match self.values {
            Values::F64(values) => values.into_owned(),
            _ => self.to_f64(),
        }
    }
}

impl Values<'_> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::U8(values) => values.len(),
            Values::U32(values) => values.len(),
            Values::I64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! from_values {
    ($($number:ty => $variant:ident),*) => {$(
        impl From<Vec<$number>> for Values<'_> {
            fn from(values: Vec<$number>) -> Self {
                Values::$variant(Cow::Owned(values))
            }
        }
        impl<'a> From<&'a [$number]> for Values<'a> {
            fn from(values: &'a [$number]) -> Self {
                Values::$variant(Cow::Borrowed(values))
            }
        }
    )*};
}

from_values!(f32 => F32, f64 => F64, u8 => U8, u32 => U32, i64 => I64);
