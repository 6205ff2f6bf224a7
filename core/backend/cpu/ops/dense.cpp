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

// c = a b (+ bias) with a fused function: the descriptors of the tensors and of the primitive.
struct Product {
  memory::desc a, b, bias, c;
  dnnl::matmul::primitive_desc desc;

  Product(const OneDnn& dnnl, memory::desc left, memory::desc right, memory::desc bias_desc, memory::desc result,
          const dnnl::primitive_attr& attr)
      : a(std::move(left)), bias(std::move(bias_desc)), c(std::move(result)) {
    desc = onednn::matmul(dnnl.engine(), a, right, bias, c, attr);
    b = desc.weights_desc();
  }

  std::vector<Operand> operands(Address x, Address kernel, Address bias_address, Address y, Address scratch) const {
    std::vector<Operand> list{{DNNL_ARG_SRC, a, x}, {DNNL_ARG_WEIGHTS, b, kernel}, {DNNL_ARG_DST, c, y}};
    if (bias.get_size() > 0) list.push_back({DNNL_ARG_BIAS, bias, bias_address});
    append_scratch(desc, scratch, list);
    return list;
  }
  std::int64_t scratch_bytes() const { return static_cast<std::int64_t>(desc.scratchpad_desc().get_size()); }
};

// The layouts for the kernel input of a product: `plain` is the layout of the parameter, `packed` the layout of a copy
// that is made for the product.
constexpr std::string_view plain = "plain";
constexpr std::string_view packed = "packed";

// Chooses between the plain kernel and a packed copy, which the update has to write in every step. Without timing the
// plain kernel is chosen: for kernels of 1024 to 2048 rows the packed copy saves a tenth of the time of a product of
// 128 rows, which is less than writing the copy takes. In bfloat16 the kernel is always a copy, which is then packed.
template <class Make>
Product choose_product(const LowerContext& context, DType dtype, const Make& make) {
  if (dtype != DType::float32) return make(packed);
  const std::string key = context.key();
  if (const auto choice = context.choices.find(key)) return make(*choice);
  const Product direct = make(plain), copied = make(packed);
  bool pack = false;
  if (!(direct.b == copied.b)) {
    if (!context.may_time(key)) {
      context.settle(key, plain);
      return direct;
    }
    constexpr double copy_bytes_per_second = 10e9;
    const double copy = 2 * static_cast<double>(copied.b.get_size()) / copy_bytes_per_second;
    const auto seconds = [&](const Product& product) {
      return measure(context.dnnl, dnnl::matmul(product.desc), product.operands({}, {}, {}, {}, {}));
    };
    pack = seconds(copied) + copy < 0.95 * seconds(direct);
  }
  context.choices.record(key, std::string(pack ? packed : plain));
  return pack ? copied : direct;
}

void describe(const Product& product, Lowering& lowering) {
  lowering.workspace_bytes = product.scratch_bytes();
  lowering.implementation = std::string("matmul:") + product.desc.impl_info_str();
}

class ProductKernel final : public CpuKernel {
 public:
  ProductKernel(const OneDnn& dnnl, const Product& product, const std::vector<Operand>& operands)
      : call_(dnnl, dnnl::matmul(product.desc), operands) {}

 private:
  void compute(const Slot& slot) override { call_.run(slot); }

  PrimitiveCall call_;
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
  const Product product = choose_product(context, dtype, [&](std::string_view layout) {
    return Product(context.dnnl, x, layout == packed ? any : logical, bias, y, attributes(false, def.function));
  });
  Lowering lowering = context.logical();
  lowering.inputs[1] = context.dnnl.layout({product.b, {kernel[1], 1}});
  describe(product, lowering);
  lowering.bind = [&dnnl = context.dnnl, product, has_bias](const Binding& b) -> std::unique_ptr<Kernel> {
    return std::make_unique<ProductKernel>(
        dnnl, product,
        product.operands(b.inputs[0], b.inputs[1], has_bias ? b.inputs[2] : Address{}, b.outputs[0], b.workspace));
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
  const Product product = choose_product(context, dtype, [&](std::string_view layout) {
    return Product(context.dnnl, dy, layout == packed ? any : logical, memory::desc(), dx, attributes(def.accumulate));
  });
  Lowering lowering = context.logical();
  lowering.inputs[1] = context.dnnl.layout({product.b, {1, kernel[1]}});
  describe(product, lowering);
  const TensorType type = context.output(0);
  lowering.bind = [&dnnl = context.dnnl, product, def, type](const Binding& b) -> std::unique_ptr<Kernel> {
    PrimitiveCall call(dnnl, dnnl::matmul(product.desc),
                       product.operands(b.inputs[0], b.inputs[1], {}, b.outputs[0], b.workspace));
    auto body = [call = std::move(call), def, type](const Buffers& buffers) mutable {
      void* gradient = buffers.out<void>(0);
      if (def.accumulate && buffers.in<void>(2) != gradient) {
        std::memcpy(gradient, buffers.in<void>(2), static_cast<std::size_t>(type.bytes()));
      }
      call.run(buffers.slot);
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
  const Product product(context.dnnl, x, row_major({rows, out}, dtype), memory::desc(),
                        row_major({in, out}, DType::float32), attributes(def.accumulate));
  Lowering lowering = context.logical();
  describe(product, lowering);
  // The sums of the bias gradient use the same scratch memory, since they run after the product.
  if (def.bias) lowering.workspace_bytes = std::max(lowering.workspace_bytes, column_sums_workspace(rows, out));
  lowering.bind = [&dnnl = context.dnnl, product, bias = def.bias, accumulate = def.accumulate, dtype, rows,
                   out](const Binding& b) -> std::unique_ptr<Kernel> {
    PrimitiveCall call(dnnl, dnnl::matmul(product.desc),
                       product.operands(b.inputs[0], b.inputs[1], {}, b.outputs[0], b.workspace));
    auto body = [call = std::move(call), bias, accumulate, dtype, rows, out](const Buffers& buffers) mutable {
      call.run(buffers.slot);
      if (!bias) return;
      column_sums(dtype, buffers.in<void>(1), rows, out, accumulate, buffers.out<float>(1), buffers.workspace<void>());
    };
    return std::make_unique<FunctionKernel<decltype(body)>>(b, std::move(body));
  };
  return lowering;
}

}  // namespace trainctl::cpu
