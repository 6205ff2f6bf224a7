// Functions that lowerings share: the op's label in errors, the lowering of an op by its kind, and the copy of an input
// to which an op adds.
#include "core/backend/cuda/lower.h"

#include "core/backend/cuda/cudnn/padded_images.h"
#include "core/base/format.h"

namespace trainctl::cuda {

std::string LowerContext::label() const {
  const std::string location = to_string(op.location);
  return format("{} '{}'{}", op.def->kind(), op.name, location.empty() ? "" : " (" + location + ")");
}

Lowering lower_op(const LowerContext& context) {
  const LowerFunction function = find_lowering(context.op.def->kind());
  if (function == nullptr) {
    throw Error(ErrorKind::config, context.op.location,
                format("{} '{}': CUDA has no kernel for it", context.op.def->kind(), context.op.name));
  }
  const bool padded = !context.inputs.empty() && is_padded(context.inputs[0]);
  return padded ? lower_on_padded(context) : function(context);
}

void copy_unless_in_place(const Buffers& buffers, std::size_t input, std::int64_t bytes) {
  const void* from = buffers.in<void>(input);
  void* to = buffers.out<void>(0);
  if (from == to) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, buffers.stream),
        "cudaMemcpyAsync");
}

}  // namespace trainctl::cuda
