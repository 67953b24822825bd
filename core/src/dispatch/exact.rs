//! The unit with which a device multiplies exact integers, and its rates.

use crate::contract::Precision;
use crate::family::Family;
use crate::hal::INT8_MATRICES;
use crate::isa::Isa;

/// The unit and the rates of a device's products in exact integers. Rates are those of `fixed24` and of `fixed16`, in operations per
/// nanosecond, counted as for f32. The time includes cutting the operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    /// The unit or the instructions that compute them, such as `wgmma`.
    pub unit: &'static str,
    /// The rates of products.
    pub gflops: [f64; 2],
    /// The unit and the rates of attention, with all that is between its products.
    #[cfg(feature = "integers")]
    pub attention: (&'static str, [f64; 2]),
}

impl Exact {
    /// Returns the unit and the rates for a family.
    fn of(&self, family: Family) -> (&'static str, [f64; 2]) {
        match family {
            #[cfg(feature = "integers")]
            Family::Attention => self.attention,
            _ => (self.unit, self.gflops),
        }
    }

    /// Returns the unit for a family.
    pub fn unit_of(&self, family: Family) -> &'static str {
        self.of(family).0
    }

    /// Returns a family's rate for a precision. `None` for f32.
    pub fn rate_of(&self, family: Family, precision: Precision) -> Option<f64> {
        match precision {
            Precision::F32 => None,
            Precision::Fixed24 => Some(self.of(family).1[0]),
            Precision::Fixed16 => Some(self.of(family).1[1]),
        }
    }

    /// The rates of a CPU. `cycles` is its nominal cycles per nanosecond, all threads together.
    pub(super) fn of_cpu(isa: Isa, unit: &'static str, cycles: f64) -> Exact {
        // Operations per nominal cycle and thread, measured on a Xeon of 2.1 GHz (AMX) and an EPYC of 2.6 GHz. NEON was not
        // measured.
        let each = match (unit, isa) {
            ("AMX", _) => [55.0, 85.0],
            ("VNNI", _) => [17.0, 36.0],
            (_, Isa::Avx2 | Isa::Avx512) => [14.0, 14.0],
            (_, Isa::Sse2) => [5.8, 5.8],
            (_, Isa::Neon) => [5.0, 5.0],
            (_, Isa::Portable) => [0.5, 0.5],
        };
        Exact {
            unit,
            gflops: each.map(|each| each * cycles),
            // In f64.
            #[cfg(feature = "integers")]
            attention: (
                "f64",
                [match isa {
                    Isa::Avx512 => 30.0,
                    Isa::Avx2 => 15.0,
                    Isa::Sse2 | Isa::Neon => 3.0,
                    Isa::Portable => 0.3,
                } * cycles; 2],
            ),
        }
    }

    /// The unit and rates of a GPU of an architecture, such as `sm_90`. `f32` is the rate of its f32 products.
    pub(super) fn of_gpu(arch: &str, f32: f64) -> Exact {
        let generation = arch.strip_prefix("sm_").and_then(|text| text.parse::<u32>().ok());
        // Multiples of the f32 rate. Measured on an H200: `sm_90`, and the first and last row through Vulkan. The others follow
        // from makers' figures.
        let (unit, times) = match generation {
            None if arch.ends_with(INT8_MATRICES) => ("cooperative matrices", [1.3, 2.0]),
            Some(90) => ("wgmma", [3.0, 5.0]),
            Some(80..) => ("mma.sync", [1.5, 3.0]),
            Some(61..) => ("dp4a", [0.4, 0.8]),
            // Every GPU has these.
            _ => ("32-bit integers", [0.2, 0.33]),
        };
        let gflops = times.map(|times| times * f32);
        Exact {
            unit,
            gflops,
            // Measured on an H200. Its kernel is not one for warpgroups, and computes and cuts weights between its products. With
            // cooperative matrices each step is a kernel.
            #[cfg(feature = "integers")]
            attention: match unit {
                "wgmma" => ("mma.sync", gflops.map(|rate| 0.35 * rate)),
                "cooperative matrices" => (unit, gflops.map(|rate| 0.1 * rate)),
                _ => (unit, gflops.map(|rate| 0.35 * rate)),
            },
        }
    }
}
