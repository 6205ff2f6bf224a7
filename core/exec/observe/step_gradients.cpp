// Reads gradients from the shards of buckets that a rank updates.
#include "core/exec/observe/step_gradients.h"

#include <cstring>

#include "core/exec/named_tensors.h"

namespace trainctl {

std::vector<NamedTensor> read_gradients(Engine& engine, int program, std::vector<float>& memory) {
  const Program& described = engine.program(program).program;
  std::vector<std::byte> bytes;
  memory.clear();
  const auto read = [&](TensorId tensor) {
    engine.read_tensor(program, tensor, bytes);
    const std::size_t before = memory.size();
    memory.resize(before + bytes.size() / sizeof(float));
    std::memcpy(memory.data() + before, bytes.data(), bytes.size());
  };
  for (const FlatBucket& bucket : described.flat.buckets) read(bucket.gradient);
  return name_gradients(described, memory.data());
}

}  // namespace trainctl
