//! Orders of elements in memory that suit a kernel's way through it.

use adead_node_support::args::Size;
use adead_node_support::array::Array;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Unknown};
use napi_derive::napi;

/// How the elements of a row-major matrix, or of a plain sequence, are arranged. Padding is zeros.
#[napi]
pub struct Layout {
    inner: adead::layout::Layout,
}

impl From<adead::layout::Layout> for Layout {
    fn from(inner: adead::layout::Layout) -> Layout {
        Layout { inner }
    }
}

#[napi]
impl Layout {
    /// Tiles of `tile` by `tile` elements, one after the other, each row-major within. Rows and columns are filled up.
    #[napi(ts_args_type = "rows: number, cols: number, tile: number")]
    pub fn tiled(env: Env, rows: Size, cols: Size, tile: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::tiled(rows.0, cols.0, tile.0)?.into()))
    }

    /// Rows that begin at multiples of `alignment` bytes, with elements of `element` bytes.
    #[napi(ts_args_type = "rows: number, cols: number, element: number, alignment: number")]
    pub fn aligned(env: Env, rows: Size, cols: Size, element: Size, alignment: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::aligned(rows.0, cols.0, element.0, alignment.0)?.into()))
    }

    /// Elements that lie `stride` apart, side by side: an array of structures as a structure of arrays.
    #[napi(ts_args_type = "elements: number, stride: number")]
    pub fn coalesced(env: Env, elements: Size, stride: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::coalesced(elements.0, stride.0)?.into()))
    }

    /// Along the Z-order curve (Morton). Rows and columns are filled up to powers of two.
    #[napi(ts_args_type = "rows: number, cols: number")]
    pub fn morton(env: Env, rows: Size, cols: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::morton(rows.0, cols.0)?.into()))
    }

    /// Rows and columns as they are stored, with the padding; of coalesced elements the sequences and their length.
    #[napi(getter)]
    pub fn dims(&self) -> Vec<f64> {
        let (rows, cols) = self.inner.dims();
        vec![rows as f64, cols as f64]
    }

    /// Elements before.
    #[napi(getter)]
    pub fn elements(&self) -> f64 {
        self.inner.elements() as f64
    }

    /// Elements after, the padding among them.
    #[napi(getter)]
    pub fn stored(&self) -> f64 {
        self.inner.stored() as f64
    }

    /// The elements in this arrangement, in a new array of the same kind. `shape_mismatch` if there are not as many as it is
    /// for.
    #[napi(ts_generic_types = "T extends TypedArray", ts_args_type = "data: T", ts_return_type = "T")]
    pub fn apply(&self, env: Env, data: Array) -> napi::Result<Unknown<'static>> {
        let kind = data.kind();
        let arranged = guard(env, || {
            let mut arranged = vec![0; self.inner.stored() * kind.element()];
            self.inner.apply_bytes(kind.element(), data.bytes(), &mut arranged)?;
            Ok(arranged)
        })?;
        kind.array(env, &arranged)
    }

    /// `apply` on another thread. The array is copied first, and the caller's again at once.
    #[napi(ts_generic_types = "T extends TypedArray", ts_args_type = "data: T", ts_return_type = "Promise<T>")]
    pub fn apply_async(&self, data: Array) -> AsyncTask<Job> {
        let (layout, kind, bytes) = (self.inner, data.kind(), data.bytes().to_vec());
        let work = move || {
            let mut arranged = vec![0; layout.stored() * kind.element()];
            layout.apply_bytes(kind.element(), &bytes, &mut arranged)?;
            Ok(arranged)
        };
        promise(Ok(work), move |env, arranged| kind.array(env, &arranged))
    }

    /// The elements as they were before `apply`. `shape_mismatch` if there are not as many as it stores.
    #[napi(ts_generic_types = "T extends TypedArray", ts_args_type = "arranged: T", ts_return_type = "T")]
    pub fn undo(&self, env: Env, arranged: Array) -> napi::Result<Unknown<'static>> {
        let kind = arranged.kind();
        let data = guard(env, || {
            let mut data = vec![0; self.inner.elements() * kind.element()];
            self.inner.undo_bytes(kind.element(), arranged.bytes(), &mut data)?;
            Ok(data)
        })?;
        kind.array(env, &data)
    }

    /// `undo` on another thread. The array is copied first, and the caller's again at once.
    #[napi(ts_generic_types = "T extends TypedArray", ts_args_type = "arranged: T", ts_return_type = "Promise<T>")]
    pub fn undo_async(&self, arranged: Array) -> AsyncTask<Job> {
        let (layout, kind, bytes) = (self.inner, arranged.kind(), arranged.bytes().to_vec());
        let work = move || {
            let mut data = vec![0; layout.elements() * kind.element()];
            layout.undo_bytes(kind.element(), &bytes, &mut data)?;
            Ok(data)
        };
        promise(Ok(work), move |env, data| kind.array(env, &data))
    }
}
