// How an op is named in errors.
#include "core/backend/cuda/lower.h"

#include "core/base/format.h"

namespace trainctl::cuda {

std::string LowerContext::label() const {
  const std::string where = to_string(op.place);
  return format("{} '{}'{}", op.def->kind(), op.name, where.empty() ? "" : " (" + where + ")");
}

}  // namespace trainctl::cuda
