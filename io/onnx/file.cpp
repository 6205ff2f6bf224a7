// Writes the messages of an ONNX model. The constants are written to the file one after the other, so that they are not
// copied in memory.
#include "io/onnx/file.h"

#include <limits>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/version.h"
#include "io/checkpoint/atomic_file.h"
#include "io/protobuf/message.h"

namespace trainctl {
namespace {

constexpr std::int64_t onnx_ir_version = 8;  // version of the file format: the first one that supports the opset

// Returns the number of a data type in onnx.proto.
std::int64_t type_number(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 1;
    case DType::uint8:
      return 2;
    case DType::int32:
      return 6;
    case DType::int64:
      return 7;
    case DType::float16:
      return 10;
    case DType::float64:
      return 11;
    case DType::bfloat16:
      return 16;
  }
  return 0;
}

// Returns AttributeProto: the name, the value in the field of its type, and the number of the type.
ProtobufMessage message_of(const OnnxAttribute& attribute) {
  ProtobufMessage message;
  message.text(1, attribute.name);
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    message.integer(3, *number).integer(20, 2);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    message.real(2, *real).integer(20, 1);
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    message.text(4, *text).integer(20, 3);
  } else {
    for (const std::int64_t item : std::get<std::vector<std::int64_t>>(attribute.value)) message.integer(8, item);
    message.integer(20, 7);
  }
  return message;
}

// Returns NodeProto. The node's name is the name of its last output.
ProtobufMessage message_of(const OnnxNode& node) {
  ProtobufMessage message;
  for (const std::string& input : node.inputs) message.text(1, input);
  for (const std::string& output : node.outputs) message.text(2, output);
  message.text(3, node.outputs.back()).text(4, node.type);
  for (const OnnxAttribute& attribute : node.attributes) message.message(5, message_of(attribute));
  return message;
}

// Returns ValueInfoProto of a tensor. A dimension of TensorShapeProto is a number, or a name if it is open.
ProtobufMessage message_of(const OnnxValue& value) {
  ProtobufMessage shape;
  shape.message(1, ProtobufMessage().text(2, "batch"));
  for (std::int64_t k = 1; k < value.type.shape.rank(); ++k) {
    if (value.any_size && k <= 2) {
      shape.message(1, ProtobufMessage().text(2, k == 1 ? "height" : "width"));
    } else {
      shape.message(1, ProtobufMessage().integer(1, value.type.shape[k]));
    }
  }
  ProtobufMessage tensor;
  tensor.integer(1, type_number(value.type.dtype)).message(2, shape);
  return ProtobufMessage().text(1, value.name).message(2, ProtobufMessage().message(1, tensor));
}

// Returns TensorProto up to its elements.
ProtobufMessage head_of(const OnnxConstant& constant) {
  ProtobufMessage message;
  for (const std::int64_t size : constant.type.shape.sizes()) message.integer(1, size);
  message.integer(2, type_number(constant.type.dtype)).text(8, constant.name);
  return message.begin_bytes(9, std::ssize(constant.bytes));
}

// Returns ModelProto without its graph.
ProtobufMessage frame_of(const OnnxModel& model) {
  ProtobufMessage message;
  message.integer(1, onnx_ir_version).text(2, "trainctl").text(3, version());
  message.message(8, ProtobufMessage().text(1, "").integer(2, onnx_opset));
  for (const auto& [key, value] : model.metadata) {
    message.message(14, ProtobufMessage().text(1, key).text(2, value));
  }
  return message;
}

}  // namespace

std::int64_t write_onnx(const std::string& path, const OnnxModel& model) {
  ProtobufMessage graph;  // GraphProto without its constants
  for (const OnnxNode& node : model.nodes) graph.message(1, message_of(node));
  graph.text(2, "trainctl");
  for (const OnnxValue& input : model.inputs) graph.message(11, message_of(input));
  for (const OnnxValue& output : model.outputs) graph.message(12, message_of(output));

  std::vector<std::string> heads;  // messages of the constants up to their elements, with the field's key and length
  std::int64_t graph_bytes = std::ssize(graph.bytes());
  for (const OnnxConstant& constant : model.constants) {
    const ProtobufMessage head = head_of(constant);
    heads.push_back(ProtobufMessage().begin_bytes(5, std::ssize(head.bytes()) + std::ssize(constant.bytes)).bytes() +
                    head.bytes());
    graph_bytes += std::ssize(heads.back()) + std::ssize(constant.bytes);
  }
  const std::string model_head = frame_of(model).begin_bytes(7, graph_bytes).bytes();
  const std::int64_t bytes = std::ssize(model_head) + graph_bytes;
  if (bytes > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorKind::config, SourceLocation{path},
                format("the network needs {}, but an ONNX file can have 2 GB at most", byte_text(bytes)),
                "use --dtype bfloat16, which halves the size, or --format safetensors, which has no limit");
  }
  write_file(path, bytes, [&](OutputFile& file) {
    const auto write = [&](const std::string& bytes_to_write) {
      file.write(bytes_to_write.data(), std::ssize(bytes_to_write));
    };
    write(model_head);
    write(graph.bytes());
    for (std::size_t i = 0; i < heads.size(); ++i) {
      write(heads[i]);
      write(model.constants[i].bytes);
    }
  });
  return bytes;
}

}  // namespace trainctl
