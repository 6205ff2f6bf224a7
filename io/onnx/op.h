// Helps to translate one op into ONNX nodes.
#pragma once

#include <string>
#include <vector>

#include "io/onnx/translation.h"

namespace trainctl {

// An op with the values of its inputs. Inputs and outputs are numbered as in the op's definition.
class OnnxOp {
 public:
  OnnxOp(OnnxTranslation& translation, const Op& op) : translation_(translation), op_(op) {}

  template <class Def>
  const Def& as() const {
    return op_.as<Def>();
  }
  template <class Def>
  bool is() const {
    return op_.get_if<Def>() != nullptr;
  }
  std::size_t inputs() const { return op_.inputs.size(); }
  const TensorType& input_type(std::size_t input) const { return type(op_.inputs[input]); }
  const TensorType& output_type(std::size_t output = 0) const { return type(op_.outputs[output]); }
  // Returns the op that produces an input.
  OnnxOp producer(std::size_t input) const { return {translation_, translation_.producer(op_.inputs[input])}; }
  OnnxWeights weights(std::size_t input) const { return translation_.weights(op_.inputs[input]); }

  // Whether an input is a parameter or a running statistic, whose value weights_value() adds.
  bool is_weights(std::size_t input) const;

  // Return the name of an input's value, and set the name of an output's value.
  std::string value(std::size_t input, Channels channels = Channels::last) const {
    return translation_.value(op_.inputs[input], channels);
  }
  void set_output(const std::string& value, Channels channels = Channels::last, std::size_t output = 0) const {
    translation_.set_value(op_.outputs[output], channels, value);
  }
  // Returns the position of the channels for an op that accepts both positions: if possible, a position for which no
  // input must be transposed.
  Channels channels() const;

  // Appends a node and returns the name of its output number `output`; the outputs before it are left out.
  std::string node(const std::string& type, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {},
                   std::size_t output = 0) const;
  // Appends a node and returns the names of its first `count` outputs.
  std::vector<std::string> node_outputs(const std::string& type, std::vector<std::string> inputs,
                                        std::vector<OnnxAttribute> attributes, std::size_t count) const;

  // Adds constants and returns their names: one int64 number, a list of them, one float32 number, float32 numbers with
  // a shape, and weights in the layout of trainctl.
  std::string integer(std::int64_t value) const;
  std::string integers(const std::vector<std::int64_t>& values) const;
  std::string number(float value) const { return numbers({}, {value}); }
  std::string numbers(const Shape& shape, const std::vector<float>& values) const;
  std::string weights_value(std::size_t input) const;
  // Adds weights in a layout of ONNX under the name of the original weights.
  std::string weights_value(const std::string& name, const Shape& shape, std::span<const float> values) const {
    return translation_.add_weights(name, shape, values);
  }
  // Returns a name for weights that are joined from several weights of the op.
  std::string name(const std::string& leaf) const { return op_.name + "/" + leaf; }

  // Returns the shape of a vector with one value for each channel, which is broadcast to the op's first input.
  // `channels` is the position of the input's channels.
  Shape of_channels(Channels channels, std::int64_t count) const;

 private:
  const TensorType& type(TensorId id) const { return translation_.graph().tensor(id).type; }

  OnnxTranslation& translation_;
  const Op& op_;
};

// Returns the shape with the number of samples left open (-1), as an argument of Reshape.
std::vector<std::int64_t> open_batch(const Shape& shape);

}  // namespace trainctl
