// Reads the weights in a safetensors file.
#include <vector>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "io/checkpoint/safetensors.h"
#include "io/datasets/arrays/float32.h"
#include "io/weights/weights_file.h"

namespace trainctl {
namespace {

class SafetensorsWeights final : public WeightsFile {
 public:
  explicit SafetensorsWeights(const std::string& path) : file_(path) {
    for (const StoredTensor& tensor : file_.header().tensors) {
      if (!is_fractional(tensor.dtype)) continue;
      tensors_.push_back({tensor.name, tensor.shape});
      stored_.push_back(&tensor);
    }
  }
  WeightsOrigin origin() const override { return WeightsOrigin::safetensors; }

  void read(std::size_t tensor, float* to) const override {
    const StoredTensor& stored = *stored_[tensor];
    if (stored.dtype == DType::float32) return file_.read(stored, to);
    std::vector<char> bytes(static_cast<std::size_t>(stored.bytes()));
    file_.read(stored, bytes.data());
    to_float32(stored.dtype, bytes.data(), stored.shape.count(), to);
  }

 private:
  SafetensorsFile file_;
  std::vector<const StoredTensor*> stored_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_safetensors_weights(const std::string& path) {
  try {
    return std::make_unique<SafetensorsWeights>(path);
  } catch (const OverflowError&) {
    throw Error(ErrorKind::data, SourceLocation{path},
                "not a valid safetensors file: a tensor is larger than any file");
  }
}

}  // namespace trainctl
