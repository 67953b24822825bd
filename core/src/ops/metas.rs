//! Descriptions of an operation's operands: all that a shape rule or a cost estimate may use.

use crate::operand::{Meta, Packed, Place, View};
use smallvec::SmallVec;

/// The descriptions of an operation's operands, in the operation's order; `None` for an optional operand that is
/// absent.
#[derive(Clone, Copy)]
pub enum Metas<'a> {
    /// The descriptions of operands that have memory.
    Of(&'a [Option<View<'a>>]),
    /// Descriptions only, before memory is allocated.
    Alone(&'a [Option<&'a Meta>]),
}

/// A list of descriptions, for callers that don't know its length at compile time.
pub(crate) type MetaList<'a> = SmallVec<[Option<&'a Meta>; 4]>;

impl<'a> Metas<'a> {
    /// Returns the number of operands, including absent ones.
    #[inline(always)]
    pub fn len(self) -> usize {
        match self {
            Metas::Of(views) => views.len(),
            Metas::Alone(metas) => metas.len(),
        }
    }

    /// Returns whether there is no operand.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns operand `i`, if it is present.
    #[inline(always)]
    pub fn get(self, i: usize) -> Option<&'a Meta> {
        match self {
            Metas::Of(views) => views.get(i)?.as_ref().map(View::meta),
            Metas::Alone(metas) => *metas.get(i)?,
        }
    }

    /// Iterates over every operand.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = Option<&'a Meta>> {
        (0..self.len()).map(move |i| self.get(i))
    }

    /// Iterates over the operands that are present.
    #[inline(always)]
    pub fn present(self) -> impl Iterator<Item = &'a Meta> {
        self.iter().flatten()
    }

    /// Returns operand `i` if it is a packed matrix. A description without memory never is.
    pub(super) fn packed(self, i: usize) -> Option<&'a Packed> {
        match self {
            Metas::Of(views) => match views.get(i)?.as_ref()?.place() {
                Place::Packed(packed) => Some(packed),
                _ => None,
            },
            Metas::Alone(_) => None,
        }
    }
}

macro_rules! from {
    ($($variant:ident: $from:ty $(, $n:ident)?;)*) => {$(
        impl<'a, 'b: 'a $(, const $n: usize)?> From<&'a $from> for Metas<'a> {
            #[inline(always)]
            fn from(operands: &'a $from) -> Metas<'a> {
                Metas::$variant(&operands[..])
            }
        }
    )*};
}

from! {
    Of: [Option<View<'b>>];
    Of: [Option<View<'b>>; N], N;
    Of: Vec<Option<View<'b>>>;
    Of: SmallVec<[Option<View<'b>>; 4]>;
    Alone: [Option<&'b Meta>];
    Alone: [Option<&'b Meta>; N], N;
    Alone: Vec<Option<&'b Meta>>;
    Alone: SmallVec<[Option<&'b Meta>; 4]>;
}
