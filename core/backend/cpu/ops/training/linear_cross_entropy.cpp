// Computes the last product and its cross-entropy in chunks of rows: oneDNN's products, and the loss's rule in between.
#include "core/graph/ops/losses/linear_cross_entropy.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/ops/training/loss_rows.h"
#include "core/backend/cpu/simd/column_sums.h"

namespace trainctl::cpu {
namespace {

using onednn::memory;

// The sizes of the op; x has the dtype in which it computes.
struct HeadShape {
  std::int64_t rows, in, classes;
  DType dtype;
  bool transposed, bias;
};

// A product is computed for some rows and some classes: logits = x kernel + bias, dx = dlogits kernel^T, or dkernel =
// x^T dlogits, where dlogits has the memory of the logits. With `sum` it is added to the result.
enum class Product { logits, dx, dkernel };
struct PartialProduct {
  Product product;
  std::int64_t first_row, rows, first_class, classes;
  bool sum;
};

// oneDNN's products of blocks of classes are faster than those of all classes, because they do not copy the kernel; but
// not the product with the rows of a transposed kernel. Sums of blocks would be rounded in bfloat16.
constexpr std::int64_t block_classes = 8192;

// Appends a product for all classes of a chunk. `sum`: add to what is there before the first block.
void append_blocks(Product product, std::int64_t first_row, std::int64_t rows, const HeadShape& s, bool sum,
                   std::vector<PartialProduct>& parts) {
  const bool whole = product == Product::dx && (s.dtype != DType::float32 || !s.transposed);
  const std::int64_t each = whole ? s.classes : block_classes;
  for (std::int64_t k = 0; k < s.classes; k += each) {
    parts.push_back({product, first_row, rows, k, std::min(each, s.classes - k), product == Product::dx ? k > 0 : sum});
  }
}

memory::desc strided(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column, DType dtype) {
  return {{rows, columns}, dnnl_type(dtype), onednn::Dims{row, column}};
}

// c = a b (+ bias) for one part, and the operands' addresses.
struct MatrixProduct {
  memory::desc a, b, bias, c;
  dnnl::matmul::primitive_desc desc;

  MatrixProduct(const OneDnn& dnnl, const HeadShape& s, const PartialProduct& part) {
    const std::int64_t r = part.rows, k = part.classes, t = s.transposed;
    // The steps from an input to the next one and from a class to the next one, in the kernel.
    const std::int64_t of_in = t ? 1 : s.classes, of_class = t ? s.in : 1;
    const memory::desc logits = strided(r, k, s.classes, 1, s.dtype), x = strided(r, s.in, s.in, 1, s.dtype);
    switch (part.product) {
      case Product::logits:
        a = x, b = strided(s.in, k, of_in, of_class, s.dtype), c = logits;
        if (s.bias) bias = row_major({1, k}, DType::float32);
        break;
      case Product::dx:
        a = logits, b = strided(k, s.in, of_class, of_in, s.dtype), c = x;
        break;
      case Product::dkernel:
        a = t ? strided(k, r, 1, s.classes, s.dtype) : strided(s.in, r, 1, s.in, s.dtype);
        b = t ? x : logits;
        c = t ? strided(k, s.in, s.in, 1, DType::float32) : strided(s.in, k, s.classes, 1, DType::float32);
        break;
    }
    desc = onednn::matmul(dnnl.engine(), a, b, bias, c, attributes(part.sum));
  }

  std::int64_t scratch_bytes() const { return static_cast<std::int64_t>(desc.scratchpad_desc().get_size()); }

