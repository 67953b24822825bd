//! Attributes: one flat struct holds the attributes of all operations, each with its default.

use super::Op;
use super::decimal::parse_f32;
use crate::contract::{Activation, BlockFormat, GeluForm, Precision};
use crate::dtype::DType;
use crate::error::{Error, Result, Status, fail};
use crate::shape::MAX_RANK;

/// The axis along which an operation works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// The operation's own default.
    #[default]
    Default,
    /// All elements in row-major order, as one axis.
    All,
    /// One axis; negative ones count from the end.
    At(i32),
}

/// A list of at most eight axes: a transposition's axis order, or the axes that a reduction reduces. By default, a transposition
/// reverses the axes and a reduction reduces all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permutation {
    axes: [i8; MAX_RANK],
    len: Option<u8>,
}

impl Permutation {
    /// Makes a list of the operand's axes; negative ones count from the end. In a transposition's order, entry `i` becomes the
    /// result's axis `i`. The operation checks whether the axes fit its operand. Returns `invalid_argument` for more than eight
    /// axes, or for one that no rank has.
    pub fn new(axes: &[i32]) -> Result<Permutation> {
        let mut permutation = Permutation { axes: [0; MAX_RANK], len: Some(axes.len() as u8) };
        let range = -(MAX_RANK as i32)..MAX_RANK as i32;
        if axes.len() > MAX_RANK || axes.iter().any(|axis| !range.contains(axis)) {
            fail!(InvalidArgument, "{axes:?}: pass at most {MAX_RANK} axes, of a rank up to {MAX_RANK}");
        }
        for (to, &from) in permutation.axes.iter_mut().zip(axes) {
            *to = from as i8;
        }
        Ok(permutation)
    }

    /// Returns the axes, or `None` for the default.
    pub fn axes(&self) -> Option<&[i8]> {
        self.len.map(|len| &self.axes[..len as usize])
    }
}

/// One number for each of the first axes, at most eight. The other axes have the operation's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerAxis {
    numbers: [i32; MAX_RANK],
    len: u8,
}

impl PerAxis {
    const NONE: PerAxis = PerAxis { numbers: [0; MAX_RANK], len: 0 };

    /// Makes a list of numbers for the first axes. The operation checks whether they fit its operand. Returns `invalid_argument`
    /// for more than eight numbers.
    pub fn new(numbers: &[i32]) -> Result<PerAxis> {
        let mut list = PerAxis { len: numbers.len() as u8, ..PerAxis::NONE };
        if numbers.len() > MAX_RANK {
            fail!(InvalidArgument, "{} numbers; a tensor has at most {MAX_RANK} axes", numbers.len());
        }
        list.numbers[..numbers.len()].copy_from_slice(numbers);
        Ok(list)
    }

    /// Returns the numbers that were given.
    pub fn numbers(&self) -> &[i32] {
        &self.numbers[..self.len as usize]
    }

    /// Returns the number of an axis, or `default` if none was given for it.
    pub fn at(&self, axis: usize, default: i32) -> i32 {
        self.numbers().get(axis).copied().unwrap_or(default)
    }
}

/// The attributes of all operations. An operation reads only its own. `docs/operations.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attrs {
    /// matmul: a is stored transposed.
    pub trans_a: bool,
    /// matmul: b is stored transposed.
    pub trans_b: bool,
    /// reductions: keep reduced axes as 1.
    pub keepdim: bool,
    /// attention: query i sees key j when j ≤ i + (Sk − Sq).
    pub causal: bool,
    /// rope: a pair is two neighbouring elements. Otherwise it is one element of each half.
    pub interleaved: bool,
    /// gelu: the form.
    pub form: GeluForm,
    /// matmul, ffn: the activation; `None` is the operation's default.
    pub activation: Option<Activation>,
    /// matmul, ffn, attention: the precision of products. `None` is the context's default precision
    /// ([`Context::set_precision`](crate::Context::set_precision)), initially f32.
    pub precision: Option<Precision>,
    /// quantized_matmul, dequantize: the format of the matrix's blocks, which must be given.
    pub format: Option<BlockFormat>,
    /// cast, argmax, argmin, argtopk: the result's dtype; `None` is the operation's default.
    pub dtype: Option<DType>,
    /// topk, argtopk: the number of elements to take from each line.
    pub k: u32,
    /// softmax, reductions, concat, gather, cumsum, topk, argtopk: the axis.
    pub axis: Axis,
    /// reductions that don't return an index: several axes to reduce at once, instead of `axis`.
    pub axes: Permutation,
    /// matmul, scale: the factor.
    pub alpha: f32,
    /// matmul: the factor of c.
    pub beta: f32,
    /// norms: added to the variance.
    pub eps: f32,
    /// clamp: the lower bound.
    pub min: f32,
    /// clamp: the upper bound.
    pub max: f32,
    /// attention: the factor of the scores; 0 means 1/sqrt(D).
    pub scale: f32,
    /// transpose: the order of axes.
    pub perm: Permutation,
    /// slice: the first index on each axis. pad, as `before`: the number of elements to add before each axis.
    pub start: PerAxis,
    /// slice: the index on each axis before which it stops. pad, as `after`: the number of elements to add after each axis.
    pub stop: PerAxis,
    /// slice: the distance from one index to the next on each axis.
    pub step: PerAxis,
}

impl Default for Attrs {
    #[inline]
    fn default() -> Attrs {
        Attrs::DEFAULT
    }
}

