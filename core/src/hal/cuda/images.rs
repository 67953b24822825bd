//! The operations' kernels for a GPU: machine code for its architecture, or PTX for its driver to compile.

use super::architectures::{MACHINE_CODE, PTX};
use super::instructions;
use super::physical::Physical;
use super::registers::absolute;
use crate::error::{Result, fail};
use crate::hal::DeviceKind;
use crate::hal::lowering::Kernels;
use crate::hal::lzma::unpack;
use std::ops::Range;
use std::sync::OnceLock;

/// The machine code of all families, and their PTX. Families share instructions and texts, so together they take less room.
static MACHINE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/machine.packed"));
static TEXTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptx.packed"));

type Tables = ([&'static [(usize, usize)]; Kernels::OF_CUDA], [usize; Kernels::OF_CUDA * PTX.len()]);

/// By family: where its machine code begins and ends in [`MACHINE`], if it has any; and where each text ends in [`TEXTS`], family by
/// family.
const PLACES: Tables = include!(concat!(env!("OUT_DIR"), "/cuda.rs"));

/// A file of a family, by its index in the lists of architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    MachineCode(usize),
    Ptx(usize),
}

/// Returns the files of a family that a GPU can run, the best first. A driver older than the compiler may refuse the first.
pub fn images(physical: &Physical, kernels: Kernels) -> impl Iterator<Item = Image> {
    let capability = physical.capability;
    // GPUs in processors don't run the machine code of cards, whatever their number. CUDA_FORCE_PTX_JIT asks for PTX
    // everywhere.
    let compiled = PLACES.0.get(kernels as usize).is_some_and(|machine| !machine.is_empty());
    let ptx_alone = !compiled || physical.info.kind == DeviceKind::Integrated || physical.driver.forces_ptx;
    let least = capability / 10 * 10;
    let machine = MACHINE_CODE.iter().rposition(|&of| least <= of && of <= capability);
    let text = (0..PTX.len()).rfind(|&place| PTX[place] <= capability && text_of(kernels, place).is_some());
    machine.filter(|_| !ptx_alone).map(Image::MachineCode).into_iter().chain(text.map(Image::Ptx))
}

/// Where a family's text for an architecture is in [`TEXTS`], if there is one.
fn text_of(kernels: Kernels, place: usize) -> Option<Range<usize>> {
    let at = kernels as usize * PTX.len() + place;
    let (from, to) = (if at == 0 { 0 } else { *PLACES.1.get(at - 1)? }, *PLACES.1.get(at)?);
    (from < to).then_some(from..to)
}

impl Image {
    /// Returns its name for messages and files: `sm_90.cubin`, `compute_70.ptx`.
    pub fn name(self) -> String {
        match self {
            Image::MachineCode(place) => format!("sm_{}.cubin", MACHINE_CODE[place]),
            Image::Ptx(place) => format!("compute_{}.ptx", PTX[place]),
        }
    }

    /// Whether its kernels wait themselves for the kernel before them, so that they may be started while it runs.
    pub fn waits(self) -> bool {
        let capability = match self {
            Image::MachineCode(place) => MACHINE_CODE[place],
            Image::Ptx(place) => PTX[place],
        };
        capability >= 90
    }

    /// Returns its bytes for a family that has it, unpacked once per process.
    pub fn bytes(self, kernels: Kernels) -> Result<&'static [u8]> {
        type Unpacked = OnceLock<Option<Vec<u8>>>;
        static CODE: Unpacked = OnceLock::new();
        static PACKED: Unpacked = OnceLock::new();
        static PTX_OF: [[Unpacked; PTX.len()]; Kernels::OF_CUDA] =
            [const { [const { OnceLock::new() }; PTX.len()] }; Kernels::OF_CUDA];
        let family = kernels as usize;
        let bytes = || match self {
            Image::MachineCode(place) => {
                let &(from, to) = PLACES.0.get(family)?.get(place)?;
                let code = || {
                    let mut code = unpack(MACHINE)?;
                    instructions::unpack(&mut code);
                    Some(code)
                };
                CODE.get_or_init(code).as_deref()?.get(from..to)
            }
            Image::Ptx(place) => {
                let text = || {
                    let all = PACKED.get_or_init(|| unpack(TEXTS)).as_deref()?;
                    all.get(text_of(kernels, place)?).map(absolute)
                };
                PTX_OF.get(family)?.get(place)?.get_or_init(text).as_deref()
            }
        };
        match bytes() {
            Some(bytes) => Ok(bytes),
            None => fail!(Internal, "the kernels in this library are damaged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::architectures::{WHOLE, edited, has_machine_code};
    use super::*;
    use crate::hal::cuda::fake::{Card, Fake};
    use crate::hal::cuda::physical::enumerate;

    #[test]
    fn what_is_unpacked_is_what_was_compiled() {
        for (kernels, family) in [
            (Kernels::Attention, "attention"),
            (Kernels::Elementwise, "elementwise"),
            (Kernels::Fixed, "fixed"),
            (Kernels::Integers, "integers"),
            (Kernels::Lines, "lines"),
            (Kernels::Matmul, "matmul"),
            (Kernels::Moves, "moves"),
            (Kernels::Quantized, "quantized"),
        ] {
            let compiled = has_machine_code(family, cfg!(feature = "machine-code"));
            let machine = (0..MACHINE_CODE.len()).filter(|_| compiled).map(Image::MachineCode);
            let texts = (0..PTX.len()).filter(|&place| text_of(kernels, place).is_some()).map(Image::Ptx);
            for image in machine.chain(texts) {
                let name = image.name();
                let read = |name: &str| {
                    std::fs::read(format!("{}/kernels/cuda/generated/{family}.{name}", env!("CARGO_MANIFEST_DIR")))
                        .unwrap()
                };
                let text = |name: &str| String::from_utf8(read(name)).unwrap();
                let whole = format!("compute_{WHOLE}.ptx");
                let file = match name.strip_suffix(".ptx") {
                    Some(of) if name != whole => edited(&text(&whole), &text(&format!("{of}.ed"))).into_bytes(),
                    _ => read(&name),
                };
                // The file, followed by zeros.
                let rest = image.bytes(kernels).unwrap().strip_prefix(file.as_slice()).unwrap();
                assert!((1..=16).contains(&rest.len()) && rest.iter().all(|&byte| byte == 0), "{family}.{name}");
            }
        }
        assert!(Image::MachineCode(0).bytes(Kernels::Probe).is_err());
        assert!(Image::MachineCode(0).bytes(Kernels::Lines).is_err());
    }

    #[cfg(feature = "machine-code")]
    #[test]
    fn every_gpu_has_the_best_that_it_runs() {
        let family = |card: Card, kernels| {
            let fake = Fake::new(&[card]);
            let physical = enumerate(fake.driver()).unwrap().remove(0);
            images(&physical, kernels).map(Image::name).collect::<Vec<_>>()
        };
        let of = |card| family(card, Kernels::Matmul);
        for (capability, expected) in [
            (70, &["compute_70.ptx"][..]),
            (75, &["compute_70.ptx"]),
            (80, &["compute_80.ptx"]),
            (86, &["compute_80.ptx"]),
            (89, &["compute_80.ptx"]),
            (90, &["sm_90.cubin", "compute_90.ptx"]),
            (100, &["compute_90.ptx"]),
            (103, &["compute_90.ptx"]),
            (110, &["compute_90.ptx"]),
            (120, &["compute_90.ptx"]),
            (121, &["compute_90.ptx"]),
            (130, &["compute_90.ptx"]),
        ] {
            assert_eq!(of(Card { capability, ..Card::default() }), expected, "{capability}");
        }
        for kernels in [Kernels::Integers, Kernels::Lines, Kernels::Moves, Kernels::Quantized] {
            for (capability, expected) in
                [(75, "compute_70.ptx"), (89, "compute_80.ptx"), (90, "compute_90.ptx"), (120, "compute_90.ptx")]
            {
                assert_eq!(family(Card { capability, ..Card::default() }, kernels), [expected]);
            }
        }
        // Jetson's GPUs are not cards, although their numbers lie between those of cards.
        assert_eq!(of(Card { capability: 87, integrated: true, ..Card::default() }), ["compute_80.ptx"]);
        assert_eq!(of(Card { capability: 72, integrated: true, ..Card::default() }), ["compute_70.ptx"]);
    }
}
