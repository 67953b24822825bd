// Generated from include/adead.h and the table of operations by
// `ADEAD_BLESS=1 cargo test -p adead-c --test languages`; don't edit.
#ifndef TYPED_HPP
#define TYPED_HPP

#include <adead.hpp>

/// Calls an operation's own method. `in(i)` is operand i, or NULL; `attr(name, to)` sets an attribute if it is given.
/// The method is that of the first operand if `of_tensor` says so, else that of the context.
template <class In, class Attr>
adead::Returned<adead::Tensor> typed(const adead::Context &context, adead::Op op, std::size_t count, In in, Attr attr,
                                     bool of_tensor) {
  (void)count;
  (void)attr;
  switch (op) {
    case adead::Op::matmul: {
      adead::MatmulOptions options;
      attr("trans_a", options.trans_a);
      attr("trans_b", options.trans_b);
      attr("alpha", options.alpha);
      attr("beta", options.beta);
      attr("activation", options.activation);
      attr("precision", options.precision);
      options.c = in(2);
      options.bias = in(3);
      if (of_tensor) return in(0)->matmul(*in(1), options);
      return context.matmul(*in(0), *in(1), options);
    }
    case adead::Op::dot: {
      if (of_tensor) return in(0)->dot(*in(1));
      return context.dot(*in(0), *in(1));
    }
    case adead::Op::add: {
      if (of_tensor) return in(0)->add(*in(1));
      return context.add(*in(0), *in(1));
    }
    case adead::Op::sub: {
      if (of_tensor) return in(0)->sub(*in(1));
      return context.sub(*in(0), *in(1));
    }
    case adead::Op::mul: {
      if (of_tensor) return in(0)->mul(*in(1));
      return context.mul(*in(0), *in(1));
    }
    case adead::Op::div: {
      if (of_tensor) return in(0)->div(*in(1));
      return context.div(*in(0), *in(1));
    }
    case adead::Op::scale: {
      adead::ScaleOptions options;
      attr("alpha", options.alpha);
      if (of_tensor) return in(0)->scale(options);
      return context.scale(*in(0), options);
    }
    case adead::Op::neg: {
      if (of_tensor) return in(0)->neg();
      return context.neg(*in(0));
    }
    case adead::Op::abs: {
      if (of_tensor) return in(0)->abs();
      return context.abs(*in(0));
    }
    case adead::Op::exp: {
      if (of_tensor) return in(0)->exp();
      return context.exp(*in(0));
    }
    case adead::Op::log: {
      if (of_tensor) return in(0)->log();
      return context.log(*in(0));
    }
    case adead::Op::sqrt: {
      if (of_tensor) return in(0)->sqrt();
      return context.sqrt(*in(0));
    }
    case adead::Op::rsqrt: {
      if (of_tensor) return in(0)->rsqrt();
      return context.rsqrt(*in(0));
    }
    case adead::Op::relu: {
      if (of_tensor) return in(0)->relu();
      return context.relu(*in(0));
    }
    case adead::Op::sigmoid: {
      if (of_tensor) return in(0)->sigmoid();
      return context.sigmoid(*in(0));
    }
    case adead::Op::tanh: {
      if (of_tensor) return in(0)->tanh();
      return context.tanh(*in(0));
    }
    case adead::Op::gelu: {
      adead::GeluOptions options;
      attr("form", options.form);
      if (of_tensor) return in(0)->gelu(options);
      return context.gelu(*in(0), options);
    }
    case adead::Op::silu: {
      if (of_tensor) return in(0)->silu();
      return context.silu(*in(0));
    }
    case adead::Op::softmax: {
      adead::SoftmaxOptions options;
      attr("axis", options.axis);
      if (of_tensor) return in(0)->softmax(options);
      return context.softmax(*in(0), options);
    }
    case adead::Op::sum: {
      adead::SumOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      if (of_tensor) return in(0)->sum(options);
      return context.sum(*in(0), options);
    }
    case adead::Op::mean: {
      adead::MeanOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      if (of_tensor) return in(0)->mean(options);
      return context.mean(*in(0), options);
    }
    case adead::Op::max: {
      adead::MaxOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      if (of_tensor) return in(0)->max(options);
      return context.max(*in(0), options);
    }
    case adead::Op::argmax: {
      adead::ArgmaxOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("dtype", options.dtype);
      if (of_tensor) return in(0)->argmax(options);
      return context.argmax(*in(0), options);
    }
    case adead::Op::layernorm: {
      adead::LayernormOptions options;
      attr("eps", options.eps);
      options.gamma = in(1);
      options.beta = in(2);
      options.residual = in(3);
      if (of_tensor) return in(0)->layernorm(options);
      return context.layernorm(*in(0), options);
    }
    case adead::Op::rmsnorm: {
      adead::RmsnormOptions options;
      attr("eps", options.eps);
      options.gamma = in(1);
      options.residual = in(2);
      if (of_tensor) return in(0)->rmsnorm(options);
      return context.rmsnorm(*in(0), options);
    }
    case adead::Op::attention: {
      adead::AttentionOptions options;
      attr("causal", options.causal);
      attr("scale", options.scale);
      attr("precision", options.precision);
      options.mask = in(3);
      if (of_tensor) return in(0)->attention(*in(1), *in(2), options);
      return context.attention(*in(0), *in(1), *in(2), options);
    }
    case adead::Op::ffn: {
      adead::FfnOptions options;
      attr("activation", options.activation);
      attr("precision", options.precision);
      options.b1 = in(2);
      options.b2 = in(4);
      if (of_tensor) return in(0)->ffn(*in(1), *in(3), options);
      return context.ffn(*in(0), *in(1), *in(3), options);
    }
    case adead::Op::embedding: {
      if (of_tensor) return in(0)->embedding(*in(1));
      return context.embedding(*in(0), *in(1));
    }
    case adead::Op::transpose: {
      adead::TransposeOptions options;
      attr("perm", options.perm);
      if (of_tensor) return in(0)->transpose(options);
      return context.transpose(*in(0), options);
    }
    case adead::Op::concat: {
      std::vector<std::reference_wrapper<const adead::Tensor>> all;
      for (std::size_t i = 0; i < count; i++) all.push_back(*in(i));
      adead::ConcatOptions options;
      attr("axis", options.axis);
      return context.concat(all, options);
    }
    case adead::Op::cast: {
      adead::CastOptions options;
      attr("dtype", options.dtype);
      if (of_tensor) return in(0)->cast(options);
      return context.cast(*in(0), options);
    }
    case adead::Op::floor: {
      if (of_tensor) return in(0)->floor();
      return context.floor(*in(0));
    }
    case adead::Op::round: {
      if (of_tensor) return in(0)->round();
      return context.round(*in(0));
    }
    case adead::Op::erf: {
      if (of_tensor) return in(0)->erf();
      return context.erf(*in(0));
    }
    case adead::Op::clamp: {
      adead::ClampOptions options;
      attr("min", options.min);
      attr("max", options.max);
      if (of_tensor) return in(0)->clamp(options);
      return context.clamp(*in(0), options);
    }
    case adead::Op::maximum: {
      if (of_tensor) return in(0)->maximum(*in(1));
      return context.maximum(*in(0), *in(1));
    }
    case adead::Op::minimum: {
      if (of_tensor) return in(0)->minimum(*in(1));
      return context.minimum(*in(0), *in(1));
    }
    case adead::Op::sin: {
      if (of_tensor) return in(0)->sin();
      return context.sin(*in(0));
    }
    case adead::Op::cos: {
      if (of_tensor) return in(0)->cos();
      return context.cos(*in(0));
    }
    case adead::Op::log1p: {
      if (of_tensor) return in(0)->log1p();
      return context.log1p(*in(0));
    }
    case adead::Op::expm1: {
      if (of_tensor) return in(0)->expm1();
      return context.expm1(*in(0));
    }
    case adead::Op::pow: {
      if (of_tensor) return in(0)->pow(*in(1));
      return context.pow(*in(0), *in(1));
    }
    case adead::Op::min: {
      adead::MinOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      if (of_tensor) return in(0)->min(options);
      return context.min(*in(0), options);
    }
    case adead::Op::argmin: {
      adead::ArgminOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("dtype", options.dtype);
      if (of_tensor) return in(0)->argmin(options);
      return context.argmin(*in(0), options);
    }
    case adead::Op::prod: {
      adead::ProdOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      if (of_tensor) return in(0)->prod(options);
      return context.prod(*in(0), options);
    }
    case adead::Op::slice: {
      adead::SliceOptions options;
      attr("start", options.start);
      attr("stop", options.stop);
      attr("step", options.step);
      if (of_tensor) return in(0)->slice(options);
      return context.slice(*in(0), options);
    }
    case adead::Op::pad: {
      adead::PadOptions options;
      attr("before", options.before);
      attr("after", options.after);
      attr("step", options.step);
      if (of_tensor) return in(0)->pad(*in(1), options);
      return context.pad(*in(0), *in(1), options);
    }
    case adead::Op::gather: {
      adead::GatherOptions options;
      attr("axis", options.axis);
      if (of_tensor) return in(0)->gather(*in(1), options);
      return context.gather(*in(0), *in(1), options);
    }
    case adead::Op::rope: {
      adead::RopeOptions options;
      attr("interleaved", options.interleaved);
      if (of_tensor) return in(0)->rope(*in(1), *in(2), options);
      return context.rope(*in(0), *in(1), *in(2), options);
    }
    case adead::Op::cumsum: {
      adead::CumsumOptions options;
      attr("axis", options.axis);
      if (of_tensor) return in(0)->cumsum(options);
      return context.cumsum(*in(0), options);
    }
    case adead::Op::topk: {
      adead::TopkOptions options;
      attr("k", options.k);
      attr("axis", options.axis);
      if (of_tensor) return in(0)->topk(options);
      return context.topk(*in(0), options);
    }
    case adead::Op::argtopk: {
      adead::ArgtopkOptions options;
      attr("k", options.k);
      attr("axis", options.axis);
      attr("dtype", options.dtype);
      if (of_tensor) return in(0)->argtopk(options);
      return context.argtopk(*in(0), options);
    }
    case adead::Op::equal: {
      if (of_tensor) return in(0)->equal(*in(1));
      return context.equal(*in(0), *in(1));
    }
    case adead::Op::not_equal: {
      if (of_tensor) return in(0)->not_equal(*in(1));
      return context.not_equal(*in(0), *in(1));
    }
    case adead::Op::less: {
      if (of_tensor) return in(0)->less(*in(1));
      return context.less(*in(0), *in(1));
    }
    case adead::Op::less_equal: {
      if (of_tensor) return in(0)->less_equal(*in(1));
      return context.less_equal(*in(0), *in(1));
    }
    case adead::Op::greater: {
      if (of_tensor) return in(0)->greater(*in(1));
      return context.greater(*in(0), *in(1));
    }
    case adead::Op::greater_equal: {
      if (of_tensor) return in(0)->greater_equal(*in(1));
      return context.greater_equal(*in(0), *in(1));
    }
    case adead::Op::where: {
      if (of_tensor) return in(0)->where(*in(1), *in(2));
      return context.where(*in(0), *in(1), *in(2));
    }
    case adead::Op::quantized_matmul: {
      adead::QuantizedMatmulOptions options;
      attr("format", options.format);
      if (of_tensor) return in(0)->quantized_matmul(*in(1), options);
      return context.quantized_matmul(*in(0), *in(1), options);
    }
    case adead::Op::dequantize: {
      adead::DequantizeOptions options;
      attr("format", options.format);
      if (of_tensor) return in(0)->dequantize(options);
      return context.dequantize(*in(0), options);
    }
  }
  return context.run(op, {});
}