  PrimitiveCall call(const OneDnn& dnnl, const HeadShape& s, const PartialProduct& part, const Binding& binding,
                     Address first_logits) const {
    const std::int64_t bytes = size_of(s.dtype), of_class = s.transposed ? s.in : 1;
    const Address x = binding.inputs[0] + part.first_row * s.in * bytes;
    const Address kernel = binding.inputs[1] + part.first_class * of_class * bytes;
    const Address logits = first_logits + part.first_class * bytes;
    std::vector<Operand> list;
    if (part.product == Product::logits) {
      list = {{DNNL_ARG_SRC, a, x}, {DNNL_ARG_WEIGHTS, b, kernel}, {DNNL_ARG_DST, c, logits}};
      if (s.bias) list.push_back({DNNL_ARG_BIAS, bias, binding.inputs[2] + part.first_class * size_of(DType::float32)});
    } else if (part.product == Product::dx) {
      const Address dx = binding.outputs[1] + part.first_row * s.in * bytes;
      list = {{DNNL_ARG_SRC, a, logits}, {DNNL_ARG_WEIGHTS, b, kernel}, {DNNL_ARG_DST, c, dx}};
    } else {
      const Address dkernel = binding.outputs[2] + part.first_class * of_class * size_of(DType::float32);
      list = {{DNNL_ARG_SRC, a, s.transposed ? logits : x},
              {DNNL_ARG_WEIGHTS, b, s.transposed ? x : logits},
              {DNNL_ARG_DST, c, dkernel}};
    }
    append_scratch(desc, binding.workspace, list);
    return {dnnl, dnnl::matmul(desc), list};
  }
};

// All products of an op. Parts of equal sizes share a primitive.
class HeadProducts {
 public:
  struct Chunk {
    std::int64_t first, rows;
    std::vector<PartialProduct> logits, gradients;
  };

  HeadProducts(const OneDnn& dnnl, const HeadShape& shape, bool training, bool accumulate) : shape_(shape) {
    const std::int64_t each = chunk_rows(shape.rows, shape.classes, shape.dtype);
    for (std::int64_t first = 0; first < shape.rows; first += each) {
      Chunk chunk{first, std::min(each, shape.rows - first), {}, {}};
      append_blocks(Product::logits, first, chunk.rows, shape, false, chunk.logits);
      if (training) {
        append_blocks(Product::dx, first, chunk.rows, shape, false, chunk.gradients);
        append_blocks(Product::dkernel, first, chunk.rows, shape, accumulate || first > 0, chunk.gradients);
      }
      for (const auto* parts : {&chunk.logits, &chunk.gradients}) {
        for (const PartialProduct& part : *parts) {
          const auto [made, is_new] = products_.try_emplace(key(part), dnnl, shape, part);
          if (is_new) scratch_bytes_ = std::max(scratch_bytes_, made->second.scratch_bytes());
        }
      }
      chunks_.push_back(std::move(chunk));
    }
  }

  const std::vector<Chunk>& chunks() const { return chunks_; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  std::string implementation() const { return products_.begin()->second.desc.impl_info_str(); }
  std::vector<PrimitiveCall> calls(const OneDnn& dnnl, const std::vector<PartialProduct>& parts, const Binding& binding,
                                   Address logits) const {
    std::vector<PrimitiveCall> calls;
    for (const PartialProduct& part : parts) {
      calls.push_back(products_.at(key(part)).call(dnnl, shape_, part, binding, logits));
    }
    return calls;
  }

 private:
  using Key = std::tuple<Product, std::int64_t, std::int64_t, bool>;
  static Key key(const PartialProduct& part) { return {part.product, part.rows, part.classes, part.sum}; }

  HeadShape shape_;
  std::vector<Chunk> chunks_;
  std::map<Key, MatrixProduct> products_;
  std::int64_t scratch_bytes_ = 0;
};

// Writes the class sums of the rows of a chunk and, in training, their gradient in place of the logits.
template <class T>
void chunk_losses(const LinearCrossEntropy& def, std::int64_t first, std::int64_t rows, std::int64_t classes,
                  std::int64_t rows_each, T* logits, const Buffers& buffers) {
  const auto* targets = buffers.in<std::int32_t>(def.targets());
  const float* weights = def.training ? buffers.in<float>(def.weights()) : nullptr;
  float* const sums = buffers.out<float>(0);
  const ColumnRange range{0, classes};
  parallel_ranges(rows, 1, [=, &def](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t number = first + r;
      const LossRow<T> row{logits + r * classes, classes, weights != nullptr ? logits + r * classes : nullptr};
      const float weight = weights != nullptr ? weights[number / rows_each] : 1.0f;
      if (weight == 0) {  // skipped rows may hold any values, also NaN
        std::fill_n(row.dx, classes, T{});
        continue;
      }
      float* const own = sums + number * class_sums;
      write_class_sums(def.rule, row, targets, number, range, own);
      if (weights == nullptr) continue;
      const Sums<3> found{{own[class_exponentials], own[class_targets], own[class_products]}};
      const float top = own[class_largest], factor = weight * def.scale;
      const float loss = with_target(def.rule, targets, number, range, [=, &def](const auto& target) TRAINCTL_INLINE {
        return def.rule.of_sums(row, target, found, top, factor);
      });
      if (std::isnan(loss)) std::fill_n(row.dx, classes, store<T>(loss));
    }
  });
}

struct ChunkCalls {
  std::int64_t first, rows;
  std::vector<PrimitiveCall> logits, gradients;
};

template <class T>
class HeadKernel final : public CpuKernel {
 public:
  // The logits of a chunk follow `scratch_bytes` of scratch memory in the workspace.
  HeadKernel(const OneDnn& dnnl, const LinearCrossEntropy& def, const HeadShape& shape, std::int64_t rows_each,
             const HeadProducts& products, std::int64_t scratch_bytes, const Binding& binding)
      : def_(def), shape_(shape), rows_each_(rows_each), scratch_bytes_(scratch_bytes), binding_(binding) {
    const Address logits = binding.workspace + scratch_bytes;
    for (const HeadProducts::Chunk& chunk : products.chunks()) {
      chunks_.push_back({chunk.first, chunk.rows, products.calls(dnnl, chunk.logits, binding, logits),
                         products.calls(dnnl, chunk.gradients, binding, logits)});
    }
  }

