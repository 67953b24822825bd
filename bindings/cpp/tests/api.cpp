// The C++ API on the CPU: what each call gives, and how it fails.
#include "check.hpp"

#include <cmath>
#include <limits>
#include <sstream>
#include <thread>

using namespace adead;

namespace {

void tensors(const Context &ctx) {
  Tensor x = OK(ctx.tensor({2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}));
  CHECK(OK(x.dtype()) == DType::f32 && OK(x.rank()) == 2 && OK(x.bytes()).size() == 24);
  std::vector<std::size_t> dims;
  for (std::size_t dim : OK(x.shape())) dims.push_back(dim);
  CHECK(dims == std::vector<std::size_t>{2, 3});
  CHECK(OK(x.to_vector<float>()) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(OK(x.data<float>())[4] == 5);
  float copy[6] = {};
  OK(x.read(copy, sizeof copy));
  CHECK(copy[5] == 6);
  FAILS(InvalidArgument, invalid_argument, "24", x.read(copy, 20));
  FAILS(DtypeMismatch, dtype_mismatch, "f32", x.data<std::int64_t>());
  FAILS(DtypeMismatch, dtype_mismatch, "f32", x.to_vector<std::uint16_t>());
  FAILS(ShapeMismatch, shape_mismatch, "", ctx.tensor({2, 2}, {1.f, 2.f, 3.f}));

  // From a container, by bits, of zeros, without elements, without dimensions.
  std::vector<std::int64_t> ids{7, -8};
  CHECK(OK(OK(ctx.tensor({2}, ids)).to_vector<std::int64_t>()) == ids);
  const std::uint32_t array[] = {4000000000u};
  Tensor scalar = OK(ctx.tensor({}, array));
  CHECK(OK(scalar.rank()) == 0 && OK(scalar.shape()).empty() && OK(scalar.data<std::uint32_t>())[0] == 4000000000u);
  const std::uint16_t halves[] = {0x3c00, 0x7c00};
  Tensor half = OK(ctx.tensor(DType::f16, {2}, halves, sizeof halves));
  CHECK(OK(half.to_vector<std::uint16_t>()) == std::vector<std::uint16_t>{0x3c00, 0x7c00});
  CHECK(OK(OK(ctx.cast(half, {DType::f32})).to_vector<float>())[1] == std::numeric_limits<float>::infinity());
  Tensor none = OK(ctx.zeros(DType::i32, {3, 0}));
  CHECK(OK(none.bytes()).empty() && OK(none.to_vector<std::int32_t>()).empty());
  FAILS(InvalidArgument, invalid_argument, "rank is 9", ctx.zeros(DType::f32, {1, 1, 1, 1, 1, 1, 1, 1, 1}));
  FAILS(InvalidArgument, invalid_argument, "77", ctx.zeros(static_cast<DType>(77), {1}));

  // Views of the same values.
  Tensor clone = OK(x.clone()), row = OK(x.reshape({6}));
  CHECK(OK(clone.data<float>()).data() == OK(x.data<float>()).data() && OK(row.shape())[0] == 6);
  FAILS(ShapeMismatch, shape_mismatch, "", x.reshape({5}));

  // Copies share the values, and keep them.
  {
    Tensor first = OK(ctx.tensor({1.f, 2.f})), second = first, none_at_all = Tensor();
    CHECK(OK(first.data<float>()).data() == OK(second.data<float>()).data());
    first = none_at_all;
    CHECK(!first && OK(second.data<float>())[1] == 2);
    first = second;
    second = Tensor(second);
    CHECK(OK(first.data<float>())[1] == 2 && same(first, second));
  }

  // In nested lists.
  Tensor matrix = OK(ctx.tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}));
  CHECK(same(matrix, x) && OK(OK(ctx.tensor({7, 8})).to_vector<std::int32_t>()) == std::vector<std::int32_t>{7, 8});
  CHECK(same(OK(ctx.tensor({{{1.f, 2.f, 3.f}}, {{4.f, 5.f, 6.f}}})), OK(x.reshape({2, 1, 3}))));
  CHECK(same(OK(ctx.tensor({{{{1.f}, {2.f}, {3.f}}}, {{{4.f}, {5.f}, {6.f}}}})), OK(x.reshape({2, 1, 3, 1}))));
  CHECK(OK(OK(ctx.tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})).to_vector<std::int32_t>())[5] == 6);
  FAILS(ShapeMismatch, shape_mismatch, "a list of axis 1 has 1 elements and the first one 2", ctx.tensor({{1.f, 2.f}, {3.f}}));
  FAILS(ShapeMismatch, shape_mismatch, "a list of axis 2 has 2 elements and the first one 1",
        ctx.tensor({{{1.f}, {2.f}}, {{3.f}, {4.f, 5.f}}}));

  // Moved; what was moved from is empty, and its use an error.
  static_assert(std::is_copy_constructible_v<Tensor> && std::is_copy_assignable_v<Tensor>, "a copy shares the values");
  static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>, "and moves freely");
  static_assert(!std::is_copy_constructible_v<Context> && !std::is_copy_constructible_v<Stream>, "as everything that owns");
  Tensor moved = std::move(x);
  CHECK(moved && !x);  // NOLINT: that it is empty is what is looked at.
  FAILS(InvalidArgument, invalid_argument, "tensor is NULL", x.shape());
  FAILS(InvalidArgument, invalid_argument, "tensor is NULL", x.data<float>());
  FAILS(InvalidArgument, invalid_argument, "", ctx.relu(x));
  moved = std::move(clone);
  CHECK(OK(moved.rank()) == 2);

  // Taken from the C interface and given back to it.
  adead_tensor *raw = moved.release();
  CHECK(!moved && raw);
  Tensor again(raw, row.context());
  CHECK(OK(OK(again + again).rank()) == 2);
}