/// Records an operation by its own method. Returns false if only `op` can record it: an optional operand is not a tensor,
/// or `said` refuses the attributes.
template <class In, class Attr, class Said>
bool recorded(adead::Pipeline &pipeline, adead::Op op, std::size_t count, In in, Attr attr, Said said) {
  (void)count;
  (void)attr;
  switch (op) {
    case adead::Op::matmul: {
      adead::MatmulOptions options;
      attr("trans_a", options.trans_a);
      attr("trans_b", options.trans_b);
      attr("alpha", options.alpha);
      attr("beta", options.beta);
      attr("activation", options.activation);
      attr("precision", options.precision);
      if (in(2) && !in(2)->tensor()) return false;
      options.c = in(2) ? in(2)->tensor() : nullptr;
      if (in(3) && !in(3)->tensor()) return false;
      options.bias = in(3) ? in(3)->tensor() : nullptr;
      return said() && (void(pipeline.matmul(*in(0), *in(1), options)), true);
    }
    case adead::Op::dot: {
      return said() && (void(pipeline.dot(*in(0), *in(1))), true);
    }
    case adead::Op::add: {
      return said() && (void(pipeline.add(*in(0), *in(1))), true);
    }
    case adead::Op::sub: {
      return said() && (void(pipeline.sub(*in(0), *in(1))), true);
    }
    case adead::Op::mul: {
      return said() && (void(pipeline.mul(*in(0), *in(1))), true);
    }
    case adead::Op::div: {
      return said() && (void(pipeline.div(*in(0), *in(1))), true);
    }
    case adead::Op::scale: {
      adead::ScaleOptions options;
      attr("alpha", options.alpha);
      return said() && (void(pipeline.scale(*in(0), options)), true);
    }
    case adead::Op::neg: {
      return said() && (void(pipeline.neg(*in(0))), true);
    }
    case adead::Op::abs: {
      return said() && (void(pipeline.abs(*in(0))), true);
    }
    case adead::Op::exp: {
      return said() && (void(pipeline.exp(*in(0))), true);
    }
    case adead::Op::log: {
      return said() && (void(pipeline.log(*in(0))), true);
    }
    case adead::Op::sqrt: {
      return said() && (void(pipeline.sqrt(*in(0))), true);
    }
    case adead::Op::rsqrt: {
      return said() && (void(pipeline.rsqrt(*in(0))), true);
    }
    case adead::Op::relu: {
      return said() && (void(pipeline.relu(*in(0))), true);
    }
    case adead::Op::sigmoid: {
      return said() && (void(pipeline.sigmoid(*in(0))), true);
    }
    case adead::Op::tanh: {
      return said() && (void(pipeline.tanh(*in(0))), true);
    }
    case adead::Op::gelu: {
      adead::GeluOptions options;
      attr("form", options.form);
      return said() && (void(pipeline.gelu(*in(0), options)), true);
    }
    case adead::Op::silu: {
      return said() && (void(pipeline.silu(*in(0))), true);
    }
    case adead::Op::softmax: {
      adead::SoftmaxOptions options;
      attr("axis", options.axis);
      return said() && (void(pipeline.softmax(*in(0), options)), true);
    }
    case adead::Op::sum: {
      adead::SumOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      return said() && (void(pipeline.sum(*in(0), options)), true);
    }
    case adead::Op::mean: {
      adead::MeanOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      return said() && (void(pipeline.mean(*in(0), options)), true);
    }
    case adead::Op::max: {
      adead::MaxOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      return said() && (void(pipeline.max(*in(0), options)), true);
    }
    case adead::Op::argmax: {
      adead::ArgmaxOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("dtype", options.dtype);
      return said() && (void(pipeline.argmax(*in(0), options)), true);
    }
    case adead::Op::layernorm: {
      adead::LayernormOptions options;
      attr("eps", options.eps);
      if (in(1) && !in(1)->tensor()) return false;
      options.gamma = in(1) ? in(1)->tensor() : nullptr;
      if (in(2) && !in(2)->tensor()) return false;
      options.beta = in(2) ? in(2)->tensor() : nullptr;
      if (in(3) && !in(3)->tensor()) return false;
      options.residual = in(3) ? in(3)->tensor() : nullptr;
      return said() && (void(pipeline.layernorm(*in(0), options)), true);
    }
    case adead::Op::rmsnorm: {
      adead::RmsnormOptions options;
      attr("eps", options.eps);
      if (in(1) && !in(1)->tensor()) return false;
      options.gamma = in(1) ? in(1)->tensor() : nullptr;
      if (in(2) && !in(2)->tensor()) return false;
      options.residual = in(2) ? in(2)->tensor() : nullptr;
      return said() && (void(pipeline.rmsnorm(*in(0), options)), true);
    }
    case adead::Op::attention: {
      adead::AttentionOptions options;
      attr("causal", options.causal);
      attr("scale", options.scale);
      attr("precision", options.precision);
      if (in(3) && !in(3)->tensor()) return false;
      options.mask = in(3) ? in(3)->tensor() : nullptr;
      return said() && (void(pipeline.attention(*in(0), *in(1), *in(2), options)), true);
    }
    case adead::Op::ffn: {
      adead::FfnOptions options;
      attr("activation", options.activation);
      attr("precision", options.precision);
      if (in(2) && !in(2)->tensor()) return false;
      options.b1 = in(2) ? in(2)->tensor() : nullptr;
      if (in(4) && !in(4)->tensor()) return false;
      options.b2 = in(4) ? in(4)->tensor() : nullptr;
      return said() && (void(pipeline.ffn(*in(0), *in(1), *in(3), options)), true);
    }
    case adead::Op::embedding: {
      return said() && (void(pipeline.embedding(*in(0), *in(1))), true);
    }
    case adead::Op::transpose: {
      adead::TransposeOptions options;
      attr("perm", options.perm);
      return said() && (void(pipeline.transpose(*in(0), options)), true);
    }
    case adead::Op::concat: {
      std::vector<adead::PipelineOperand> all;
      for (std::size_t i = 1; i < count; i++) all.push_back(*in(i));
      adead::ConcatOptions options;
      attr("axis", options.axis);
      return said() && (void(pipeline.begin(*in(0)).concat(all, options)), true);
    }
    case adead::Op::cast: {
      adead::CastOptions options;
      attr("dtype", options.dtype);
      return said() && (void(pipeline.cast(*in(0), options)), true);
    }
    case adead::Op::floor: {
      return said() && (void(pipeline.floor(*in(0))), true);
    }
    case adead::Op::round: {
      return said() && (void(pipeline.round(*in(0))), true);
    }
    case adead::Op::erf: {
      return said() && (void(pipeline.erf(*in(0))), true);
    }
    case adead::Op::clamp: {
      adead::ClampOptions options;
      attr("min", options.min);
      attr("max", options.max);
      return said() && (void(pipeline.clamp(*in(0), options)), true);
    }
    case adead::Op::maximum: {
      return said() && (void(pipeline.maximum(*in(0), *in(1))), true);
    }
    case adead::Op::minimum: {
      return said() && (void(pipeline.minimum(*in(0), *in(1))), true);
    }
    case adead::Op::sin: {
      return said() && (void(pipeline.sin(*in(0))), true);
    }
    case adead::Op::cos: {
      return said() && (void(pipeline.cos(*in(0))), true);
    }
    case adead::Op::log1p: {
      return said() && (void(pipeline.log1p(*in(0))), true);
    }
    case adead::Op::expm1: {
      return said() && (void(pipeline.expm1(*in(0))), true);
    }
    case adead::Op::pow: {
      return said() && (void(pipeline.pow(*in(0), *in(1))), true);
    }
    case adead::Op::min: {
      adead::MinOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      return said() && (void(pipeline.min(*in(0), options)), true);
    }
    case adead::Op::argmin: {
      adead::ArgminOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("dtype", options.dtype);
      return said() && (void(pipeline.argmin(*in(0), options)), true);
    }
    case adead::Op::prod: {
      adead::ProdOptions options;
      attr("axis", options.axis);
      attr("keepdim", options.keepdim);
      attr("axes", options.axes);
      return said() && (void(pipeline.prod(*in(0), options)), true);
    }
    case adead::Op::slice: {
      adead::SliceOptions options;
      attr("start", options.start);
      attr("stop", options.stop);
      attr("step", options.step);
      return said() && (void(pipeline.slice(*in(0), options)), true);
    }
    case adead::Op::pad: {
      adead::PadOptions options;
      attr("before", options.before);
      attr("after", options.after);
      attr("step", options.step);
      return said() && (void(pipeline.pad(*in(0), *in(1), options)), true);
    }
    case adead::Op::gather: {
      adead::GatherOptions options;
      attr("axis", options.axis);
      return said() && (void(pipeline.gather(*in(0), *in(1), options)), true);
    }
    case adead::Op::rope: {
      adead::RopeOptions options;
      attr("interleaved", options.interleaved);
      return said() && (void(pipeline.rope(*in(0), *in(1), *in(2), options)), true);
    }
    case adead::Op::cumsum: {
      adead::CumsumOptions options;
      attr("axis", options.axis);
      return said() && (void(pipeline.cumsum(*in(0), options)), true);
    }
    case adead::Op::topk: {
      adead::TopkOptions options;
      attr("k", options.k);
      attr("axis", options.axis);
      return said() && (void(pipeline.topk(*in(0), options)), true);
    }
    case adead::Op::argtopk: {
      adead::ArgtopkOptions options;
      attr("k", options.k);
      attr("axis", options.axis);
      attr("dtype", options.dtype);
      return said() && (void(pipeline.argtopk(*in(0), options)), true);
    }
    case adead::Op::equal: {
      return said() && (void(pipeline.equal(*in(0), *in(1))), true);
    }
    case adead::Op::not_equal: {
      return said() && (void(pipeline.not_equal(*in(0), *in(1))), true);
    }
    case adead::Op::less: {
      return said() && (void(pipeline.less(*in(0), *in(1))), true);
    }
    case adead::Op::less_equal: {
      return said() && (void(pipeline.less_equal(*in(0), *in(1))), true);
    }
    case adead::Op::greater: {
      return said() && (void(pipeline.greater(*in(0), *in(1))), true);
    }
    case adead::Op::greater_equal: {
      return said() && (void(pipeline.greater_equal(*in(0), *in(1))), true);
    }
    case adead::Op::where: {
      return said() && (void(pipeline.where(*in(0), *in(1), *in(2))), true);
    }
    case adead::Op::quantized_matmul: {
      adead::QuantizedMatmulOptions options;
      attr("format", options.format);
      return said() && (void(pipeline.quantized_matmul(*in(0), *in(1), options)), true);
    }
    case adead::Op::dequantize: {
      adead::DequantizeOptions options;
      attr("format", options.format);
      return said() && (void(pipeline.dequantize(*in(0), options)), true);
    }
  }
  return false;
}

