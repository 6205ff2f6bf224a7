// What lowerings share: how an op is named in errors, and what an op adds to.
#include "core/backend/cuda/lower.h"

#include "core/base/format.h"

namespace trainctl::cuda {

std::string LowerContext::label() const {
  const std::string where = to_string(op.place);
  return format("{} '{}'{}", op.def->kind(), op.name, where.empty() ? "" : " (" + where + ")");
}

void copy_unless_in_place(const Places& places, std::size_t input, std::int64_t bytes) {
  const void* from = places.in<void>(input);
  void* to = places.out<void>(0);
  if (from == to) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, places.stream),
        "cudaMemcpyAsync");
}

}  // namespace trainctl::cuda
