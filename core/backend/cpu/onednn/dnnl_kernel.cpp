// Runs primitives of oneDNN as kernels.
#include "core/backend/cpu/onednn/dnnl_kernel.h"

#include <omp.h>

#include <cstring>
#include <memory>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/random.h"
#include "core/base/thread_clock.h"

namespace trainctl::cpu {
namespace {

std::string text(const onednn::Dims& dims) {
  std::string list;
  for (auto size : dims) list += (list.empty() ? "" : ",") + std::to_string(size);
  return list;
}

DType dtype_of(onednn::memory::data_type type) {
  require(type == onednn::memory::data_type::f32 || type == onednn::memory::data_type::bf16,
          "a layout has a dtype other than float32 and bfloat16");
  return type == onednn::memory::data_type::f32 ? DType::float32 : DType::bfloat16;
}

}  // namespace

onednn::memory::desc Format::logical(DType dtype) const {
  return {onednn::dims(desc), dnnl_type(dtype), logical_strides};
}

Layout OneDnn::layout(const Format& format) {
  const onednn::memory::desc& desc = format.desc;
  const DType dtype = dtype_of(onednn::data_type(desc));
  const auto bytes = static_cast<std::int64_t>(desc.get_size());
  if (desc == format.logical(dtype)) return {dtype, "", bytes};
  const onednn::Blocking b = onednn::blocking(desc);
  require(b.blocked, "a layout of oneDNN is not blocked");
  std::string name =
      trainctl::format("{} strides {} of {}", text(onednn::dims(desc)), text(b.strides), text(format.logical_strides));
  if (b.padded != onednn::dims(desc)) name += " padded " + text(b.padded);
  for (std::size_t i = 0; i < b.inner_blocks.size(); ++i) {
    name += trainctl::format("{}{}{}", i == 0 ? " blocks " : "", b.inner_blocks[i],
                             static_cast<char>('a' + b.inner_indices[i]));
  }
  name += trainctl::format(" {}", trainctl::name_of(dtype));
  formats_.emplace(name, format);
  return {dtype, name, bytes};
}

const Format& OneDnn::find(const std::string& name) const {
  const auto entry = formats_.find(name);
  require(entry != formats_.end(), "this layout of oneDNN is unknown: " + name);
  return entry->second;
}

onednn::memory::data_type dnnl_type(DType dtype) {
  require(dtype == DType::float32 || dtype == DType::bfloat16, "oneDNN kernels do not compute in this dtype");
  return dtype == DType::float32 ? onednn::memory::data_type::f32 : onednn::memory::data_type::bf16;
}

onednn::memory::desc row_major(const Shape& shape, DType dtype) {
  onednn::Dims dims = shape.sizes();
  if (dims.empty()) dims = {1};
  onednn::Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {dims, dnnl_type(dtype), strides};
}

dnnl::primitive_attr attributes(bool sum, ActivationFunction function) {
  using onednn::algorithm;
  dnnl::post_ops ops;
  if (sum) ops.append_sum(1.0f);
  switch (function.kind) {
    case ActivationKind::none:
      break;
    case ActivationKind::relu:
      onednn::append_eltwise(ops, algorithm::eltwise_relu, 0, 0);
      break;
    case ActivationKind::leaky_relu:
      onednn::append_eltwise(ops, algorithm::eltwise_relu, function.slope, 0);
      break;
    case ActivationKind::tanh:
      onednn::append_eltwise(ops, algorithm::eltwise_tanh, 0, 0);
      break;
    case ActivationKind::sigmoid:
      onednn::append_eltwise(ops, algorithm::eltwise_logistic, 0, 0);
      break;
    default:
      require(false, to_string(function) + " cannot be fused");
  }
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (ops.len() > 0) attr.set_post_ops(ops);
  return attr;
}

PrimitiveCall::PrimitiveCall(const OneDnn& dnnl, dnnl::primitive primitive, const std::vector<Operand>& operands)
    : primitive_(std::move(primitive)), stream_(dnnl.stream().get()) {
  for (const Operand& operand : operands) {
    addresses_.push_back(operand.address);
    memories_.push_back(dnnl::memory(operand.desc, dnnl.engine(), nullptr));
    arguments_.push_back({operand.argument, memories_.back().get()});
  }
}

void PrimitiveCall::run(const Slot& slot) {
  if (!bound_once_ || bound_ != slot.base) {
    for (std::size_t i = 0; i < memories_.size(); ++i) memories_[i].set_data_handle(addresses_[i].at(slot));
    bound_ = slot.base;
    bound_once_ = true;
  }
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream_, static_cast<int>(arguments_.size()), arguments_.data());
  require(status == dnnl_success, "oneDNN failed to run a primitive");
}

std::vector<std::byte> random_bytes(std::int64_t bytes, DType dtype) {
  constexpr std::int64_t period = 4096;  // number of distinct values, which repeat
  const RandomKey key{.purpose = Purpose::synthetic};
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i < period && i * size_of(dtype) < bytes; ++i) {
    const float value = 2 * uniform01(key.block(static_cast<std::uint64_t>(i))[0]) - 1;
    const Bf16 rounded = store<Bf16>(value);
    const void* source = dtype == DType::float32 ? static_cast<const void*>(&value) : &rounded;
    const auto left = static_cast<std::size_t>(bytes - i * size_of(dtype));
    std::memcpy(data.data() + i * size_of(dtype), source, std::min(left, static_cast<std::size_t>(size_of(dtype))));
  }
  const std::int64_t filled = period * size_of(dtype);
  for (std::int64_t offset = filled; offset < bytes; offset += filled) {
    std::memcpy(data.data() + offset, data.data(), static_cast<std::size_t>(std::min(filled, bytes - offset)));
  }
  return data;
}

double measure(const OneDnn& dnnl, const dnnl::primitive& primitive, const std::vector<Operand>& operands,
               double best_so_far) {
  constexpr std::size_t alignment = 64;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<Operand> bound = operands;
  for (Operand& operand : bound) {
    const bool half = onednn::data_type(operand.desc) == onednn::memory::data_type::bf16;
    const auto bytes = static_cast<std::int64_t>(operand.desc.get_size() + alignment);
    buffers.push_back(random_bytes(bytes, half ? DType::bfloat16 : DType::float32));
    void* start = buffers.back().data();
    std::size_t space = buffers.back().size();
    operand.address = {static_cast<std::byte*>(std::align(alignment, operand.desc.get_size(), start, space)), 0};
  }
  PrimitiveCall call(dnnl, primitive, bound);
  const Slot slot;
  return best_seconds([&] { call.run(slot); }, best_so_far);
}

double best_seconds(const std::function<void()>& call, double best_so_far) {
  const bool alone = omp_get_max_threads() == 1;  // other processes do not change the choice of its kernels
  const auto now = [alone] { return alone ? thread_seconds() : seconds_now(); };
  const auto seconds = [&] {
    const double start = now();
    call();
    return now() - start;
  };
  double best = seconds(), total = best;
  for (int repetition = 0; repetition < 4 && total < 0.05 && best < 2 * best_so_far; ++repetition) {
    const double again = seconds();
    best = std::min(best, again);
    total += again;
  }
  return best;
}

}  // namespace trainctl::cpu
