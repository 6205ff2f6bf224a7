// Computes bfloat16 ops in float32 on processors where oneDNN does not support bfloat16.
#include "core/backend/cpu/onednn/widening.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl::cpu {
namespace {

constexpr std::array<std::string_view, 11> kinds{"dense",
                                                 "dense_grad_input",
                                                 "dense_grad_weights",
                                                 "matmul",
                                                 "conv2d",
                                                 "conv2d_grad_input",
                                                 "conv2d_grad_weights",
                                                 "conv3d",
                                                 "conv3d_grad_input",
                                                 "conv3d_grad_weights",
                                                 "linear_cross_entropy"};

bool creates_bfloat16_product() {
  const OneDnn dnnl;
  const onednn::memory::desc matrix = row_major({16, 16}, DType::bfloat16);
  try {
    onednn::matmul(dnnl.engine(), matrix, matrix, {}, matrix, attributes());
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace

bool has_bfloat16() {
  static const bool has = creates_bfloat16_product();
  return has;
}

bool needs_widening(const OpContext& context) {
  return std::find(kinds.begin(), kinds.end(), context.op.def->kind()) != kinds.end() &&
         context.input(0).dtype == DType::bfloat16 && !has_bfloat16();
}

std::vector<SubOp> widened_ops(const OpContext& context) {
  const Op& op = context.op;
  const auto widen = std::make_shared<Cast>(DType::float32), round = std::make_shared<Cast>(DType::bfloat16);
  // The kernel input is not cast: core provides it in the layout that the float32 op asks for, as a compute copy if
  // needed.
  const bool reads_kernel = !op.def->kind().ends_with("grad_weights") && op.def->kind() != "matmul";
  int next = static_cast<int>(op.inputs.size() + op.outputs.size());
  std::vector<SubOp> sub_ops, rounding;
  SubOp wide{op.def, {}, {}};
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const auto input = static_cast<int>(i);
    const bool narrow = context.input(i).dtype == DType::bfloat16 && !(i == 1 && reads_kernel);
    if (narrow) sub_ops.push_back({widen, {input}, {next}});
    wide.inputs.push_back(narrow ? next++ : input);
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const auto output = static_cast<int>(op.inputs.size() + i);
    const bool narrow = context.output(i).dtype == DType::bfloat16;
    if (narrow) rounding.push_back({round, {next}, {output}});
    wide.outputs.push_back(narrow ? next++ : output);
  }
  sub_ops.push_back(std::move(wide));
  sub_ops.insert(sub_ops.end(), rounding.begin(), rounding.end());
  return sub_ops;
}

}  // namespace trainctl::cpu
