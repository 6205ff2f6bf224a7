// Files of ONNX models: messages of onnx.proto (https://github.com/onnx/onnx), which hold the weights, too.
#pragma once

#include <cstdint>
#include <string>

#include "io/onnx/model.h"

namespace trainctl {

// The version of ONNX's operators that nodes are of; onnxruntime has had it since 1.12.
inline constexpr std::int64_t onnx_opset = 18;

// Writes the model, replacing a file of that name, and returns the number of bytes. Throws Error{config} where the file
// would hold more bytes than a protocol buffer can, 2^31 - 1, and Error{resource} as write_file() does.
std::int64_t write_onnx(const std::string& path, const OnnxModel& model);

}  // namespace trainctl
