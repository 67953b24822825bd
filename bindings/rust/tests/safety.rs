//! Whether safe code can reach memory that is not its own: no. The answer for everything public in `adead` and `adead-core` that
//! touches memory.
//!
//! | what | why it can't |
//! |---|---|
//! | `Command` | exists only checked: `ui/command.rs`, `ui/command_changed.rs`, [`what_does_not_fit_is_an_error`] |
//! | `View`, `ViewMut`, `Meta`, `Shape` | borrow what they show: `ui/borrows.rs`; made of addresses only by `unsafe`: `ui/raw.rs` |
//! | `Inputs`, `Metas`, `OpInfo`, `Task`, `AutoDispatcher`, `Explanation` | descriptions alone; nothing is read |
//! | `Place` | addresses, which safe code can't read |
//! | `reference` | slices of the views' memory |
//! | `Element`, `hal`'s traits (`Device`, `Buffer`, `Stream`, `Kernel`, `Event`, …), `Workers` | `unsafe` to implement: `ui/traits.rs` |
//! | `hal::Slice`, `hal::Stream` of each device | every part is checked: [`parts_outside_a_buffer_are_errors`], `hal::cts` |
//! | `Device::over`, `Context::buffer_over`, `Tensor::foreign` | `unsafe`: `ui/raw.rs` |
//! | `gpu::Buffer`, `GpuArray`, `gpu::Operand` | zeroed; freed once; threads take turns: [`a_buffer_is_one_thread_s_at_a_time`], [`what_was_freed_is_an_error`] |
//! | `gpu::Stream`, `Event`, `Recording`, `Timestamp`, `Download` | keep what they use; [`parts_outside_a_buffer_are_errors`], and each backend's tests |
//! | `gpu::Kernel`, `Context::dispatch` | buffers, sizes and push constants are checked; what a kernel does on its device is its author's: `docs/gpu.md` |
//! | `Tensor`, its `rows`, `reshape`, `bytes`, `as_slice` | values never change; [`what_does_not_fit_is_an_error`] |
//! | `Packed` | its own layout and instruction set are checked: [`a_packed_matrix_is_of_its_instruction_set`] |
//! | `layout` | slices: [`a_layout_larger_than_memory_is_an_error`] |
//! | `memory::ArenaAllocator`, `DeterministicAllocator` | lend what borrows them: `ui/borrows.rs`; `ptr` is an address |
//! | `HostBuffer`, `hal::cpu::Pool` | lend addresses; call every task with a number of its own |
//! | `pipeline`, `Compiled` | inputs are compared with what was compiled: `core/tests/pipeline.rs` |
//! | `Program`, `OpcodeEngine` | a whole program is validated first, and a schedule orders its steps: `core/tests/program.rs` |
//! | `spirv::Module` | reads words by checked positions: `core/tests/spirv.rs` |
//! | `overlap`, `Batch`, `Bytes`, `after`, `DataLoader` | no memory but vectors and downloads: `tests/overlap.rs`, `tests/loader.rs` |
//! | `Context`'s results, `nn`'s layers | memory that is used again is nobody else's while a tensor is in it: `tests/nn.rs` |
//! | `nn::Weights` | reads the file, and checks that it is all there; mapping it is `unsafe`: [`a_file_that_shrinks_is_no_fault`] |
//! | `profile`, `config`, `hardware`, `dispatch`, `log`, `files` | text and numbers |
#![forbid(unsafe_code)]

