//! Layouts: arrangements of elements in memory that suit a kernel's access pattern.

use adead_node_support::args::Size;
use adead_node_support::array::Array;
use adead_node_support::error::guard;
use adead_node_support::task::{Job, promise};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Unknown};
use napi_derive::napi;

/// An arrangement of the elements of a row-major matrix, or of a plain sequence. Padding is zeros.
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
    /// Makes a layout of `tile` × `tile` tiles, one after the other, each row-major. Rows and columns are padded to whole
    /// tiles.
    #[napi(ts_args_type = "rows: number, cols: number, tile: number")]
    pub fn tiled(env: Env, rows: Size, cols: Size, tile: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::tiled(rows.0, cols.0, tile.0)?.into()))
    }

    /// Makes a layout whose rows begin at multiples of `alignment` bytes, for elements of `element` bytes.
    #[napi(ts_args_type = "rows: number, cols: number, element: number, alignment: number")]
    pub fn aligned(env: Env, rows: Size, cols: Size, element: Size, alignment: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::aligned(rows.0, cols.0, element.0, alignment.0)?.into()))
    }

    /// Makes a layout that stores elements `stride` apart next to each other. It turns an array of structures into a structure
    /// of arrays.
    #[napi(ts_args_type = "elements: number, stride: number")]
    pub fn coalesced(env: Env, elements: Size, stride: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::coalesced(elements.0, stride.0)?.into()))
    }

    /// Makes a layout along the Z-order (Morton) curve. Rows and columns are padded to powers of two.
    #[napi(ts_args_type = "rows: number, cols: number")]
    pub fn morton(env: Env, rows: Size, cols: Size) -> napi::Result<Layout> {
        guard(env, || Ok(adead::layout::Layout::morton(rows.0, cols.0)?.into()))
    }

    /// The stored rows and columns, including padding. For coalesced elements, the number of sequences and their length.
    #[napi(getter)]
    pub fn dims(&self) -> Vec<f64> {
        let (rows, cols) = self.inner.dims();
        vec![rows as f64, cols as f64]
    }

    /// The number of elements before `apply`.
    #[napi(getter)]
    pub fn elements(&self) -> f64 {
        self.inner.elements() as f64
    }

    /// The number of elements after `apply`, including padding.
    #[napi(getter)]
    pub fn stored(&self) -> f64 {
        self.inner.stored() as f64
    }

    /// Returns the elements in this arrangement, in a new array of the same kind. `shape_mismatch` unless `data` has `elements`
    /// elements.
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

    /// Runs `apply` on another thread. The array is copied first, so the caller may reuse it at once.
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

    /// Returns the elements in their order before `apply`. `shape_mismatch` unless `arranged` has `stored` elements.
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

    /// Runs `undo` on another thread. The array is copied first, so the caller may reuse it at once.
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
