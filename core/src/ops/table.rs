//! The table of operations. Everything that lists operations follows from it. Macros produce compiled code. Other files are
//! generated, and tests compare them.

/// Passes the table to a macro. A row is `Variant = number name: Family …;` with the operation's documentation before it, in the
/// section of its kind:
///
/// - `unary`, `y = f(x)`. After the name: the attributes that callers give. After the family: the floating-point operations per
///   element, and the GPU's functions by name and number, one for each form. With `called` after a number, kernels call the
///   function of `functions.glsl` that has the operation's name; without it, each kernel names the function itself. The reference
///   is the function of [`crate::contract`] with the operation's name. The operation has no file of its own.
/// - `binary`, `y = f(a, b)` with broadcasting: the same, without attributes.
/// - `comparison`, of two operands of the same dtype with broadcasting. After the family: the floating-point operations per
///   element, and the outcomes for which it is true, as bits of [`crate::contract::outcome`]. The result is bool.
/// - `reduction`, along one axis, several axes or all. After the family: the function of `lines.comp` and `lines.cu` by name and
///   number, and what the operation computes from a line (a [`Gives`](super::Gives)). The reference is the function of
///   [`crate::contract`] with the operation's name. The operation has no file of its own.
///
/// In these sections, `integers` at the end of a row marks an operation that is also defined on integers and bools, by the function
/// of [`crate::contract::integers`] with its name.
///
/// - `own`. After the family: the function that computes it, with the same path in `hal/cpu/kernels` and in `hal/lowering`.
///
/// Programs and the C ABI contain an operation's number, so it never changes. A new operation takes a number above all others.
/// The number of a GPU's function has six bits. Those of activations are the numbers of [`crate::contract::Activation`].
macro_rules! table {
    ($use:ident) => {
        $use! {
            unary {
                /// `x·alpha`.
                Scale = 6 scale(alpha: f32): Elementwise 1, [SCALE = 7];
                /// `−x`.
                Neg = 7 neg(): Elementwise 1, [NEG = 8] integers;
                /// `|x|`.
                Abs = 8 abs(): Elementwise 1, [ABS = 9] integers;
                /// `e^x`.
                Exp = 9 exp(): Function 16, [EXP = 10];
                /// The natural logarithm; NaN if x < 0.
                Log = 10 log(): Function 24, [LOG = 11];
                /// The square root; NaN if x < 0.
                Sqrt = 11 sqrt(): Elementwise 1, [SQRT = 12];
                /// `1 / sqrt(x)`.
                Rsqrt = 12 rsqrt(): Elementwise 2, [RSQRT = 13];
                /// `max(x, 0)`; NaN stays NaN.
                Relu = 13 relu(): Elementwise 1, [RELU = 1];
                /// `1 / (1 + e^−x)`.
                Sigmoid = 14 sigmoid(): Function 19, [SIGMOID = 2];
                /// The hyperbolic tangent.
                Tanh = 15 tanh(): Function 32, [TANH = 3];
                /// The Gaussian error linear unit, with erf or tanh.
                Gelu = 16 gelu(form: GeluForm): Function 36, [GELU_ERF = 5, GELU_TANH = 4];
                /// `x·sigmoid(x)`.
                Silu = 17 silu(): Function 20, [SILU = 6];
                /// The largest integer ≤ x.
                Floor = 31 floor(): Elementwise 3, [FLOOR = 22 called];
                /// The nearest integer; ties go to even.
                Round = 32 round(): Elementwise 2, [ROUND = 23 called];
                /// The error function.
                Erf = 33 erf(): Function 34, [ERF = 24];
                /// `minimum(maximum(x, min), max)`; NaN propagates, and −0 < +0.
                Clamp = 34 clamp(min: f32, max: f32): Elementwise 2, [CLAMP = 25 called];
                /// The sine of x in radians; NaN if x is infinite.
                Sin = 37 sin(): Function 36, [SIN = 28 called];
                /// The cosine of x in radians; NaN if x is infinite.
                Cos = 38 cos(): Function 36, [COS = 29 called];
                /// `log(1 + x)`, also accurate near 0; NaN if x < −1.
                Log1p = 39 log1p(): Function 30, [LOG1P = 30 called];
                /// `e^x − 1`, also accurate near 0.
                Expm1 = 40 expm1(): Function 25, [EXPM1 = 31 called];
            }
            binary {
                /// `a + b`.
                Add = 2 add: Elementwise 1, [ADD = 14] integers;
                /// `a − b`.
                Sub = 3 sub: Elementwise 1, [SUB = 15] integers;
                /// `a·b`, element by element.
                Mul = 4 mul: Elementwise 1, [MUL = 16] integers;
                /// `a / b`.
                Div = 5 div: Elementwise 1, [DIV = 17] integers;
                /// The larger of a and b; NaN propagates, and −0 < +0.
                Maximum = 35 maximum: Elementwise 1, [MAXIMUM = 26 called] integers;
                /// The smaller of a and b; NaN propagates, and −0 < +0.
                Minimum = 36 minimum: Elementwise 1, [MINIMUM = 27 called] integers;
                /// `a^b`; NaN for a finite a < 0 and a finite b that is not an integer.
                Pow = 41 pow: Function 90, [POW = 32 called];
            }
            comparison {
                /// Whether a equals b; NaN equals nothing, and −0 equals +0.
                Equal = 70 equal: Elementwise 1, 0b0010;
                /// Whether a differs from b; true for NaN.
                NotEqual = 71 not_equal: Elementwise 1, 0b1101;
                /// Whether `a < b`; false for NaN.
                Less = 72 less: Elementwise 1, 0b0001;
                /// Whether `a ≤ b`; false for NaN.
                LessEqual = 73 less_equal: Elementwise 1, 0b0011;
                /// Whether `a > b`; false for NaN.
                Greater = 74 greater: Elementwise 1, 0b0100;
                /// Whether `a ≥ b`; false for NaN.
                GreaterEqual = 75 greater_equal: Elementwise 1, 0b0110;
            }
            reduction {
                /// The sum over some or all axes; +0 for no elements.
                Sum = 19 sum: Reduction, SUM = 0 Value integers;
                /// The mean over some or all axes; NaN for no elements.
                Mean = 20 mean: Reduction, SUM = 0 Mean;
                /// The maximum over some or all axes; NaN propagates. `invalid_argument` for no elements.
                Max = 21 max: Reduction, MAX = 1 Element integers;
                /// The index of the first maximum, i64. `invalid_argument` for no elements.
                Argmax = 22 argmax: Reduction, ARGMAX = 2 Index integers;
                /// The minimum over some or all axes; NaN propagates. `invalid_argument` for no elements.
                Min = 53 min: Reduction, MIN = 3 Element integers;
                /// The index of the first minimum, i64. `invalid_argument` for no elements.
                Argmin = 54 argmin: Reduction, ARGMIN = 4 Index integers;
                /// The product over some or all axes; 1 for no elements.
                Prod = 55 prod: Reduction, PROD = 5 Value integers;
            }
            own {
                /// `alpha·(a·b) + beta·c + bias`, then an activation.
                Matmul = 0 matmul: Matmul, matmul::matmul;
                /// The inner product of two vectors.
                Dot = 1 dot: Reduction, matmul::dot;
                /// `e^x` divided by its sum along an axis.
                Softmax = 18 softmax: Reduction, normalise::softmax;
                /// Normalises mean and variance over the last axis, of x or x + residual.
                Layernorm = 23 layernorm: Reduction, normalise::layernorm;
                /// Normalises the root mean square over the last axis, of x or x + residual.
                Rmsnorm = 24 rmsnorm: Reduction, normalise::rmsnorm;
                /// Scaled dot-product attention: values weighted by softmax.
                Attention = 25 attention: Attention, attention::attention;
                /// Two matrix products with an activation between them.
                Ffn = 26 ffn: Matmul, matmul::ffn;
                /// Looks up rows of a table by id.
                Embedding = 27 embedding: Move, moves::embedding;
                /// Permutes the axes.
                Transpose = 28 transpose: Move, moves::transpose;
                /// Joins tensors along an axis.
                Concat = 29 concat: Move, moves::concat;
                /// Slices every axis from a start to a stop, in steps.
                Slice = 56 slice: Move, parts::slice;
                /// Pads every axis with a value: before, after and between its elements.
                Pad = 57 pad: Move, parts::pad;
                /// Gathers elements along an axis by index.
                Gather = 58 gather: Move, parts::gather;
                /// Rotates pairs of elements of the last axis by angles.
                Rope = 59 rope: Elementwise, rope::rope;
                /// The cumulative sums along an axis.
                Cumsum = 60 cumsum: Reduction, cumsum::cumsum;
                /// The k greatest elements along an axis, greatest first; ties go to the lower index.
                Topk = 61 topk: Reduction, topk::topk;
                /// The indices of the k greatest elements along an axis, i64; ties go to the lower index.
                Argtopk = 62 argtopk: Reduction, topk::argtopk;
                /// Selects from a where the condition is true, and from b elsewhere.
                Where = 76 r#where: Move, compare::select;
                /// Rows times the transpose of a matrix of quantised blocks, in exact integers within each block.
                QuantizedMatmul = 77 quantized_matmul: Matmul, quantized::quantized_matmul;
                /// Converts quantised blocks to f32.
                Dequantize = 78 dequantize: Move, quantized::dequantize;
                /// Converts to another dtype.
                Cast = 30 cast: Elementwise, cast::cast;
            }
        }
    };
}
pub(crate) use table;