use adead::gpu::Buffer;
use adead::{
    Attrs, Command, Context, ContextOptions, DType, Meta, Op, Result, Shape, Status, Tensor, View, ViewMut,
    device::Isa, layout::Layout,
};
use adead_core::hal::cpu::CpuDevice;
use adead_core::hal::{Device, Slice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

#[test]
fn what_would_be_unsound_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

fn meta(dtype: DType, dims: &[usize]) -> Meta {
    Meta::new(dtype, Shape::new(dims).unwrap())
}

fn cpu() -> Context {
    Context::open("cpu").unwrap()
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (big, small) = (meta(DType::F32, &[1 << 20]), meta(DType::F32, &[4]));
    let (mut four, many) = ([0f32; 4], vec![0f32; 1 << 20]);
    // The program of `ui/command.rs` as far as it can be written.
    let inputs = [Some(View::f32(&many, &big).unwrap())];
    let output = ViewMut::f32(&mut four, &small).unwrap();
    assert_eq!(status(Command::new(Op::Relu, Attrs::default(), &inputs, output)), Some(Status::ShapeMismatch));
    assert_eq!(status(View::f32(&four, &big)), Some(Status::ShapeMismatch));
    assert_eq!(status(ViewMut::f32(&mut four, &big)), Some(Status::ShapeMismatch));
    assert_eq!(status(View::f32(&four, &meta(DType::I64, &[4]))), Some(Status::DtypeMismatch));
    assert_eq!(status(Shape::new(&[usize::MAX, 2])), Some(Status::InvalidArgument));
    assert_eq!(status(Tensor::new(&four, &[5])), Some(Status::ShapeMismatch));
    assert_eq!(status(Tensor::from_bytes(&[0; 15], DType::F32, &[4])), Some(Status::ShapeMismatch));
    let tensor = Tensor::new(&four, &[4]).unwrap();
    assert_eq!(status(tensor.rows(2, usize::MAX)), Some(Status::InvalidArgument));
    assert_eq!(status(tensor.reshape(&[5])), Some(Status::ShapeMismatch));
    assert_eq!(status(tensor.as_slice::<i64>()), Some(Status::DtypeMismatch));
    let table = Tensor::new(&[1f32; 8], &[4, 2]).unwrap();
    for id in [4, -1, i64::MIN, i64::MAX] {
        let ids = Tensor::new(&[0, id], &[2]).unwrap();
        let refused = cpu().run(Op::Embedding, &Attrs::default(), &[Some(&table), Some(&ids)]);
        assert_eq!(status(refused), Some(Status::InvalidArgument), "{id}");
    }
}

#[test]
fn parts_outside_a_buffer_are_errors() {
    let invalid = Some(Status::InvalidArgument);
    let ctx = cpu();
    let buffer = ctx.buffer(&[1f32, 2.0, 3.0, 4.0]).unwrap();
    let (memory, mut bytes) = (buffer.memory().unwrap(), [0u8; 8]);
    let device = Arc::new(CpuDevice::open(None, Some(1)).unwrap());
    let mut stream = device.stream().unwrap();
    let mut own = ctx.stream().unwrap();
    for offset in [9, 16, 17, usize::MAX - 7, usize::MAX] {
        assert_eq!(status(buffer.write_bytes(offset, &bytes)), invalid, "{offset}");
        assert_eq!(status(buffer.read_bytes(offset, &mut bytes)), invalid, "{offset}");
        assert_eq!(status(buffer.to_tensor(offset, &meta(DType::F32, &[2]))), invalid, "{offset}");
        assert_eq!(status(View::buffer(&*memory, offset, &meta(DType::F32, &[2]))), invalid, "{offset}");
        assert_eq!(status(ViewMut::buffer(&*memory, offset, &meta(DType::F32, &[2]))), invalid, "{offset}");
        let (inside, part) =
            (Slice { buffer: &*memory, offset: 0, bytes: 8 }, Slice { buffer: &*memory, offset, bytes: 8 });
        assert_eq!(status(stream.write(&*memory, offset, &bytes)), invalid, "{offset}");
        assert_eq!(status(stream.read(&*memory, offset, &mut bytes)), invalid, "{offset}");
        assert_eq!(status(stream.download(part)), invalid, "{offset}");
        assert_eq!(status(stream.clear(part)), invalid, "{offset}");
        assert_eq!(
            (status(stream.copy(part, inside)), status(stream.copy(inside, part))),
            (invalid, invalid),
            "{offset}"
        );
        assert_eq!(status(own.upload(&buffer, offset, &bytes)), invalid, "{offset}");
        assert_eq!(status(own.download(&buffer, offset, 8)), invalid, "{offset}");
        assert_eq!(status(own.clear(&buffer, offset, 8)), invalid, "{offset}");
        assert_eq!(status(own.copy((&buffer, offset), (&buffer, 0), 8)), invalid, "{offset}");
    }
    let four = Slice { buffer: &*memory, offset: 4, bytes: 8 };
    assert_eq!(status(stream.copy(Slice { offset: 0, ..four }, four)), invalid, "they overlap");
    assert_eq!(status(stream.copy(Slice { offset: 0, bytes: 4, ..four }, four)), invalid, "sizes differ");
    assert_eq!(status(own.download(&buffer, 0, 8).unwrap().take(&mut [0; 7])), invalid);
    assert_eq!(buffer.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    // A result must not overlap an operand.
    let (three, wide) = (meta(DType::F32, &[3]), meta(DType::F32, &[4]));
    let inputs = [Some(View::buffer(&*memory, 0, &three).unwrap())];
    let output = ViewMut::buffer(&*memory, 4, &three).unwrap();
    assert_eq!(status(Command::new(Op::Exp, Attrs::default(), &inputs, output)), invalid);
    let inputs = [Some(View::buffer(&*memory, 0, &wide).unwrap())];
    let output = ViewMut::buffer(&*memory, 0, &wide).unwrap();
    assert_eq!(status(Command::new(Op::Transpose, Attrs::default(), &inputs, output)), invalid);
}

#[test]
fn what_was_freed_is_an_error() {
    let (ctx, invalid) = (cpu(), Some(Status::InvalidArgument));
    let buffer = ctx.buffer(&[1f32; 4]).unwrap();
    let kept = buffer.memory().unwrap();
    buffer.free().unwrap();
    assert_eq!((status(buffer.free()), status(buffer.to_vec::<f32>())), (invalid, invalid));
    assert_eq!((status(buffer.memory()), status(ctx.stream().unwrap().clear(&buffer, 0, 4))), (invalid, invalid));
    // Whoever had it before keeps it.
    let (four, attrs) = (meta(DType::F32, &[4]), Attrs::default());
    let sum = ctx.run_views(Op::Sum, &attrs, &[Some(View::buffer(&*kept, 0, &four).unwrap())]).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [4.0]);
}

/// Embedding checks its ids and then reads them again: what another thread writes meanwhile would lead anywhere.
#[test]
fn a_buffer_is_one_thread_s_at_a_time() {
    const IDS: usize = 20_000;
    let (ctx, attrs, done) = (cpu(), Attrs::default(), AtomicBool::new(false));
    let table = ctx.alloc_upload(&[7f32; 6], &[3, 2]).unwrap();
    let ids = ctx.alloc_upload(&vec![1i64; IDS], &[IDS]).unwrap();
    let (table_meta, ids_meta) = (meta(DType::F32, &[3, 2]), meta(DType::I64, &[IDS]));
    let rows_meta = meta(DType::F32, &[IDS, 2]);
    let check = |rows: Result<Vec<f32>>| match rows {
        Ok(rows) => assert!(rows.iter().all(|&value| value == 7.0)),
        Err(error) => assert!(error.status() == Status::InvalidArgument && error.message().contains("id "), "{error}"),
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                ids.write(&vec![i64::MAX / 16; IDS]).unwrap();
                ids.write(&vec![2; IDS]).unwrap();
            }
        });
        for _ in 0..200 {
            let array = ctx.run_array::<f32>(Op::Embedding, &attrs, &[Some(table.operand()), Some(ids.operand())]);
            check(array.and_then(|rows| rows.to_vec()));
            let (table, ids): (&Buffer, &Buffer) = (table.buffer(), ids.buffer());
            let (table, ids) = (table.memory().unwrap(), ids.memory().unwrap());
            let inputs = [
                Some(View::buffer(&*table, 0, &table_meta).unwrap()),
                Some(View::buffer(&*ids, 0, &ids_meta).unwrap()),
            ];
            check(ctx.run_views(Op::Embedding, &attrs, &inputs).and_then(|rows| rows.to_vec()));
            let mut rows = vec![0f32; 2 * IDS];
            let output = ViewMut::f32(&mut rows, &rows_meta).unwrap();
            let done = ctx.execute(&mut Command::new(Op::Embedding, attrs, &inputs, output).unwrap());
            check(done.map(|()| rows));
        }
        done.store(true, Relaxed);
    });
}

