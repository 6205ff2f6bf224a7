// One op while it is translated into nodes of ONNX.
#pragma once

#include <string>
#include <vector>

#include "io/onnx/translation.h"

namespace trainctl {

// An op with the values of its inputs. Inputs and outputs are numbered as the op's definition states them.
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
  // The op that gives an input.
  OnnxOp producer(std::size_t input) const { return {translation_, translation_.producer(op_.inputs[input])}; }
  OnnxWeights weights(std::size_t input) const { return translation_.weights(op_.inputs[input]); }

  // The values of inputs, and of the outputs once they are known.
  std::string value(std::size_t input, Channels channels = Channels::last) const {
    return translation_.value(op_.inputs[input], channels);
  }
  void set_output(const std::string& value, Channels channels = Channels::last) const {
    translation_.set_value(op_.outputs[0], channels, value);
  }
  // Where the channels stay for an op that takes them in either place: where no input must be transposed, if there is
  // such a place.
  Channels channels() const;

  // Appends a node and returns its output: the one of this number, those before it being left out.
  std::string node(const std::string& type, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {},
                   std::size_t output = 0) const;

  // Constants: whole numbers, a number, numbers of a shape, and an input that is weights, as it is.
  std::string integers(const std::vector<std::int64_t>& values) const;
  std::string number(float value) const { return numbers({}, {value}); }
  std::string numbers(const Shape& shape, const std::vector<float>& values) const;
  std::string weights_value(std::size_t input) const;
  // Weights in a layout of ONNX, under the name of those that they come from.
  std::string weights_value(const std::string& name, const Shape& shape, std::span<const float> values) const {
    return translation_.add_weights(name, shape, values);
  }
  // A name for weights that are put together from several of the op's.
  std::string name(const std::string& leaf) const { return op_.name + "/" + leaf; }

  // The shape by which a value for each channel meets the op's first input, whose channels are in this place.
  Shape of_channels(Channels channels, std::int64_t count) const;

 private:
  const TensorType& type(TensorId id) const { return translation_.graph().tensor(id).type; }

  OnnxTranslation& translation_;
  const Op& op_;
};

// The shape of so many samples with the batch left open, as Reshape takes it.
std::vector<std::int64_t> open_batch(const Shape& shape);

}  // namespace trainctl
