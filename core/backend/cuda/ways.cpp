// The choice between ways to compute an op.
#include "core/backend/cuda/ways.h"

#include <memory>

#include "core/backend/cuda/timing.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl::cuda {
namespace {

// What a choice depends on beside the hardware: the op, the types of its tensors, and what kernels may do.
std::string key_of(const LowerContext& context) {
  std::string text(context.op.def->kind());
  if (const std::string attributes = context.op.def->attributes(); !attributes.empty()) text += " " + attributes;
  const auto append = [&](const TensorType& type) {
    text += format(" {}:{}", name_of(type.dtype), to_string(type.shape));
  };
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) append(context.input(i));
  text += " ->";
  for (std::size_t i = 0; i < context.op.outputs.size(); ++i) append(context.output(i));
  return text + context.device.options().text();
}

// The op's tensors with random values, as each way wants them, to time ways on.
class Bench {
 public:
  explicit Bench(const LowerContext& context) : context_(context) {
    for (std::size_t i = 0; i < context.op.outputs.size(); ++i) {
      outputs_.push_back(random(context.output(i).shape, context.output(i).dtype));
    }
  }

  // None where the way fails although it could be made.
  std::optional<double> seconds(const Way& way) {
    Binding binding;
    std::vector<std::unique_ptr<RandomBuffer>> inputs;
    for (std::size_t i = 0; i < way.inputs.size(); ++i) {
      inputs.push_back(random(context_.input(i).shape, way.inputs[i].dtype));
      binding.inputs.push_back(address(*inputs.back()));
    }
    for (const auto& output : outputs_) binding.outputs.push_back(address(*output));
    const RandomBuffer workspace(way.workspace_bytes, DType::float32);
    binding.workspace = address(workspace);
    const Slot slot;
    try {
      return measure([&](cudaStream_t stream) { way.run(Places{{binding, slot}, stream}); });
    } catch (const Error& error) {
      log::warning(format("{}: {} is left out: {}", context_.label(), way.implementation, error.what()));
      return {};
    }
  }

 private:
  static std::unique_ptr<RandomBuffer> random(const Shape& shape, DType dtype) {
    return std::make_unique<RandomBuffer>(shape.count() * size_of(dtype), dtype);
  }
  static Address address(const RandomBuffer& buffer) { return {buffer.get<std::byte>(), 0}; }

  const LowerContext& context_;
  std::vector<std::unique_ptr<RandomBuffer>> outputs_;
};

// The fastest way and its name, unless there is only one or timing is off.
std::optional<std::pair<std::string, Way>> best(const LowerContext& context, const Ways& ways) {
  std::vector<std::pair<std::string, Way>> made;
  for (const std::string& name : ways.names()) {
    if (auto way = ways.make(name)) made.emplace_back(name, std::move(*way));
    if (!made.empty() && !context.device.options().timing) break;
  }
  if (made.empty()) return {};
  if (made.size() == 1) return std::move(made[0]);
  Bench bench(context);
  std::optional<std::size_t> fastest;
  double least = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto seconds = bench.seconds(made[i].second);
    if (!seconds || (fastest && *seconds >= least)) continue;
    least = *seconds;
    fastest = i;
  }
  if (!fastest) return {};
  return std::move(made[*fastest]);
}

}  // namespace

Lowering lowering_of(const LowerContext& context, const Way& way) {
  Lowering lowering = kernel(context, way.implementation, way.run, way.workspace_bytes);
  lowering.inputs = way.inputs;
  return lowering;
}

Lowering lower_fastest(const LowerContext& context, const Ways& ways) {
  const std::string key = key_of(context);
  if (const auto recorded = context.choices.find(key)) {
    if (const auto way = ways.make(*recorded)) return lowering_of(context, *way);
  }
  const auto chosen = best(context, ways);
  if (!chosen) {
    throw Error(
        ErrorKind::config, context.op.place,
        format("{} '{}': cuDNN {} has no kernel for {}", context.op.def->kind(), context.op.name, cudnnGetVersion(),
               key),
        "use another window, number of groups or precision for this layer, or compute on the CPU (device: cpu)");
  }
  context.choices.record(key, chosen->first);
  return lowering_of(context, chosen->second);
}

}  // namespace trainctl::cuda
