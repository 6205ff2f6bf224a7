// Agreement of the ranks of a communicator about a value.
#include "core/backend/communicator.h"

#include "core/backend/immediate_stream.h"

namespace trainctl {

bool Communicator::true_on_all(bool value) {
  std::int32_t all = value ? 1 : 0;
  ImmediateStream stream;
  all_reduce({&all, DType::int32, 1}, Reduction::minimum, stream);
  stream.synchronize();
  return all != 0;
}

}  // namespace trainctl
