//! Tests of the guards around buffers, with a fake CUDA driver in host memory.

use super::*;
use crate::devices::guard::{GUARD, Guards};
use crate::error::Status;
use crate::hal::cuda::CudaDevice;
use crate::hal::cuda::fake::{Card, Fake};
use crate::hal::{self, Device, KernelSource, Slice};

const BUMP: &[u8] = b"
.version 8.0
.target sm_70
.address_size 64
.visible .entry bump(.param .u64 p, .param .u32 n, .param .align 8 .b8 by[8]) .maxntid 64, 2 .minnctapersm 1 { ret; }
";

#[test]
fn a_guard_that_is_broken_is_found_and_mended() {
    let fake = Fake::new(&[Card::default()]);
    let device = Arc::new(CudaDevice::open(0, &fake.opening()).unwrap());
    let guards = Some(Guards::default());
    let opened = Opened::with_guards(device.clone(), Default::default(), guards).unwrap();
    let (buffer, beside) = (Buffer::new(&opened, 100, true).unwrap(), Buffer::new(&opened, 7, false).unwrap());
    assert_eq!((buffer.to_vec::<u32>().unwrap(), buffer.size()), (vec![0; 25], 100));
    let kernel =
        opened.device.kernel(&KernelSource { code: BUMP, entry: None, constants: &[], workgroup: None }).unwrap();
    // The device's memory around the buffer, as a kernel could reach it.
    let (own, other) = (buffer.memory().unwrap(), beside.memory().unwrap());
    let address = |memory: &Arc<dyn hal::Buffer>| memory.device_address().unwrap();
    // SAFETY: the range is a buffer with its guards, and the buffer is kept. The fake driver checks every access.
    let around = unsafe { device.over(address(&own) - GUARD as u64, 2 * GUARD + 100, Box::new(own.clone())) }.unwrap();
    // Adds one to this many words from a byte offset of the buffer.
    let bump = |from: isize, words: u32| {
        let push = [&words.to_ne_bytes()[..], &[0; 4], &1u64.to_ne_bytes()].concat();
        let offset = (GUARD as isize + from) as usize;
        let slice = Slice { buffer: &*around, offset, bytes: 4 * words as usize };
        let guards = opened.guards.as_ref().unwrap();
        let place_of = |number| [&beside, &buffer].iter().position(|given| given.guard() == Some(number));
        let mut work = |stream: &mut dyn hal::Stream| stream.dispatch(&*kernel, &[slice], &push, [8, 1, 1]);
        opened.with(|stream| guards.watch(stream, "bump", &place_of, &mut work))
    };
    bump(0, 25).unwrap();
    let words = |buffer: &Buffer| buffer.to_vec::<u32>().unwrap();
    assert_eq!(words(&buffer), [1; 25]);
    for _ in 0..2 {
        let error = bump(96, 3).unwrap_err();
        assert_eq!(error.status(), Status::InvalidKernel);
        let text =
            "bump wrote outside its buffer 1, which has 100 bytes (0 to 99): 5 bytes from byte 100 on were changed";
        assert!(error.message().starts_with(text), "{error}");
    }
    let error = bump(-16, 1).unwrap_err();
    assert!(error.message().contains("1 bytes from byte -16 on"), "{error}");
    bump(0, 25).unwrap();
    // Dropped buffers have no guards any more. The other buffers keep theirs.
    drop((own, around, buffer));
    opened.with(|stream| opened.guards.as_ref().unwrap().watch(stream, "nothing", &|_| None, &mut |_| Ok(()))).unwrap();
    assert_eq!(opened.guards.as_ref().unwrap().listed(), 1);
    drop((other, beside, kernel, opened));
    assert_eq!((device.live(), fake.violations()), (0, Vec::<String>::new()));
}