impl Attrs {
    /// Every attribute at its default.
    pub const DEFAULT: Attrs = Attrs {
        trans_a: false,
        trans_b: false,
        keepdim: false,
        causal: false,
        interleaved: false,
        form: GeluForm::Erf,
        activation: None,
        precision: None,
        format: None,
        dtype: None,
        k: 1,
        axis: Axis::Default,
        axes: Permutation { axes: [0; MAX_RANK], len: None },
        alpha: 1.0,
        beta: 0.0,
        eps: 1e-5,
        min: f32::NEG_INFINITY,
        max: f32::INFINITY,
        scale: 0.0,
        perm: Permutation { axes: [0; MAX_RANK], len: None },
        start: PerAxis::NONE,
        stop: PerAxis::NONE,
        step: PerAxis::NONE,
    };

    /// Returns the precision, or f32 if none is given.
    #[inline]
    pub fn precision(&self) -> Precision {
        self.precision.unwrap_or(Precision::F32)
    }

    /// Returns the operation's precision if it has one other than f32, for texts that name the operation.
    pub(crate) fn fixed_precision(&self, op: Op) -> Option<Precision> {
        self.precision.filter(|&precision| precision != Precision::F32 && op.info().attrs.contains(&"precision"))
    }

    /// Returns these attributes with this precision if the operation has a precision and none is given. Otherwise, `None`.
    pub(crate) fn with_precision(&self, op: Op, precision: Precision) -> Option<Attrs> {
        let unsaid = self.precision.is_none() && op.info().attrs.contains(&"precision");
        unsaid.then_some(Attrs { precision: Some(precision), ..*self })
    }

    /// Sets an attribute by name from text, as conformance cases and program texts write it: integers in decimal,
    /// f32 in decimal or as `0x` and its bits, words, lists with commas. Returns `invalid_argument` for a name that `op`
    /// does not have or a value that it can't take.
    pub fn set(&mut self, op: Op, name: &str, value: &str) -> Result<()> {
        if !op.info().attrs.contains(&name) {
            fail!(InvalidArgument, "{op} has no attribute '{name}': it has {:?}", op.info().attrs);
        }
        let bad = || {
            let text = format!("{op}: {name} is '{value}'; it must be {}", allowed(name));
            Error::new(Status::InvalidArgument, text)
        };
        let flag = || match value {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(bad()),
        };
        let number = || match value.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).map(f32::from_bits).map_err(|_| bad()),
            None => parse_f32(value).ok_or_else(bad),
        };
        match name {
            "trans_a" => self.trans_a = flag()?,
            "trans_b" => self.trans_b = flag()?,
            "keepdim" => self.keepdim = flag()?,
            "causal" => self.causal = flag()?,
            "interleaved" => self.interleaved = flag()?,
            "alpha" => self.alpha = number()?,
            "beta" => self.beta = number()?,
            "eps" => self.eps = number()?,
            "scale" => self.scale = number()?,
            "min" => self.min = number()?,
            "max" => self.max = number()?,
            "k" => self.k = value.parse().map_err(|_| bad())?,
            "dtype" => self.dtype = Some(value.parse()?),
            "axis" if value == "all" => self.axis = Axis::All,
            "axis" => self.axis = Axis::At(value.parse().map_err(|_| bad())?),
            "form" => {
                self.form = match value {
                    "erf" => GeluForm::Erf,
                    "tanh" => GeluForm::Tanh,
                    _ => return Err(bad()),
                }
            }
            "activation" => {
                self.activation = Some(Activation::ALL.into_iter().find(|a| a.name() == value).ok_or_else(bad)?)
            }
            "precision" => {
                self.precision = Some(Precision::ALL.into_iter().find(|p| p.name() == value).ok_or_else(bad)?)
            }
            "format" => self.format = Some(BlockFormat::ALL.into_iter().find(|f| f.name() == value).ok_or_else(bad)?),
            "perm" | "axes" => {
                let axes: Result<Vec<i32>, _> =
                    value.split(',').filter(|axis| !axis.is_empty()).map(str::parse).collect();
                let axes = Permutation::new(&axes.map_err(|_| bad())?)?;
                *(if name == "perm" { &mut self.perm } else { &mut self.axes }) = axes;
            }
            "start" | "stop" | "step" | "before" | "after" => {
                let numbers: Result<Vec<i32>, _> =
                    value.split(',').filter(|number| !number.is_empty()).map(str::parse).collect();
                let numbers = PerAxis::new(&numbers.map_err(|_| bad())?)?;
                *(match name {
                    "start" | "before" => &mut self.start,
                    "stop" | "after" => &mut self.stop,
                    _ => &mut self.step,
                }) = numbers;
            }
            _ => unreachable!("an attribute of the table has no setter: {name}"),
        }
        Ok(())
    }
}

/// Describes an attribute's allowed values, for an error message.
#[cold]
fn allowed(name: &str) -> String {
    match name {
        "trans_a" | "trans_b" | "keepdim" | "causal" | "interleaved" => "0 or 1".into(),
        "axis" => "one integer (negative ones count from the end) or 'all'".into(),
        "form" => "erf or tanh".into(),
        "k" => "a non-negative integer".into(),
        "activation" => Activation::ALL.map(Activation::name).join(", "),
        "precision" => Precision::ALL.map(Precision::name).join(", "),
        "format" => BlockFormat::ALL.map(BlockFormat::name).join(", "),
        "perm" | "axes" | "start" | "stop" | "step" | "before" | "after" => "integers separated by commas".into(),
        _ => "a number".into(),
    }
}
