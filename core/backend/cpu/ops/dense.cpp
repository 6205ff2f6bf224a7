// Dense layers, forward and backward, on oneDNN's matrix multiplication.
#include <cstring>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/simd/column_sums.h"
#include "core/backend/cpu/simd/elementwise.h"
#include "core/graph/ops/dense.h"

namespace trainctl::cpu {
namespace {

using onednn::memory;

// A tensor as a matrix: its columns are the last dimension, its rows are all dimensions before it.
memory::desc matrix(const TensorType& type) { return row_major({type.shape.rows(), type.shape.back()}, type.dtype); }

// How a product is computed: at once, or as two products that compute half of the rows or of the columns of c each.
enum class Halves { none, rows, columns };

// Half of a plain matrix along a dimension, and the bytes from its first half to its second.
memory::desc half(const memory::desc& matrix, std::size_t dimension) {
  onednn::Dims sizes = onednn::dims(matrix);
  sizes[dimension] /= 2;
  return {sizes, onednn::data_type(matrix), onednn::blocking(matrix).strides};
}
std::int64_t half_bytes(const memory::desc& half, std::size_t dimension) {
  const bool is_half_precision = onednn::data_type(half) == memory::data_type::bf16;
  return onednn::dims(half)[dimension] * onednn::blocking(half).strides[dimension] * (is_half_precision ? 2 : 4);
}

// c = a b (+ bias) with a fused function: the descriptors of the primitive and of its tensors.
class Product {
 public:
  Product(const OneDnn& dnnl, memory::desc left, memory::desc right, memory::desc bias, memory::desc result,
          const dnnl::primitive_attr& attr, Halves halves = Halves::none)
      : halves_(halves), a_(std::move(left)), b_(std::move(right)), bias_(std::move(bias)), c_(std::move(result)) {
    whole_b_ = b_;
    if (halves == Halves::rows) {
      a_ = half(a_, 0);
      c_ = half(c_, 0);
    } else if (halves == Halves::columns) {
      b_ = half(b_, 1);
      c_ = half(c_, 1);
      if (bias_.get_size() > 0) bias_ = half(bias_, 1);
    }
    desc_ = onednn::matmul(dnnl.engine(), a_, b_, bias_, c_, attr);
    if (halves == Halves::none) whole_b_ = b_ = desc_.weights_desc();
  }

  // The layout of the whole of b.
  const memory::desc& b() const { return whole_b_; }
  void describe(Lowering& lowering) const {
    lowering.workspace_bytes = static_cast<std::int64_t>(desc_.scratchpad_desc().get_size());
    lowering.implementation = std::string("matmul:") + desc_.impl_info_str();
  }
  double seconds(const OneDnn& dnnl) const {
    const std::size_t parts = halves_ == Halves::none ? 1 : 2;
    return static_cast<double>(parts) * measure(dnnl, dnnl::matmul(desc_), operands({}, {}, {}, {}, {}, 0));
  }
  // The calls that compute the product.
  std::vector<PrimitiveCall> calls(const OneDnn& dnnl, Address a, Address b, Address bias, Address c,
                                   Address scratch) const {
    std::vector<PrimitiveCall> list;
    for (const int part : {0, 1}) {
      if (part == 0 || halves_ != Halves::none) {
        list.emplace_back(dnnl, dnnl::matmul(desc_), operands(a, b, bias, c, scratch, part));
      }
    }
    return list;
  }

 private:
  std::vector<Operand> operands(Address a, Address b, Address bias, Address c, Address scratch, int part) const {
    if (part == 1 && halves_ == Halves::rows) {
      a = a + half_bytes(a_, 0);
      c = c + half_bytes(c_, 0);
    } else if (part == 1) {
      b = b + half_bytes(b_, 1);
      c = c + half_bytes(c_, 1);
      if (bias_.get_size() > 0) bias = bias + half_bytes(bias_, 1);
    }
    std::vector<Operand> list{{DNNL_ARG_SRC, a_, a}, {DNNL_ARG_WEIGHTS, b_, b}, {DNNL_ARG_DST, c_, c}};
    if (bias_.get_size() > 0) list.push_back({DNNL_ARG_BIAS, bias_, bias});
    append_scratch(desc_, scratch, list);
    return list;
  }