/// Whether an operation's own method accepts these operands: all required ones, and no surplus.
template <class In>
bool fits(adead::Op op, std::size_t count, In in) {
  switch (op) {
    case adead::Op::matmul: return count <= 4 && in(0) && in(1);
    case adead::Op::dot: return count <= 2 && in(0) && in(1);
    case adead::Op::add: return count <= 2 && in(0) && in(1);
    case adead::Op::sub: return count <= 2 && in(0) && in(1);
    case adead::Op::mul: return count <= 2 && in(0) && in(1);
    case adead::Op::div: return count <= 2 && in(0) && in(1);
    case adead::Op::scale: return count <= 1 && in(0);
    case adead::Op::neg: return count <= 1 && in(0);
    case adead::Op::abs: return count <= 1 && in(0);
    case adead::Op::exp: return count <= 1 && in(0);
    case adead::Op::log: return count <= 1 && in(0);
    case adead::Op::sqrt: return count <= 1 && in(0);
    case adead::Op::rsqrt: return count <= 1 && in(0);
    case adead::Op::relu: return count <= 1 && in(0);
    case adead::Op::sigmoid: return count <= 1 && in(0);
    case adead::Op::tanh: return count <= 1 && in(0);
    case adead::Op::gelu: return count <= 1 && in(0);
    case adead::Op::silu: return count <= 1 && in(0);
    case adead::Op::softmax: return count <= 1 && in(0);
    case adead::Op::sum: return count <= 1 && in(0);
    case adead::Op::mean: return count <= 1 && in(0);
    case adead::Op::max: return count <= 1 && in(0);
    case adead::Op::argmax: return count <= 1 && in(0);
    case adead::Op::layernorm: return count <= 4 && in(0);
    case adead::Op::rmsnorm: return count <= 3 && in(0);
    case adead::Op::attention: return count <= 4 && in(0) && in(1) && in(2);
    case adead::Op::ffn: return count <= 5 && in(0) && in(1) && in(3);
    case adead::Op::embedding: return count <= 2 && in(0) && in(1);
    case adead::Op::transpose: return count <= 1 && in(0);
    case adead::Op::concat:
      for (std::size_t i = 0; i < count; i++) {
        if (!in(i)) return false;
      }
      return true;
    case adead::Op::cast: return count <= 1 && in(0);
    case adead::Op::floor: return count <= 1 && in(0);
    case adead::Op::round: return count <= 1 && in(0);
    case adead::Op::erf: return count <= 1 && in(0);
    case adead::Op::clamp: return count <= 1 && in(0);
    case adead::Op::maximum: return count <= 2 && in(0) && in(1);
    case adead::Op::minimum: return count <= 2 && in(0) && in(1);
    case adead::Op::sin: return count <= 1 && in(0);
    case adead::Op::cos: return count <= 1 && in(0);
    case adead::Op::log1p: return count <= 1 && in(0);
    case adead::Op::expm1: return count <= 1 && in(0);
    case adead::Op::pow: return count <= 2 && in(0) && in(1);
    case adead::Op::min: return count <= 1 && in(0);
    case adead::Op::argmin: return count <= 1 && in(0);
    case adead::Op::prod: return count <= 1 && in(0);
    case adead::Op::slice: return count <= 1 && in(0);
    case adead::Op::pad: return count <= 2 && in(0) && in(1);
    case adead::Op::gather: return count <= 2 && in(0) && in(1);
    case adead::Op::rope: return count <= 3 && in(0) && in(1) && in(2);
    case adead::Op::cumsum: return count <= 1 && in(0);
    case adead::Op::topk: return count <= 1 && in(0);
    case adead::Op::argtopk: return count <= 1 && in(0);
    case adead::Op::equal: return count <= 2 && in(0) && in(1);
    case adead::Op::not_equal: return count <= 2 && in(0) && in(1);
    case adead::Op::less: return count <= 2 && in(0) && in(1);
    case adead::Op::less_equal: return count <= 2 && in(0) && in(1);
    case adead::Op::greater: return count <= 2 && in(0) && in(1);
    case adead::Op::greater_equal: return count <= 2 && in(0) && in(1);
    case adead::Op::where: return count <= 3 && in(0) && in(1) && in(2);
    case adead::Op::quantized_matmul: return count <= 2 && in(0) && in(1);
    case adead::Op::dequantize: return count <= 1 && in(0);
  }
  return false;
}

#endif
