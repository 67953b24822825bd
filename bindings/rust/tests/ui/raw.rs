// Functions that take addresses are unsafe to call.
#![forbid(unsafe_code)]

use adead::{Context, Meta, Tensor, View, ViewMut};
use std::ptr::NonNull;

fn addresses(context: &Context, meta: &Meta, start: NonNull<u8>) {
    let _ = View::from_raw(start, meta);
    let _ = ViewMut::from_raw(start, meta);
    let _ = Tensor::foreign(start, meta, Box::new(()));
    let _ = context.buffer_over("cuda:0", 0, 1 << 20, Box::new(()));
    let _ = context.multiply_small(start.cast().as_ptr(), start.cast().as_ptr(), start.cast().as_ptr(), [4; 3]);
}

fn main() {}
