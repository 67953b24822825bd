// A view borrows its memory: it can't outlive it, and nothing else can access memory that is written.
#![forbid(unsafe_code)]

use adead::memory::{ArenaAllocator, DeterministicAllocator};
use adead::{DType, Meta, Result, Shape, View, ViewMut};

fn outlives(meta: &Meta) -> Result<View<'_>> {
    let values = vec![0f32; 4];
    View::f32(&values, meta)
}

fn aliases(meta: &Meta) -> Result<()> {
    let mut values = vec![0f32; 4];
    let input = View::f32(&values, meta)?;
    let output = ViewMut::f32(&mut values, meta)?;
    drop((input, output));
    Ok(())
}

fn changes(meta: &mut Meta) -> Result<()> {
    let values = vec![0f32; 4];
    let input = View::f32(&values, meta)?;
    meta.shape = Shape::new(&[1 << 20])?;
    drop(input);
    Ok(())
}

fn resets() -> Result<()> {
    let mut arena = ArenaAllocator::new();
    let row = arena.alloc(64, 64)?;
    arena.reset();
    row.fill(1);
    Ok(())
}

fn frees() -> Result<()> {
    let mut memory = DeterministicAllocator::new()?;
    let at = memory.alloc(64)?;
    let bytes = memory.bytes_mut(at)?;
    memory.free(at)?;
    bytes.fill(1);
    Ok(())
}

fn main() {
    let _ = (Meta::new(DType::F32, Shape::SCALAR), outlives, aliases, changes, resets, frees);
}