  Halves halves_;
  memory::desc a_, b_, bias_, c_, whole_b_;  // of a part, apart from whole_b_
  dnnl::matmul::primitive_desc desc_;
};

// The names of the choices: a plain kernel, the same in halves of the product, or a packed copy of the kernel that is
// made for the product.
constexpr std::string_view plain = "plain";
constexpr std::string_view in_halves = "halves";
constexpr std::string_view packed = "packed";

// The halves in which a product of float32 may be faster. oneDNN 2.6 takes up to 1.4 times as long for a product at
// once, if its result has many columns: it copies parts of the operands that are larger than the cache.
Halves halves_of(std::int64_t rows, std::int64_t columns, bool split_rows) {
  constexpr std::int64_t least = 256, multiple = 32;
  const auto fits = [](std::int64_t count) { return count >= least && count % multiple == 0; };
  if (split_rows && rows >= columns) return fits(rows) ? Halves::rows : Halves::none;
  return fits(columns) ? Halves::columns : Halves::none;
}

// The choices for a plain kernel, of which the first one is taken without timing: halves if this was faster for all
// shapes that were measured. It depends on the shape alone, so that bits do not depend on the number of threads.
std::vector<std::string_view> candidates_of(std::int64_t rows, std::int64_t columns, Halves halves) {
  if (halves == Halves::none) return {plain};
  constexpr std::int64_t least = 1536;
  const bool by_rule = (halves == Halves::rows ? rows : columns) >= least;
  return by_rule ? std::vector{in_halves, plain} : std::vector{plain, in_halves};
}

// Chooses between the whole product, its halves and a packed copy, which the update has to write in every step. Without
// timing the kernel stays plain: for kernels of 1024 to 2048 rows the packed copy saves a tenth of the time of a
// product of 128 rows, which is less than writing the copy takes. `candidates` has the choices that exist, the one that
// is taken without timing first; make() returns the product of a choice.
template <class Make>
Product choose_product(const LowerContext& context, const std::vector<std::string_view>& candidates, const Make& make) {
  const std::string key = context.key();
  if (const auto choice = context.choices.find(key)) return make(*choice);
  std::vector<Product> products;
  for (const std::string_view candidate : candidates) products.push_back(make(candidate));
  std::size_t best = 0;
  if (candidates.size() > 1) {
    if (!context.may_time(key)) {
      context.settle(key, candidates.front());
      return products.front();
    }
    double fastest = 1e30;
    for (std::size_t i = 0; i < products.size(); ++i) {
      constexpr double copy_bytes_per_second = 10e9, clear_gain = 0.95;
      const double copy = 2 * static_cast<double>(products[i].b().get_size()) / copy_bytes_per_second;
      const double seconds = products[i].seconds(context.dnnl) + (candidates[i] == packed ? copy : 0);
      if (seconds >= (candidates[i] == packed ? clear_gain * fastest : fastest)) continue;
      fastest = seconds;
      best = i;
    }
  }
  context.choices.record(key, std::string(candidates[best]));
  return products[best];
}

// Chooses the product of images by a kernel. In bfloat16 the kernel is always a copy, which is then packed.
template <class Make>
Product choose_kernel_product(const LowerContext& context, DType dtype, std::int64_t rows, std::int64_t columns,
                              const Make& make) {
  if (dtype != DType::float32) return make(packed);
  std::vector<std::string_view> candidates = candidates_of(rows, columns, halves_of(rows, columns, false));
  if (!(make(plain).b() == make(packed).b())) candidates.push_back(packed);
  return choose_product(context, candidates, make);
}

class ProductKernel final : public CpuKernel {
 public:
  explicit ProductKernel(std::vector<PrimitiveCall> calls) : calls_(std::move(calls)) {}

 private:
  void compute(const Slot& slot) override {
    for (PrimitiveCall& call : calls_) call.run(slot);
  }