/// Threads that copy between two buffers in both directions wait for each other, and not forever.
#[test]
fn turns_are_taken_in_one_order() {
    let ctx = cpu();
    let (a, b) = (ctx.buffer(&[1f32; 4096]).unwrap(), ctx.buffer(&[2f32; 4096]).unwrap());
    thread::scope(|scope| {
        for (from, to) in [(&a, &b), (&b, &a), (&a, &a)] {
            let mut stream = ctx.stream().unwrap();
            scope.spawn(move || {
                for _ in 0..500 {
                    stream.copy((from, 0), (to, 8192), 8192).unwrap();
                }
            });
        }
    });
    for buffer in [a, b] {
        assert!(buffer.to_vec::<f32>().unwrap().iter().all(|value| *value == 1.0 || *value == 2.0));
    }
}

#[test]
fn a_packed_matrix_is_of_its_instruction_set() {
    let open =
        |isa| Context::with_options("cpu", &ContextOptions { isa: Some(isa), ..ContextOptions::default() }).unwrap();
    let b = Tensor::new(&[1f32; 12], &[4, 3]).unwrap();
    let a = Tensor::new(&[1f32; 8], &[2, 4]).unwrap();
    for own in Isa::available() {
        let packed = open(own).pack(&b, false).unwrap();
        for used in Isa::available() {
            let inputs = [Some(a.view()), Some(View::packed(&packed))];
            let product = open(used).run_views(Op::Matmul, &Attrs::default(), &inputs);
            assert_eq!(
                status(product),
                if own == used { None } else { Some(Status::InvalidArgument) },
                "{own:?} {used:?}"
            );
        }
        let relu = open(own).run_views(Op::Relu, &Attrs::default(), &[Some(View::packed(&packed))]);
        assert_eq!(status(relu), Some(Status::InvalidArgument));
    }
}

#[test]
fn a_layout_larger_than_memory_is_an_error() {
    let layout = Layout::tiled(1, 1, 1 << 28).unwrap();
    assert_eq!(status(layout.apply(&[1f32])), Some(Status::OutOfMemory));
    assert_eq!(status(layout.apply_bytes(4, &[0; 4], &mut [0; 4])), Some(Status::ShapeMismatch));
    assert_eq!(
        status(Layout::tiled(2, 2, 2).unwrap().undo_bytes(4, &[0; 16], &mut [0; 17])),
        Some(Status::ShapeMismatch)
    );
}

#[cfg(feature = "nn")]
#[test]
fn a_file_that_shrinks_is_no_fault() {
    let header = r#"{"x":{"dtype":"F32","shape":[65536],"data_offsets":[0,262144]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend([0; 262144]);
    let path = std::env::temp_dir().join(format!("adead-shrinks-{}.safetensors", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let weights = adead::nn::Weights::open(&path).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(8).unwrap();
    let error = weights.tensor("x", &[65536]).unwrap_err();
    assert!(error.status() == Status::Io && error.message().contains("has become shorter"), "{error}");
    std::fs::remove_file(path).unwrap();
}
