// Weights in a safetensors file.
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "io/checkpoint/safetensors.h"
#include "io/weights/weights_file.h"

namespace trainctl {
namespace {

bool is_fractional(DType dtype) { return dtype != DType::int32 && dtype != DType::int64 && dtype != DType::uint8; }

float as_float(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The value of a float16.
float from_float16(std::uint16_t bits) {
  const std::uint32_t rest = bits & 0x7FFF;
  float magnitude = static_cast<float>(rest) * 0x1p-24f;                        // below 2^-14
  if (rest >= 0x400) magnitude = as_float((rest << 13) + (112u << 23));         // exponents are 112 apart
  if (rest >= 0x7C00) magnitude = as_float(0x7F800000 | (rest & 0x3FF) << 13);  // Inf, NaN
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

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
    const std::int64_t count = stored.shape.count();
    const auto convert = [&]<class Bits>(Bits bits, const auto& value) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(&bits, bytes.data() + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
        to[i] = value(bits);
      }
    };
    switch (stored.dtype) {
      case DType::float64:
        return convert(double(), [](double value) { return static_cast<float>(value); });
      case DType::bfloat16:
        return convert(std::uint16_t(), [](std::uint16_t bits) { return as_float(std::uint32_t{bits} << 16); });
      default:
        return convert(std::uint16_t(), from_float16);
    }
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
    throw Error(ErrorKind::data, Place{path}, "not a valid safetensors file: a tensor is larger than any file");
  }
}

}  // namespace trainctl