void operators(const Context &ctx) {
  Tensor a = OK(ctx.tensor({3}, {1.f, 2.f, -3.f})), b = OK(ctx.tensor({3}, {4.f, 8.f, 2.f}));
  CHECK(OK(OK(a + b).to_vector<float>()) == std::vector<float>{5, 10, -1});
  CHECK(OK(OK(a - b).to_vector<float>()) == std::vector<float>{-3, -6, -5});
  CHECK(OK(OK(a * b).to_vector<float>()) == std::vector<float>{4, 16, -6});
  CHECK(OK(OK(b / a).to_vector<float>())[1] == 4);
  CHECK(OK(OK(-a).to_vector<float>()) == std::vector<float>{-1, -2, 3});
  CHECK(OK(OK(a * 0.5f).to_vector<float>()) == std::vector<float>{0.5, 1, -1.5});
  CHECK(same(OK(2 * a), OK(ctx.scale(a, {2.f}))));
  CHECK(same(OK(a + b), OK(ctx.add(a, b))) && same(OK(b / a), OK(ctx.div(b, a))));
  Tensor wide = OK(ctx.zeros(DType::f32, {4}));
  FAILS(ShapeMismatch, shape_mismatch, "[3]", a + wide);

  // With a number, in the tensor's dtype.
  CHECK(OK(OK(a + 1.f).to_vector<float>()) == std::vector<float>{2, 3, -2});
  CHECK(OK(OK(1.f - a).to_vector<float>()) == std::vector<float>{0, -1, 4});
  CHECK(OK(OK(a - 1.f).to_vector<float>()) == std::vector<float>{0, 1, -4});
  CHECK(OK(OK(8.f / b).to_vector<float>()) == std::vector<float>{2, 1, 4});
  CHECK(OK(OK(b / 2.f).to_vector<float>()) == std::vector<float>{2, 4, 1});
  Tensor half = OK(ctx.cast(a, {DType::f16}));
  CHECK(same(OK(half + 1.f), OK(ctx.cast(OK(a + 1.f), {DType::f16}))));
  Tensor ids = OK(ctx.tensor({1, 2}));
  CHECK(OK(OK(ids + 1.f).to_vector<std::int32_t>()) == std::vector<std::int32_t>{2, 3});
  CHECK(OK(OK(ids * 2.f).to_vector<std::int32_t>()) == std::vector<std::int32_t>{2, 4});
  CHECK(OK(OK(-7.f / ids).to_vector<std::int32_t>()) == std::vector<std::int32_t>{-7, -4});
  FAILS(DtypeMismatch, dtype_mismatch, "i32", ids + 1.5f);
  FAILS(DtypeMismatch, dtype_mismatch, "i32", ids * 1.5f);
  FAILS(InvalidArgument, invalid_argument, "NULL", Tensor() + 1.f);

  // Operations are methods of tensors too.
  CHECK(same(OK(a.add(b)), OK(a + b)) && same(OK(a.relu()), OK(ctx.relu(a))));
  MaxOptions all_of_it;
  all_of_it.axis = all_axes;
  CHECK(OK(OK(a.max(all_of_it)).data<float>())[0] == 2);
  Tensor product = OK(OK(a.reshape({1, 3})).matmul(OK(b.reshape({3, 1}))));
  CHECK(OK(product.to_vector<float>()) == std::vector<float>{14});
  CHECK(OK(OK(a.maximum(0.f)).to_vector<float>()) == std::vector<float>{1, 2, 0});
  CHECK(OK(OK(a.pow(2.f)).to_vector<float>()) == std::vector<float>{1, 4, 9});
  CHECK(OK(OK(a.less(2.f)).to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{1, 0, 1});
  FAILS(InvalidArgument, invalid_argument, "NULL", Tensor().relu());

  // In place of the left operand; its copies keep their values.
  Tensor sum = a;
  OK(sum += b);
  OK(sum *= 2.f);
  OK(sum -= 1.f);
  CHECK(OK(sum.to_vector<float>()) == std::vector<float>{9, 19, -3} && OK(a.data<float>())[0] == 1);
  FAILS(ShapeMismatch, shape_mismatch, "[3]", sum += wide);
  CHECK(OK(sum.data<float>())[0] == 9);
#ifndef ADEAD_NO_EXCEPTIONS
  CHECK(a == a && a == Tensor(a) && a != b && a != wide && a != a.reshape({3, 1}) && a != half);
  CHECK(0.f * a != -(0.f * a));  // The signs of zeros differ.
  auto text = [](const Tensor &x) {
    std::ostringstream out;
    out << x;
    return out.str();
  };
  CHECK(text(a) == "f32 [3] {1, 2, -3}" && text(half) == "f16 [3] {1, 2, -3}");
  CHECK(text(ctx.tensor({{1, 2}, {3, 4}})) == "i32 [2, 2] {1, 2, 3, 4}");
  CHECK(text(ctx.less(a, b)) == "bool [3] {1, 1, 1}" && text(ctx.zeros(DType::i64, {0})) == "i64 [0] {}");
  CHECK(text(ctx.zeros(DType::u32, {17})) == "u32 [17] {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …}");
#endif
  FAILS(InvalidArgument, invalid_argument, "context is NULL", Tensor() + a);
}

void bools(const Context &ctx) {
  Tensor a = OK(ctx.tensor({3}, {1.f, std::nanf(""), -0.f})), b = OK(ctx.tensor({3}, {2.f, std::nanf(""), 0.f}));
  Tensor less = OK(ctx.less(a, b));
  CHECK(OK(less.dtype()) == DType::bool_ && size_of(DType::bool_) == 1);
  CHECK(OK(less.to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{1, 0, 0});
  CHECK(OK(OK(ctx.not_equal(a, b)).to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{1, 1, 0});
  const std::uint8_t mask[] = {0, 1, 0};
  Tensor given = OK(ctx.tensor({3}, mask)), value = OK(ctx.tensor({1}, {7.f}));
  CHECK(OK(given.dtype()) == DType::bool_ && OK(OK(ctx.where(given, value, b)).to_vector<float>()) == std::vector<float>{2, 7, 0});
  FAILS(DtypeMismatch, dtype_mismatch, "not bool", ctx.relu(less));
  FAILS(DtypeMismatch, dtype_mismatch, "", less.data<float>());
}

// f64 is stored, moved, compared and cast; arithmetic refuses it.
void doubles(const Context &ctx) {
  const std::vector<double> values{0.1, -2.5, 1e300};
  Tensor x = OK(ctx.tensor({3}, values));
  CHECK(OK(x.dtype()) == DType::f64 && !std::strcmp(name(DType::f64), "f64") && size_of(DType::f64) == 8);
  CHECK(OK(x.to_vector<double>()) == values && OK(x.data<double>())[0] == 0.1 && OK(x.bytes()).size() == 24);
  FAILS(DtypeMismatch, dtype_mismatch, "f64", x.data<float>());
  FAILS(DtypeMismatch, dtype_mismatch, "f32", OK(ctx.tensor({1.f})).data<double>());
  CHECK(same(x, OK(ctx.tensor({0.1, -2.5, 1e300}))) && same(x, OK(ctx.tensor({3}, {0.1, -2.5, 1e300}))));
  CHECK(same(x, OK(ctx.tensor({3}, Span<const double>(values.data(), 3)))));
  CHECK(same(x, OK(ctx.tensor(DType::f64, {3}, values.data(), 24))));
  Tensor nested = OK(ctx.tensor({{0.1, 0.2}, {0.3, 0.4}}));
  CHECK(OK(nested.dtype()) == DType::f64 && OK(nested.rank()) == 2 && OK(nested.data<double>())[3] == 0.4);
  // Lists of float stay f32.
  CHECK(OK(OK(ctx.tensor({0.5f, 1.5f})).dtype()) == DType::f32);

  CHECK(OK(OK(ctx.cast(x, {DType::f32})).to_vector<float>()) ==
        std::vector<float>{0.1f, -2.5f, std::numeric_limits<float>::infinity()});
  CHECK(OK(OK(ctx.cast(x, {DType::i32})).to_vector<std::int32_t>())[1] == -2);
  CHECK(OK(OK(ctx.cast(OK(ctx.tensor({0.1f})), {DType::f64})).data<double>())[0] == static_cast<double>(0.1f));
  Tensor joined = OK(ctx.concat({x, x}));
  CHECK(OK(joined.data<double>())[5] == 1e300);
  Tensor y = OK(ctx.tensor({3}, {0.1, -2.0, 1e300})), less = OK(x.less(y));
  CHECK(OK(less.to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{0, 1, 0});
  CHECK(OK(OK(ctx.where(less, y, x)).to_vector<double>()) == std::vector<double>{0.1, -2, 1e300});

  // A number is compared as f64.
  CHECK(OK(OK(x.equal(0.1)).to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{1, 0, 0});
  CHECK(OK(OK(x.equal(0.1f)).to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{0, 0, 0});
  CHECK(OK(OK(x.less(1)).to_vector<std::uint8_t>()) == std::vector<std::uint8_t>{1, 1, 0});
  // Beside f32 it is rounded to f32, and the result is f32.
  Tensor tenth = OK(ctx.tensor({0.1f}));
  CHECK(OK(OK(tenth.equal(0.1)).data<std::uint8_t>())[0] == 1 && same(OK(tenth + 0.1), OK(tenth + 0.1f)));
  CHECK(same(OK(tenth * 0.1), OK(tenth * 0.1f)) && same(OK(0.1 / tenth), OK(0.1f / tenth)));

  FAILS(DtypeMismatch, dtype_mismatch, "not f64; cast it first", x + x);
  FAILS(DtypeMismatch, dtype_mismatch, "not f64; cast it first", x + 1.0);
  FAILS(DtypeMismatch, dtype_mismatch, "not f64; cast it first", 0.5 * x);
  FAILS(DtypeMismatch, dtype_mismatch, "not f64; cast it first", -x);
  FAILS(DtypeMismatch, dtype_mismatch, "not f64; cast it first", x.relu());
  FAILS(DtypeMismatch, dtype_mismatch, "f64", tenth + x);
#ifndef ADEAD_NO_EXCEPTIONS
  CHECK(x == ctx.tensor({3}, values) && x != y && ctx.tensor({0.0}) != ctx.tensor({-0.0}) && tenth != ctx.cast(tenth, {DType::f64}));
  auto text = [](const Tensor &tensor, int digits = 6) {
    std::ostringstream out;
    out.precision(digits);
    out << tensor << ' ' << out.precision();
    return out.str();
  };
  CHECK(text(x) == "f64 [3] {0.1, -2.5, 1e+300} 6");
  CHECK(text(ctx.tensor({0.1 + 0.2, 1234567.0, 1. / 3})) == "f64 [3] {0.30000000000000004, 1234567, 0.3333333333333333} 6");
  CHECK(text(ctx.tensor({1. / 3}), 3) == "f64 [1] {0.333} 3");
  CHECK(text(ctx.tensor({-0.0, std::numeric_limits<double>::infinity(), 5e-324})) == "f64 [3] {-0, inf, 4.94066e-324} 6");
#endif
}

void operations(const Context &ctx) {
  // Attributes that are left out have the core's defaults: as what sets them says.
  Tensor x = OK(ctx.tensor({4, 6}, some_values(24, 1))), w = OK(ctx.tensor({5, 6}, some_values(30, 2)));
  Tensor bias = OK(ctx.tensor({5}, some_values(5, 3)));
  CHECK(same(OK(ctx.softmax(x)), OK(ctx.softmax(x, {-1}))) && !same(OK(ctx.softmax(x)), OK(ctx.softmax(x, {0}))));
  CHECK(OK(OK(ctx.sum(x)).rank()) == 0 && OK(OK(ctx.sum(x, {all_axes, true})).rank()) == 2);
  CHECK(OK(OK(ctx.sum(x, {1})).shape())[0] == 4);
  // A temporary's dimensions are a copy, which a loop keeps.
  static_assert(std::is_same_v<decltype(std::declval<Tensor>().shape()), Returned<std::vector<std::size_t>>>);
  std::size_t product = 1;
  for (std::size_t length : OK(OK(ctx.sum(x, {1, true})).shape())) product *= length;
  CHECK(product == 4);
  CHECK(OK(OK(ctx.argmax(x)).dtype()) == DType::i64 && OK(OK(ctx.argmax(x, {0, {}, DType::u32})).dtype()) == DType::u32);
  CHECK(same(OK(ctx.transpose(x)), OK(ctx.transpose(x, {{1, 0}}))));
  CHECK(!same(OK(ctx.gelu(x)), OK(ctx.gelu(x, {GeluForm::tanh}))));
  CHECK(same(OK(ctx.layernorm(x)), OK(ctx.layernorm(x, {1e-5f}))));
  Tensor joined = OK(ctx.concat({x, x, w}));
  CHECK(OK(joined.shape())[0] == 13 && OK(OK(ctx.concat({x, x}, {1})).shape())[1] == 12);
  std::vector<std::reference_wrapper<const Tensor>> many{x, w};
  CHECK(OK(OK(ctx.concat(many)).shape())[0] == 9);

  MatmulOptions options;
  options.trans_b = true;
  options.alpha = 0.5f;
  options.bias = &bias;
  options.activation = Activation::gelu_tanh;
  Tensor y = OK(ctx.matmul(x, w, options));
  Tensor plain = OK(ctx.matmul(x, OK(ctx.transpose(w))));
  CHECK(same(y, OK(ctx.gelu(OK(OK(plain * 0.5f) + bias), {GeluForm::tanh}))));

  // Packed: the same bits.
  Packed packed = OK(ctx.pack(w, true));
  CHECK(OK(packed.dims())[0] == 6 && OK(packed.dims())[1] == 5 && OK(packed.dtype()) == DType::f32 && OK(packed.bytes()) >= 120);
  options.trans_b = {};
  CHECK(same(y, OK(packed.matmul(x, options))) && same(plain, OK(packed.matmul(x))));
  FAILS(ShapeMismatch, shape_mismatch, "", packed.matmul(bias));
  options.c = &x;
  options.beta = 1.f;
  FAILS(ShapeMismatch, shape_mismatch, "", packed.matmul(x, options));

#if __cplusplus >= 202002L
  CHECK(same(y, OK(ctx.matmul(x, w, {.trans_b = true, .alpha = 0.5f, .activation = Activation::gelu_tanh, .bias = &bias}))));
#endif

  // By number, and what is wrong with a call.
  Attrs attrs;
  OK(attrs.set(Op::softmax, "axis", "0"));
  CHECK(same(OK(ctx.run(Op::softmax, {&x}, attrs)), OK(ctx.softmax(x, {0}))));
  FAILS(InvalidArgument, invalid_argument, "axes", attrs.set(Op::softmax, "axes", "0"));
  FAILS(InvalidArgument, invalid_argument, "axis", ctx.softmax(x, {2}));
  FAILS(InvalidArgument, invalid_argument, "activation", ctx.ffn(x, w, w, {static_cast<Activation>(99)}));
  FAILS(InvalidArgument, invalid_argument, "", ctx.run(Op::relu, {&x, &x}));
  FAILS(InvalidArgument, invalid_argument, "op is 99", ctx.run(static_cast<Op>(99), {&x}));
  FAILS(ShapeMismatch, shape_mismatch, "matmul: A is [4, 6] and B is [5, 6]", ctx.matmul(x, w));
  FAILS(DtypeMismatch, dtype_mismatch, "", ctx.add(x, OK(ctx.zeros(DType::i32, {4, 6}))));
  CHECK(!std::strcmp(name(Op::softmax), "softmax") && !std::strcmp(name(Status::io), "io") && !name(static_cast<Op>(99)));
  CHECK(!std::strcmp(name(Activation::gelu_erf), "gelu_erf") && !name(static_cast<Activation>(99)) && size_of(DType::i64) == 8);
}

void contexts() {
  FAILS(InvalidArgument, invalid_argument, "nowhere", Context::open("nowhere"));
  FAILS(BackendUnavailable, backend_unavailable, "vulkan:99", Context::open("vulkan:99"));
  ContextOptions options;
  options.isa = "abacus";
  FAILS(InvalidArgument, invalid_argument, "abacus", Context::open("cpu", options));
  Context best = OK(Context::open(std::string("cpu")));
  options.isa = OK(best.device()).arch;
  options.threads = 2;
  Context pinned = OK(Context::open("cpu", options));
  DeviceInfo info = OK(pinned.device());
  CHECK(info.id == "cpu" && info.kind == DeviceKind::cpu && info.units == 2 && !info.uuid && !info.name.empty());
  CHECK(info.arch == *options.isa);
  CHECK(OK(best.devices()).size() == 1 && OK(best.memory()).total > 0);
  // The same bits, whatever computes them, whichever context an operand came from.
  Tensor x = OK(pinned.tensor({20, 30}, some_values(600, 5)));
  CHECK(same(OK(best.softmax(x)), OK(pinned.softmax(x))));
  OK(best.trim());
  Tensor kept;
  {
    Context gone = OK(Context::open("cpu"));
    kept = OK(gone.relu(x));
  }
  // What a context made keeps it open.
  CHECK(same(OK(kept + kept), OK(best.add(kept, kept))));
  Context moved = std::move(pinned);
  FAILS(InvalidArgument, invalid_argument, "context is NULL", pinned.relu(x));  // NOLINT
  CHECK(moved && !pinned);

  Hardware machine = OK(hardware());
  CHECK(machine.cpu_threads >= 1 && machine.memory_total > 0 && machine.gpu_count == OK(gpus()).size());
  CHECK(!machine.cpu_model.empty() && machine.cpu_caches.size() <= ADEAD_MAX_CACHES);
  FAILS(InvalidArgument, invalid_argument, "there are", gpu_backends(machine.gpu_count));
  CHECK(std::strstr(contract_version(), "adead-contract") && version()[0]);
}

void choices(const Context &ctx) {
  Tensor a = OK(ctx.tensor({3, 4}, some_values(12, 1)));
  Explanation why = OK(ctx.explain(Op::relu, {&a}));
  CHECK(why.id == "cpu" && why.family == Family::elementwise && why.elements == 12 && !why.reason.empty());
  CHECK(why.estimates.size() == 1 && why.estimates[why.device].fits == 1 && !std::strcmp(name(why.family), "elementwise"));
  CHECK(OK(ctx.select(1000)) == why.device);
  OK(ctx.set_threshold(Family::matmul, 5));
  OK(ctx.set_threshold(Family::matmul, no_threshold));
  OK(ctx.force("cpu"));
  OK(ctx.force(nullptr));
  FAILS(InvalidArgument, invalid_argument, "moon", ctx.force("moon"));
}

const char source[] =
    ".adead 1\n"
    "input  a f32[2,2]\n"
    "const  w f32[2,2] = 3f800000 40000000 0.5 -1.0\n"
    "temp   t f32[2,2]\n"
    "output c f32[2,2]\n"
    "t = matmul a w trans_b=1\n"
    "c = relu t\n"
    "halt\n";

void programs(const Context &ctx) {
  Program program = OK(Program::assemble(source));
  CHECK(OK(program.format()) == Format::text && OK(program.length()) == 3 && OK(program.notes()).empty());
  std::vector<Slot> slots = OK(program.slots());
  CHECK(slots.size() == 2 && slots[0].name == "a" && slots[0].direction == Direction::in && slots[0].required);
  CHECK(slots[1].dims == std::vector<std::size_t>{2, 2} && slots[1].dtype == DType::f32 && slots[1].bytes == 16);
  CHECK(OK(program.validate()) >= 32);
  FAILS(OutOfMemory, out_of_memory, "limit is 8", program.validate(8));
  // Written and read again it is the same program.
  std::string file = OK(program.encode(Format::adead));
  Program again = OK(Program::decode(file.data(), file.size()));
  CHECK(OK(again.format()) == Format::adead && OK(again.encode(Format::adead)) == file);
  CHECK(OK(OK(Program::assemble(OK(again.disassemble()))).length()) == 3);
  FAILS(InvalidProgram, invalid_program, "", Program::decode(file.data(), file.size() / 2));
  FAILS(InvalidProgram, invalid_program, "line 1", Program::assemble("nonsense"));
  FAILS(Io, io, "nowhere.adead", Program::load("nowhere.adead"));
  FAILS(Unsupported, unsupported, "", program.encode(Format::ahyb));

  Tensor a = OK(ctx.tensor({2, 2}, {1.f, 0.f, 0.f, 1.f}));
  FAILS(InvalidArgument, invalid_argument, "'a'", ctx.run(program, {}));
  FAILS(InvalidArgument, invalid_argument, "'b'", ctx.run(program, {{"b", a}}));
  RunOptions options;
  options.memory_limit = 8;
  FAILS(OutOfMemory, out_of_memory, "limit is 8", ctx.run(program, {{"a", a}}, options));
  options.memory_limit = {};
  options.parallel = true;
  Outcome outcome = OK(ctx.run(program, {{"a", a}}, options));
  CHECK(OK(outcome.output_names()) == std::vector<std::string>{"c"});
  FAILS(InvalidArgument, invalid_argument, "no output 'a'", outcome.output("a"));
  std::vector<Trace> trace = OK(outcome.trace());
  CHECK(trace.size() == 3 && trace[0].name == "matmul" && trace[0].device == "cpu" && OK(outcome.report()).instructions == 3);
  Tensor c = OK(outcome.output("c"));
  outcome = Outcome();
  CHECK(OK(c.to_vector<float>()) == std::vector<float>{1, 0.5, 2, 0});
}

void memory() {
  Allocator allocator = OK(Allocator::create(256, 8));
  std::size_t first = OK(allocator.alloc(300)), second = OK(allocator.alloc(1));
  CHECK(first == 0 && second == 512 && OK(allocator.memory(first)).size() == 512);
  OK(allocator.memory(first))[511] = std::byte{7};
  CHECK(OK(allocator.report()).used == 768 && OK(allocator.report()).live == 2);
  FAILS(OutOfMemory, out_of_memory, "", allocator.alloc(4096));
  FAILS(InvalidArgument, invalid_argument, "", allocator.free(256));
  OK(allocator.free(first));
  OK(allocator.reset());
  FAILS(InvalidArgument, invalid_argument, "", allocator.memory(first));
  FAILS(InvalidArgument, invalid_argument, "", Allocator::create(100, 8));

  Arena arena = OK(Arena::create(4096, 4096));
  char *one = static_cast<char *>(OK(arena.alloc(10, 1))), *two = static_cast<char *>(OK(arena.alloc(8, 64)));
  CHECK(reinterpret_cast<std::uintptr_t>(two) % 64 == 0 && two >= one + 10 && OK(arena.used()) >= 18 && OK(arena.capacity()) == 4096);
  FAILS(OutOfMemory, out_of_memory, "", arena.alloc(8192, 1));
  OK(arena.reset());
  CHECK(OK(arena.used()) == 0);

  std::vector<float> plain;
  for (int i = 1; i <= 15; i++) plain.push_back(static_cast<float>(i));
  Layout tiles = OK(Layout::optimize_matrix(sizeof(float), 3, 5, 2));
  CHECK(OK(tiles.dims())[0] == 4 && OK(tiles.dims())[1] == 6 && OK(tiles.bytes())[1] == 96);
  std::vector<float> arranged = OK(tiles.arrange(plain));
  CHECK(arranged == std::vector<float>{1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0});
  CHECK(OK(tiles.restore(arranged)) == plain);
  FAILS(ShapeMismatch, shape_mismatch, "60", tiles.arrange(arranged));
  CHECK(OK(OK(Layout::coalesce(4, 15, 3)).arrange(plain))[1] == 4);
  CHECK(OK(OK(Layout::align(4, 3, 5, 16)).arrange(plain))[8] == 6);
  CHECK(OK(OK(Layout::morton(4, 3, 5)).arrange(plain))[2] == 6);
  FAILS(InvalidArgument, invalid_argument, "element is 3", Layout::morton(3, 2, 2));
}

void streams(const Context &ctx) {
  std::vector<float> values{1, -2, 3, -4};
  Buffer x = OK(ctx.buffer(values)), y = OK(ctx.buffer_zeroed(16));
  CHECK(OK(x.size()) == 16 && OK(x.to_vector<float>()) == values);
  OK(x.write(4, std::vector<float>{5}));
  Stream stream = OK(ctx.stream());
  OK(stream.run(Op::relu, {{x, DType::f32, {4}}}, {y, DType::f32, {4}}));
  Event event = OK(stream.event());
  OK(event.wait());
  CHECK(OK(event.query()));
  Download download = OK(stream.download(y, 0, 16));
  float got[4] = {};
  OK(download.read(got, sizeof got));
  CHECK(got[0] == 1 && got[1] == 5 && got[2] == 3 && got[3] == 0);
  FAILS(InvalidArgument, invalid_argument, "", download.read(got, sizeof got));
  Attrs attrs;
  OK(attrs.set(Op::scale, "alpha", "2"));
  OK(stream.run(Op::scale, {{y, DType::f32, {2}, 8}}, {x, DType::f32, {2}}, attrs));
  OK(stream.copy(x, 0, y, 8, 8));
  OK(stream.clear(y, 0, 8));
  OK(stream.upload(y, 4, values.data(), 4));
  OK(stream.flush());
  OK(stream.sync());
  CHECK(OK(stream.query()) && OK(y.to_vector<float>()) == std::vector<float>{0, 1, 6, 0});
  FAILS(ShapeMismatch, shape_mismatch, "", stream.run(Op::relu, {{x, DType::f32, {4}}}, {y, DType::f32, {3}}));
  FAILS(InvalidArgument, invalid_argument, "rank is 9",
        stream.run(Op::relu, {{x, DType::f32, {1, 1, 1, 1, 1, 1, 1, 1, 4}}}, {y, DType::f32, {4}}));
  FAILS(Unsupported, unsupported, "", stream.record_begin());
  FAILS(Unsupported, unsupported, "", stream.record([](Stream &) {}));
  FAILS(Io, io, "nowhere.spv", ctx.load_spirv("nowhere.spv"));
  OK(ctx.wait());
  OK(OK(ctx.event()).wait(std::chrono::seconds(10)));
  float word = 0;
  OK(x.read(4, &word, 4));
  CHECK(word == 0);
  OK(x.free());
  FAILS(InvalidArgument, invalid_argument, "freed", x.free());
  FAILS(InvalidArgument, invalid_argument, "freed", x.to_vector<float>());
}

/// A context and tensors are shared; each thread has its own errors.
void threads(const Context &ctx) {
  Tensor x = OK(ctx.tensor({64, 64}, some_values(4096, 9)));
  Tensor expected = OK(ctx.softmax(OK(ctx.matmul(x, x))));
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < 4; t++) {
    all.emplace_back([&, t] {
      for (int i = 0; i < 50; i++) {
        CHECK(same(OK(ctx.softmax(OK(ctx.matmul(x, x)))), expected));
        std::string words = "[" + std::to_string(t + 2) + "]";
        Tensor wrong = OK(ctx.zeros(DType::f32, {t + 2}));
        FAILS(ShapeMismatch, shape_mismatch, words.c_str(), x + wrong);
      }
    });
  }
  for (std::thread &one : all) one.join();
}

#ifdef ADEAD_NO_EXCEPTIONS
void results(const Context &ctx) {
  Result<Tensor> bad = ctx.tensor({2}, {1.f});
  CHECK(!bad && !bad.ok() && bad.error() && !*bad && !Result<void>(*bad.error()));
  // The value of a failed call is empty, and harmless.
  CHECK(!ctx.relu(*bad).ok() && !bad->shape().ok());
  auto chained = ctx.tensor({2}, {1.f, -1.f}).and_then([&](Tensor x) { return ctx.relu(x); });
  CHECK(chained.ok() && chained.status() == Status::ok && !*chained.message() && chained->to_vector<float>().value()[0] == 1);
  auto broken = ctx.tensor({2}, {1.f}).and_then([&](Tensor x) { return ctx.relu(x); });
  CHECK(broken.status() == Status::shape_mismatch);
  std::size_t sum = 0;
  for (std::size_t dim : *chained->shape()) sum += dim;
  CHECK(sum == 2);
}
#else
void results(const Context &ctx) {
  // One class for all, the standard's, and the number that all languages share.
  try {
    ctx.relu(Tensor());
    CHECK(false);
  } catch (const std::runtime_error &error) {
    CHECK(dynamic_cast<const InvalidArgument *>(&error) && error.what()[0]);
  }
  Context opened("cpu"), copied(std::move(opened));
  CHECK(copied && !opened);  // NOLINT
}
#endif

/// Where values are: on the GPU it is gpu.cpp that looks.
void residence(const Context &ctx) {
  Tensor x = OK(ctx.tensor({20, 10}, some_values(200, 3)));
  OK(ctx.to(x, "cpu"));
  OK(x.to_cpu());
  CHECK(OK(x.is_on("cpu")) && !OK(x.is_on("cuda:77")) && OK(OK(ctx.relu(x)).is_on("cpu")));
  TensorCacheUse none = OK(ctx.tensor_cache("cpu"));
  CHECK(none.budget == 0 && none.used == 0 && none.tensors == 0 && none.evictions == 0);
  OK(ctx.set_tensor_cache(0));
  CHECK(OK(ctx.precision()) == Precision::f32);
  {
    Context own = OK(ctx.with_precision(Precision::fixed24));
    CHECK(OK(own.precision()) == Precision::fixed24 && OK(ctx.precision()) == Precision::f32);
  }
  OK(ctx.set_precision(Precision::fixed16));
  CHECK(OK(ctx.precision()) == Precision::fixed16);
  OK(ctx.set_precision(Precision::f32));
  FAILS(InvalidArgument, invalid_argument, "it has cpu", ctx.to(x, "cuda:77"));
  FAILS(InvalidArgument, invalid_argument, "device is NULL", ctx.to(x, nullptr));
  FAILS(InvalidArgument, invalid_argument, "device is NULL", x.is_on(nullptr));
  FAILS(InvalidArgument, invalid_argument, "device is NULL", ctx.tensor_cache(nullptr));
  FAILS(InvalidArgument, invalid_argument, "cuda:77", ctx.tensor_cache("cuda:77"));
  // Moved from.
  Tensor other = std::move(x);
  FAILS(InvalidArgument, invalid_argument, "tensor is NULL", ctx.to(x, "cpu"));
  FAILS(InvalidArgument, invalid_argument, "tensor is NULL", x.is_on("cpu"));
  FAILS(InvalidArgument, invalid_argument, "NULL", x.to_cpu());
}

}  // namespace

/// Gradients of the sum of x·x, of which one factor stands still, plus x.
void gradients(const Context &ctx) {
  Pipeline sums = ctx.pipeline();
  Value of = sums.input(DType::f32, {3}).value();
  Value still = OK(sums.detach());
  Value loss = sums.mul(still).add(of).sum().value();
  std::vector<Value> found = OK(sums.gradients({of}));
  CHECK(found.size() == 1 && sums.value().get() == loss.get());
  const std::vector<float> numbers{1.f, -2.f, .5f}, slopes{2.f, -1.f, 1.5f};
  Compiled slope = OK(sums.begin(found[0]).compile());
  Tensor x = OK(ctx.tensor({3}, numbers));
  CHECK(same(OK(slope.run({x})), OK(ctx.tensor({3}, slopes))));
  FAILS(ShapeMismatch, shape_mismatch, "it must have one element", sums.begin(of).gradients({of}));

  // A hook halves the gradient of x·x. The first square takes no part.
  Pipeline hooked = ctx.pipeline();
  Value from = hooked.input(DType::f32, {3}).value();
  CHECK(OK(hooked.set_grad_enabled(false)));
  Value first = hooked.mul(from).value();
  CHECK(!OK(hooked.set_grad_enabled(true)));
  int calls = 0;
  hooked.begin(from).mul(from).hook([&](Pipeline &gradient) {
    calls++;
    gradient.scale({.5f});
  });
  loss = hooked.add(first).sum().value();
  std::vector<Value> halved = OK(hooked.gradients({from}));
  CHECK(calls == 1 && hooked.value().get() == loss.get());
  CHECK(same(OK(OK(hooked.begin(halved[0]).compile()).run({x})), x));
#ifndef ADEAD_NO_EXCEPTIONS
  // What a hook throws arrives, and the pipeline is as before.
  Pipeline thrown = ctx.pipeline();
  Value in = thrown.input(DType::f32, {3}).value();
  thrown.mul(in).hook([&](Pipeline &) {
    if (++calls == 2) throw 17;
  });
  bool arrived = false;
  try {
    thrown.sum().gradients({in});
  } catch (int number) {
    arrived = number == 17;
  }
  CHECK(arrived && calls == 2 && thrown.gradients({in}).size() == 1 && calls == 3);
#endif
  // An error of an operation in a hook is the pipeline's.
  Pipeline wrong = ctx.pipeline();
  Value into = wrong.input(DType::f32, {3}).value();
  wrong.mul(into).hook([](Pipeline &gradient) { gradient.reshape({4}); });
  FAILS(ShapeMismatch, shape_mismatch, "4", wrong.sum().gradients({into}));
}

void pipelines(const Context &ctx) {
  const std::size_t rows = 5, n = 24, wide = 40;
  Tensor x = OK(ctx.tensor({rows, n}, some_values(rows * n, 1))), w1 = OK(ctx.tensor({n, wide}, some_values(n * wide, 2)));
  Tensor b1 = OK(ctx.tensor({wide}, some_values(wide, 3))), w2 = OK(ctx.tensor({wide, n}, some_values(wide * n, 4)));
  Tensor hidden = OK(ctx.relu(OK(ctx.add(OK(ctx.matmul(x, w1)), b1))));
  Tensor expected = OK(ctx.matmul(hidden, w2));
  for (std::uint64_t i = 0; i < 3; i++) {
    CHECK(same(OK(ctx.pipeline().matmul(x, w1).bias(b1).relu().matmul(w2).execute()), expected));
    CacheUse use = OK(ctx.pipeline_cache());
    CHECK(use.entries == 1 && use.hits == i && use.misses == 1);
  }

  // Compiled, with an input, a value that is used again, options and two outputs.
  Pipeline pipeline = ctx.pipeline();
  Value in = pipeline.input(DType::f32, {rows, n}).value();
  pipeline.layernorm().matmul(w1).bias(b1).gelu({GeluForm::tanh}).output().matmul(w2).add(in).reshape({rows * n});
  Compiled compiled = OK(pipeline.compile());
  Tensor middle = OK(ctx.gelu(OK(ctx.add(OK(ctx.matmul(OK(ctx.layernorm(x)), w1)), b1)), {GeluForm::tanh}));
  Tensor last = OK(OK(ctx.add(OK(ctx.matmul(middle, w2)), x)).reshape({rows * n}));
  std::vector<Tensor> outputs = OK(compiled.run_all({x}));
  CHECK(outputs.size() == 2 && same(outputs[0], middle) && same(outputs[1], last));
  CHECK(same(OK(compiled.run({x})), last));
  CompiledInfo info = OK(compiled.info());
  CHECK(info.inputs == 1 && info.outputs == 2 && info.operations == 6 && info.steps == 3 && info.device == "cpu");
  CHECK(OK(compiled.text()).find("matmul+add+gelu") != std::string::npos);
  CHECK(OK(compiled.dot()).find("\"step 1\" -> \"step 2\"") != std::string::npos);

  adead_value unused = 0;
  if (adead_chain_detach(nullptr, 0, &unused) == ADEAD_UNSUPPORTED) {
    FAILS(Unsupported, unsupported, "no gradients: build it with ADEAD_GRADIENTS", ctx.pipeline().begin(x).detach());
    CHECK(!std::getenv("ADEAD_TEST_GRADIENTS"));
  } else {
    gradients(ctx);
  }

  // Operands in the operation's order, optional ones among them; any number of them.
  FfnOptions options;
  options.b1 = &b1;
  CHECK(same(OK(ctx.pipeline().ffn(x, w1, w2, options).execute()), OK(ctx.ffn(x, w1, w2, options))));
  CHECK(same(OK(ctx.pipeline().begin(x).concat({x, x}, {1}).execute()), OK(ctx.concat({x, x, x}, {1}))));

  // The first error is the one that is told, and nothing is lost of a pipeline that is moved.
  FAILS(ShapeMismatch, shape_mismatch, "must equal B's rows", ctx.pipeline().matmul(x, x).relu().add(w2).execute());
  FAILS(InvalidArgument, invalid_argument, "is missing", ctx.pipeline().relu().execute());
  FAILS(InvalidArgument, invalid_argument, "another pipeline", ctx.pipeline().begin(x).add(in).compile());
  FAILS(InvalidArgument, invalid_argument, "was given 0", compiled.run({}));
  FAILS(ShapeMismatch, shape_mismatch, "input 0", compiled.run({w1}));
  Compiled moved = std::move(compiled);
  FAILS(InvalidArgument, invalid_argument, "compiled is NULL", compiled.text());  // NOLINT: as above.
  CHECK(same(OK(moved.run({x})), last));
}

int main() {
  Context ctx = OK(Context::open("cpu"));
  tensors(ctx);
  operators(ctx);
  bools(ctx);
  doubles(ctx);
  operations(ctx);
  contexts();
  choices(ctx);
  programs(ctx);
  residence(ctx);
  memory();
  streams(ctx);
  threads(ctx);
  results(ctx);
  pipelines(OK(Context::open("cpu")));
  std::puts("ok");
}
