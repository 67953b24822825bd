//! What an operation's operands look like: all that a shape rule or a price may ask of them.

use crate::operand::{Meta, Place, View};
use smallvec::SmallVec;

/// The descriptions of an operation's operands, in its order; `None` where an optional one is absent.
#[derive(Clone, Copy)]
pub enum Metas<'a> {
    /// Those of operands that have memory.
    Of(&'a [Option<View<'a>>]),
    /// Descriptions alone, before anything is allocated.
    Alone(&'a [Option<&'a Meta>]),
}

/// Descriptions alone, for callers that don't know how many there are.
pub(crate) type MetaList<'a> = SmallVec<[Option<&'a Meta>; 4]>;

impl<'a> Metas<'a> {
    /// Operands, absent ones among them.
    #[inline(always)]
    pub fn len(self) -> usize {
        match self {
            Metas::Of(views) => views.len(),
            Metas::Alone(metas) => metas.len(),
        }
    }

    /// Whether there is no operand.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Operand `i`, if it is there.
    #[inline(always)]
    pub fn get(self, i: usize) -> Option<&'a Meta> {
        match self {
            Metas::Of(views) => views.get(i)?.as_ref().map(View::meta),
            Metas::Alone(metas) => *metas.get(i)?,
        }
    }

    /// Every operand.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = Option<&'a Meta>> {
        (0..self.len()).map(move |i| self.get(i))
    }

    /// Every operand that is there.
    #[inline(always)]
    pub fn present(self) -> impl Iterator<Item = &'a Meta> {
        self.iter().flatten()
    }

    /// Whether operand `i` is a packed matrix; a description alone never is.
    pub(super) fn is_packed(self, i: usize) -> bool {
        match self {
            Metas::Of(views) => matches!(views.get(i), Some(Some(view)) if matches!(view.place(), Place::Packed(_))),
            Metas::Alone(_) => false,
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
