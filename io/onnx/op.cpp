// Adds the ONNX nodes and constants of an op.
#include "io/onnx/op.h"

namespace trainctl {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

bool OnnxOp::is_weights(std::size_t input) const {
  const Role role = translation_.graph().tensor(op_.inputs[input]).role;
  return role == Role::parameter || role == Role::statistic;
}

Channels OnnxOp::channels() const {
  const auto all_have = [&](Channels channels) {
    for (std::size_t i = 0; i < inputs(); ++i) {
      if (!is_weights(i) && !translation_.has_value(op_.inputs[i], channels)) return false;
    }
    return true;
  };
  if (input_type(0).shape.rank() < 3 || all_have(Channels::last)) return Channels::last;
  return Channels::first;
}

std::string OnnxOp::node(const std::string& type, std::vector<std::string> inputs,
                         std::vector<OnnxAttribute> attributes, std::size_t output) const {
  std::vector<std::string> outputs(output);
  outputs.push_back(translation_.unused(name(type)));
  translation_.model.nodes.push_back({type, std::move(inputs), outputs, std::move(attributes)});
  return outputs.back();
}

std::vector<std::string> OnnxOp::node_outputs(const std::string& type, std::vector<std::string> inputs,
                                              std::vector<OnnxAttribute> attributes, std::size_t count) const {
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(translation_.unused(name(type)));
  translation_.model.nodes.push_back({type, std::move(inputs), outputs, std::move(attributes)});
  return outputs;
}

std::string OnnxOp::integer(std::int64_t value) const {
  return translation_.add_constant(name("integer"), {{}, DType::int64}, bytes_of(std::vector{value}));
}

std::string OnnxOp::integers(const std::vector<std::int64_t>& values) const {
  return translation_.add_constant(name("integers"), {{std::ssize(values)}, DType::int64}, bytes_of(values));
}

std::string OnnxOp::numbers(const Shape& shape, const std::vector<float>& values) const {
  return translation_.add_constant(name("numbers"), {shape, DType::float32}, bytes_of(values));
}

std::string OnnxOp::weights_value(std::size_t input) const {
  const OnnxWeights all = weights(input);
  return weights_value(all.name, all.shape, all.values);
}

Shape OnnxOp::of_channels(Channels channels, std::int64_t count) const {
  std::vector<std::int64_t> sizes{count};
  if (channels == Channels::first) sizes.resize(static_cast<std::size_t>(input_type(0).shape.rank() - 1), 1);
  return Shape(std::move(sizes));
}

std::vector<std::int64_t> open_batch(const Shape& shape) {
  std::vector<std::int64_t> sizes = shape.sizes();
  sizes[0] = -1;
  return sizes;
}

}  // namespace trainctl
