// The parts of an ONNX model: nodes that read and produce named values, constants, inputs and outputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/tensor_type.h"

namespace trainctl {

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>> value;
};

struct OnnxNode {
  std::string type;                  // the operator: "Conv"
  std::vector<std::string> inputs;   // names of values; "" for an optional input that is left out
  std::vector<std::string> outputs;  // names of values; "" for an optional output that is left out
  std::vector<OnnxAttribute> attributes;
};

struct OnnxConstant {
  std::string name;
  TensorType type;
  std::string bytes;  // the elements, little-endian and in row-major order
};

// An input or output of the network. The first dimension is the number of samples and is left open.
struct OnnxValue {
  std::string name;
  TensorType type;
  bool any_size = false;  // whether height and width, the second and third dimension, are left open, too
};

struct OnnxModel {
  std::vector<OnnxNode> nodes;  // each node follows the nodes whose values it reads
  std::vector<OnnxConstant> constants;
  std::vector<OnnxValue> inputs, outputs;
  std::map<std::string, std::string> metadata;
};

}  // namespace trainctl
