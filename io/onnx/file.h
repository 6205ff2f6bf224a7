// Writes ONNX models to files, as messages of onnx.proto (https://github.com/onnx/onnx); the file includes the weights.
#pragma once

#include <cstdint>
#include <string>

#include "io/onnx/model.h"

namespace trainctl {

// The version of ONNX's operators that is used; onnxruntime supports it since version 1.12.
inline constexpr std::int64_t onnx_opset = 18;

// Writes the model, replaces an existing file of that name, and returns the number of bytes. Throws Error{config} if
// the file would be larger than the limit of protocol buffers, 2^31 - 1 bytes, and Error{resource} as write_file()
// does.
std::int64_t write_onnx(const std::string& path, const OnnxModel& model);

}  // namespace trainctl
