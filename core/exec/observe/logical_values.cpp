// The values of a tensor in logical layout, by a reorder that is compiled for it.
#include "core/exec/observe/logical_values.h"

#include <cstring>

#include "core/backend/choices.h"
#include "core/backend/single_op.h"
#include "core/base/log.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {
namespace {

bool is_real(DType dtype) { return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16; }

std::vector<float> reordered(Backend& backend, const TensorType& type, const Layout& layout,
                             const std::vector<std::byte>& bytes) {
  const std::int64_t count = type.shape.count(), size = count * size_of(DType::float32);
  SingleOp reorder(std::make_shared<Reorder>(Layout{DType::float32, "", size}), {type}, "logical values", {});
  reorder.present[0] = layout;
  KernelChoices choices;
  choices.stop_timing();
  const Lowering lowering = backend.lower(reorder.op, reorder.program, reorder.present, choices);
  const Memory from = backend.allocate(static_cast<std::int64_t>(bytes.size())), to = backend.allocate(size);
  const Memory workspace = lowering.workspace_bytes > 0 ? backend.allocate(lowering.workspace_bytes) : Memory{};
  const auto kernel = lowering.bind({{{from.get(), 0}}, {{to.get(), 0}}, {workspace.get(), 0}});
  const auto stream = backend.compute_stream();
  std::vector<float> values(static_cast<std::size_t>(count));
  backend.copy(from.get(), bytes.data(), static_cast<std::int64_t>(bytes.size()), *stream);
  kernel->run(*stream, Slot{});
  backend.copy(values.data(), to.get(), size, *stream);
  stream->synchronize();
  return values;
}

}  // namespace

std::optional<std::vector<float>> logical_values(Backend& backend, const TensorType& type, const Layout& layout,
                                                 const std::vector<std::byte>& bytes) {
  if (!is_real(type.dtype) || !is_real(layout.dtype)) return {};
  if (layout.format.empty() && layout.dtype == DType::float32) {
    std::vector<float> values(static_cast<std::size_t>(type.shape.count()));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
  try {
    return reordered(backend, type, layout, bytes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::resource) throw;
    log::debug(error.what());
    return {};
  }
}

}  // namespace trainctl