  std::vector<PrimitiveCall> calls_;
};

}  // namespace

Lowering lower_dense(const LowerContext& context) {
  const auto& def = context.op.as<Dense>();
  const DType dtype = context.input(0).dtype;
  const bool has_bias = context.op.inputs.size() > 2;
  const Shape kernel = kernel_of_inputs(context.input(1).shape, context.input(0).shape.back());
  const memory::desc x = matrix(context.input(0)), y = matrix(context.output(0));
  const memory::desc bias = has_bias ? row_major({1, kernel[1]}, DType::float32) : memory::desc();
  const memory::desc logical = row_major(kernel, dtype);
  const memory::desc any(kernel.sizes(), dnnl_type(dtype), memory::format_tag::any);
  const Product product =
      choose_kernel_product(context, dtype, context.input(0).shape.rows(), kernel[1], [&](std::string_view choice) {
        return Product(context.dnnl, x, choice == packed ? any : logical, bias, y, attributes(false, def.function),
                       choice == in_halves ? Halves::columns : Halves::none);
      });
  Lowering lowering = context.logical();
  lowering.inputs[1] = context.dnnl.layout({product.b(), {kernel[1], 1}});
  product.describe(lowering);
  lowering.bind = [&dnnl = context.dnnl, product, has_bias](const Binding& b) -> std::unique_ptr<Kernel> {
    return std::make_unique<ProductKernel>(
        product.calls(dnnl, b.inputs[0], b.inputs[1], has_bias ? b.inputs[2] : Address{}, b.outputs[0], b.workspace));
  };
  return lowering;
}

Lowering lower_dense_grad_input(const LowerContext& context) {
  const auto& def = context.op.as<DenseGradInput>();
  const DType dtype = context.input(0).dtype;
  const Shape kernel = kernel_of_outputs(context.input(1).shape, context.input(0).shape.back());
  const memory::desc dy = matrix(context.input(0)), dx = matrix(context.output(0));
  const onednn::Dims transposed{kernel[1], kernel[0]};
  const memory::desc logical(transposed, dnnl_type(dtype), onednn::Dims{1, kernel[1]});
  const memory::desc any(transposed, dnnl_type(dtype), memory::format_tag::any);
  const Product product =
      choose_kernel_product(context, dtype, context.input(0).shape.rows(), kernel[0], [&](std::string_view choice) {
        return Product(context.dnnl, dy, choice == packed ? any : logical, memory::desc(), dx,
                       attributes(def.accumulate), choice == in_halves ? Halves::columns : Halves::none);
      });
  Lowering lowering = context.logical();
  lowering.inputs[1] = context.dnnl.layout({product.b(), {1, kernel[1]}});
  product.describe(lowering);
  const TensorType type = context.output(0);
  lowering.bind = [&dnnl = context.dnnl, product, def, type](const Binding& b) -> std::unique_ptr<Kernel> {
    auto calls = product.calls(dnnl, b.inputs[0], b.inputs[1], {}, b.outputs[0], b.workspace);
    auto body = [calls = std::move(calls), def, type](const Buffers& buffers) mutable {
      void* gradient = buffers.out<void>(0);
      if (def.accumulate && buffers.in<void>(2) != gradient) {
        std::memcpy(gradient, buffers.in<void>(2), static_cast<std::size_t>(type.bytes()));
      }
      for (PrimitiveCall& call : calls) call.run(buffers.slot);
      if (def.function.kind == ActivationKind::none) return;
      activation_gradient(def.function, type.dtype, gradient, buffers.in<void>(2), gradient, type.shape.count());
    };
    return std::make_unique<FunctionKernel<decltype(body)>>(b, std::move(body));
  };
  return lowering;
}

Lowering lower_dense_grad_weights(const LowerContext& context) {
  const auto& def = context.op.as<DenseGradWeights>();
  const DType dtype = context.input(0).dtype;
  const std::int64_t rows = context.input(0).shape.rows(), in = context.input(0).shape.back();
  const std::int64_t out = context.input(1).shape.back();
  const memory::desc x({in, rows}, dnnl_type(dtype), onednn::Dims{1, in});
  const Halves halves = dtype == DType::float32 ? halves_of(in, out, true) : Halves::none;
  const auto make = [&](std::string_view choice) {
    return Product(context.dnnl, x, row_major({rows, out}, dtype), memory::desc(), row_major({in, out}, DType::float32),
                   attributes(def.accumulate), choice == in_halves ? halves : Halves::none);
  };
  const Product product = choose_product(context, candidates_of(in, out, halves), make);
  Lowering lowering = context.logical();
  product.describe(lowering);
  // The sums of the bias gradient use the same scratch memory, since they run after the product.
  if (def.bias) lowering.workspace_bytes = std::max(lowering.workspace_bytes, column_sums_workspace(rows, out));
  lowering.bind = [&dnnl = context.dnnl, product, bias = def.bias, accumulate = def.accumulate, dtype, rows,
                   out](const Binding& b) -> std::unique_ptr<Kernel> {
    auto calls = product.calls(dnnl, b.inputs[0], b.inputs[1], {}, b.outputs[0], b.workspace);
    auto body = [calls = std::move(calls), bias, accumulate, dtype, rows, out](const Buffers& buffers) mutable {
      for (PrimitiveCall& call : calls) call.run(buffers.slot);
      if (!bias) return;
      column_sums(dtype, buffers.in<void>(1), rows, out, accumulate, buffers.out<float>(1), buffers.workspace<void>());
    };
    return std::make_unique<FunctionKernel<decltype(body)>>(b, std::move(body));
  };
  return lowering;
}

}  // namespace trainctl::cpu
