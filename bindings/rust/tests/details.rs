//! What errors are about, for programs that handle them.
#![cfg(feature = "details")]

use adead::memory::MemoryRefused;
use adead::{Axis, Context, DType, FailedOperation, Status, Tensor};
use std::error::Error as _;
use std::io;

#[test]
fn an_operation_that_was_refused_has_its_operands() {
    let ctx = Context::open("cpu").unwrap();
    let (a, b) = (Tensor::new(&[0f32; 6], &[2, 3]).unwrap(), Tensor::new(&[0f32; 4], &[4]).unwrap());
    let error = ctx.add(&a, &b).unwrap_err();
    let failed = error.detail::<FailedOperation>().expect("a detail");
    assert_eq!((error.status(), failed.op, failed.operands.len()), (Status::ShapeMismatch, "add", 2));
    let shapes: Vec<_> = failed.operands.iter().flatten().map(|meta| meta.shape.dims().to_vec()).collect();
    assert_eq!(shapes, [vec![2, 3], vec![4]]);
    assert!(error.detail::<io::Error>().is_none() && error.source().is_none());

    let ids = Tensor::new(&[1i32, 2], &[2]).unwrap();
    let error = ctx.exp(&ids).unwrap_err();
    let failed = error.detail::<FailedOperation>().expect("a detail");
    assert_eq!((error.status(), failed.operands[0].unwrap().dtype), (Status::DtypeMismatch, DType::I32));

    let error = ctx.sum(&a, Axis::At(5), false).unwrap_err();
    assert_eq!((error.status(), error.detail::<FailedOperation>().unwrap().op), (Status::InvalidArgument, "sum"));
    // A copy has the detail too, and details don't matter where errors are compared.
    assert_eq!(error.clone().detail::<FailedOperation>().unwrap().op, "sum");
    assert_eq!(error, adead::Error::new(error.status(), error.message()));
}

#[test]
fn a_file_that_can_t_be_read_has_the_systems_error() {
    let error = adead::files::read(std::path::Path::new("there is no such file")).unwrap_err();
    assert_eq!((error.status(), error.detail::<io::Error>().unwrap().kind()), (Status::Io, io::ErrorKind::NotFound));
    assert!(error.source().unwrap().is::<io::Error>());
    let error = adead::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
    assert_eq!(error.detail::<io::Error>().unwrap().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn memory_that_was_refused_has_its_size() {
    let arena = adead::memory::ArenaAllocator::new();
    let error = arena.alloc(1 << 46, 64).unwrap_err();
    let refused = error.detail::<MemoryRefused>().expect("a detail");
    assert!(error.status() == Status::OutOfMemory && refused.bytes >= 1 << 46 && refused.free.is_none());
}

#[cfg(feature = "programs")]
#[test]
fn a_malformed_program_has_the_place() {
    use adead::program::{Program, Where};
    let error = Program::decode(b"alloc x\nt = no_such_operation x\n").map(|_| ()).unwrap_err();
    assert_eq!(error.status(), Status::InvalidProgram);
    assert!(matches!(error.detail::<Where>(), Some(Where::Line(_) | Where::Byte(_))), "{error}");
}