 private:
  void compute(const Slot& slot) override {
    const Buffers buffers{binding_, slot};
    T* const logits = buffers.workspace<T>(scratch_bytes_);
    for (ChunkCalls& chunk : chunks_) {
      for (PrimitiveCall& call : chunk.logits) call.run(slot);
      chunk_losses(def_, chunk.first, chunk.rows, shape_.classes, rows_each_, logits, buffers);
      for (PrimitiveCall& call : chunk.gradients) call.run(slot);
      if (!def_.training || !def_.has_bias) continue;
      column_sums(shape_.dtype, logits, chunk.rows, shape_.classes, def_.accumulate || chunk.first > 0,
                  buffers.out<float>(3), buffers.workspace<void>());
    }
  }

  LinearCrossEntropy def_;
  HeadShape shape_;
  std::int64_t rows_each_, scratch_bytes_;
  Binding binding_;
  std::vector<ChunkCalls> chunks_;
};

template <class T>
Lowering lower_head(const LowerContext& context, const LinearCrossEntropy& def) {
  const Shape &x = context.input(0).shape, &kernel = context.input(1).shape;
  const HeadShape shape{x.rows(),       x.back(),    kernel[def.transposed ? 0 : 1], context.input(0).dtype,
                        def.transposed, def.has_bias};
  const std::int64_t rows_each = def.training ? shape.rows / context.input(def.weights()).shape.count() : 1;
  const HeadProducts products(context.dnnl, shape, def.training, def.accumulate);
  const std::int64_t rows = products.chunks().front().rows;
  const std::int64_t sums = def.training && def.has_bias ? column_sums_workspace(rows, shape.classes) : 0;
  const std::int64_t scratch = workspace_section(std::max(products.scratch_bytes(), sums));
  Lowering lowering = context.logical();
  lowering.inputs[1] = {shape.dtype, "", kernel.count() * size_of(shape.dtype)};
  lowering.workspace_bytes = scratch + rows * shape.classes * size_of(shape.dtype);
  lowering.implementation = "matmul:" + products.implementation();
  lowering.bind = [=, &dnnl = context.dnnl](const Binding& binding) -> std::unique_ptr<Kernel> {
    return std::make_unique<HeadKernel<T>>(dnnl, def, shape, rows_each, products, scratch, binding);
  };
  return lowering;
}

}  // namespace

Lowering lower_linear_cross_entropy(const LowerContext& context) {
  const auto& def = context.op.as<LinearCrossEntropy>();
  return with_type(context.input(0).dtype, [&](auto type) { return lower_head<decltype(type)>(context, def); });
}

}  // namespace trainctl::cpu
