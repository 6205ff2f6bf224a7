// Patterns of ops that cuDNN may compute as one, timed against ours.
#include "core/backend/cuda/patterns.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cuda/convolution.h"
#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/cuda/device.h"
#include "core/backend/cuda/engines.h"
#include "core/backend/cuda/streams.h"
#include "core/backend/cuda/timing.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/graph/ops/batch_norm.h"
#include "core/program/program.h"

namespace trainctl::cuda {
namespace {

constexpr DType dtype = DType::bfloat16;

// A convolution of ResNet-50 without strides.
struct Case {
  std::int64_t side, in, out, kernel;

  ConvolutionShape shape(std::int64_t images) const {
    const std::int64_t padding = kernel / 2;
    const Window window{{kernel, kernel}, {1, 1}, {1, 1}, {padding, padding}, {padding, padding}};
    return {window, 1, {images, side, side, in}, {images, side, side, out}, dtype};
  }
};

constexpr std::array cases{Case{56, 64, 64, 3}, Case{56, 64, 256, 1}, Case{56, 256, 64, 1}, Case{28, 128, 128, 3},
                           Case{14, 1024, 256, 1}};

// Steps of a way to compute something, in milliseconds.
using Steps = std::vector<double>;

double sum(const Steps& steps) {
  double total = 0;
  for (double step : steps) total += step;
  return total;
}

class OpTimer {
 public:
  // One run of an op as the backend lowers it, on random inputs of these types; in place where the op allows it.
  double milliseconds(const std::shared_ptr<const OpDef>& def, const std::vector<TensorType>& inputs) {
    Program program;
    Op op{def, {}, {}, "timed", {}};
    std::vector<Layout> present;
    const auto add = [&](const TensorType& type, std::vector<TensorId>& ids) {
      program.tensors.push_back({.name = "tensor", .type = type});
      ids.push_back(static_cast<TensorId>(program.tensors.size()) - 1);
    };
    for (const TensorType& type : inputs) {
      add(type, op.inputs);
      present.push_back(logical_layout(type));
    }
    for (const TensorType& type : def->outputs(inputs)) add(type, op.outputs);
    const Lowering lowering = backend_->lower(op, program, present, choices_);
    std::vector<std::unique_ptr<RandomBuffer>> buffers;
    const auto place = [&](std::int64_t bytes, DType type) {
      buffers.push_back(std::make_unique<RandomBuffer>(bytes, type));
      return Address{buffers.back()->get<std::byte>(), 0};
    };
    Binding binding;
    for (const Layout& layout : lowering.inputs) binding.inputs.push_back(place(layout.bytes, layout.dtype));
    for (const Layout& layout : lowering.outputs) binding.outputs.push_back(place(layout.bytes, layout.dtype));
    for (const InPlace& pair : def->in_place()) {
      binding.outputs[static_cast<std::size_t>(pair.output)] = binding.inputs[static_cast<std::size_t>(pair.input)];
    }
    binding.workspace = place(lowering.workspace_bytes, DType::float32);
    const auto kernel = lowering.bind(binding);
    const auto stream = backend_->compute_stream();
    return 1e3 * measure(stream_of(*stream), [&] { kernel->run(*stream, Slot{}); });
  }

 private:
  std::unique_ptr<Backend> backend_ = make_cuda_backend({});
  KernelChoices choices_;
};

// What a pattern's fastest engine takes.
struct Fastest {
  std::optional<double> milliseconds;
  std::string engine;
  std::size_t engines = 0;
  std::string why;
};

// `tensors` are those in memory, in the graph's order.
Fastest fastest(Graph graph, const Device& device, const std::vector<TensorType>& tensors) {
  const GraphTarget target{device.cudnn(), nullptr};
  Fastest result;
  if (!graph.finalize(target)) {
    result.why = "cuDNN does not support the graph";
    return result;
  }
  std::vector<RandomBuffer> buffers;
  buffers.reserve(tensors.size());
  std::vector<void*> places;
  for (const TensorType& type : tensors) {
    places.push_back(buffers.emplace_back(type.bytes(), type.dtype).get());
  }
  const std::vector<std::string> engines = list_engines(graph, target, {.deterministic = false});
  result.engines = engines.size();
  if (engines.empty()) result.why = "cuDNN has no engine for the graph";
  for (const std::string& engine : engines) {
    auto plan = Plan::make(graph, target, engine);
    if (!plan) {
      result.why = "a plan could not be made: " + engine;
      continue;
    }
    const RandomBuffer workspace(plan->workspace_bytes(), DType::float32);
    try {
      const double milliseconds =
          1e3 * measure([&](cudaStream_t stream) { plan->run(device.cudnn(), stream, places, workspace.get()); });
      if (result.milliseconds && *result.milliseconds <= milliseconds) continue;
      result.milliseconds = milliseconds;
      result.engine = engine;
    } catch (const Error& error) {
      cudaGetLastError();
      result.why = engine + ": " + error.what();
    }
  }
  return result;
}

// One shape's patterns.
class Patterns {
 public:
  Patterns(const Case& which, std::int64_t images, const Device& device, OpTimer& ops,
           const std::function<void(const std::string&)>& row)
      : shape_(which.shape(images)), device_(device), ops_(ops), row_(row) {}

  void statistics() {
    const std::vector<TensorType> norm = normalised(y_, false);
    const Steps ours{ops_.milliseconds(std::make_shared<Conv2d>(shape_.window, 1, ActivationFunction{}), {x_, kernel_}),
                     ops_.milliseconds(std::make_shared<BatchNorm>(relu_), norm)};
    std::vector<TensorType> inference = norm;
    inference.insert(inference.end(), 2, channels(y_));
    write("statistics", 2, ours,
          fastest(statistics_graph(shape_), device_, {x_, packed_, y_, channels(y_), channels(y_)}),
          [&] { return ops_.milliseconds(std::make_shared<BatchNormInference>(relu_), inference); });
  }

  void gradient(bool residual) {
    BatchNormAttributes a = relu_;
    a.residual = residual;
    std::vector<TensorType> dx{y_, kernel_};
    if (residual) dx.push_back(x_);
    const Steps ours{ops_.milliseconds(std::make_shared<Conv2dGradInput>(shape_.window, 1, shape_.x, residual), dx),
                     ops_.milliseconds(std::make_shared<BatchNormGrad>(a, false), gradient_inputs(a))};
    const auto find = [&](bool products) {
      std::vector<TensorType> tensors{packed_, y_};
      tensors.insert(tensors.end(), residual ? 3 : 2, x_);
      tensors.push_back(channels(x_));
      if (products) tensors.insert(tensors.end(), {x_, channels(x_)});
      return fastest(gradient_sums_graph(shape_, {residual, products}), device_, tensors);
    };
    const char* name = residual ? "residual gradient" : "gradient";
    // What is left with both sums is a pass that reads g and x and writes dx, as one that adds two tensors does; with
    // one sum it is the gradient without ReLU.
    if (Fastest both = find(true); both.milliseconds) {
      BatchNormAttributes pass;
      pass.residual = true;
      std::vector<TensorType> inputs = normalised(x_, false);
      inputs.insert(inputs.end(), {channels(x_), channels(x_), x_});
      return write(name, 2, ours, both,
                   [&] { return ops_.milliseconds(std::make_shared<BatchNormInference>(pass), inputs); });
    }
    write(name, 1, ours, find(false), [&] {
      const BatchNormAttributes plain;
      return ops_.milliseconds(std::make_shared<BatchNormGrad>(plain, false), gradient_inputs(plain));
    });
  }

 private:
  static TensorType channels(const TensorType& type) { return {{type.shape.back()}, DType::float32}; }

  // Inputs of batch normalisation: x, gamma and beta.
  static std::vector<TensorType> normalised(const TensorType& x, bool residual) {
    std::vector<TensorType> inputs{x, channels(x), channels(x)};
    if (residual) inputs.push_back(x);
    return inputs;
  }

  // Inputs of the gradient of batch normalisation over the convolution's input.
  std::vector<TensorType> gradient_inputs(const BatchNormAttributes& a) const {
    std::vector<TensorType> inputs{x_, x_};
    if (a.masks_by_bits(x_.shape.back())) {
      inputs.push_back(BatchNorm(a).outputs(normalised(x_, true)).back());
    }
    inputs.push_back(channels(x_));
    if (a.masks_by_x()) inputs.push_back(channels(x_));
    inputs.insert(inputs.end(), 2, channels(x_));
    return inputs;
  }

  template <class Rest>
  void write(const char* pattern, int sums, const Steps& ours, const Fastest& found, const Rest& rest) const {
    const auto size = [](const Shape& s) { return to_string(s); };
    Json json{{"shape", size(shape_.x) + " to " + size(shape_.y) + ", " + std::to_string(shape_.window.size[0]) + "x" +
                            std::to_string(shape_.window.size[1])},
              {"pattern", pattern},
              {"sums", sums},
              {"ours_ms", sum(ours)},
              {"ours_steps_ms", ours},
              {"pattern_ms", nullptr},
              {"engines", found.engines},
              {"engine", found.engine},
              {"why", found.why}};
    if (found.milliseconds) {
      const Steps steps{*found.milliseconds, rest()};
      json["pattern_ms"] = sum(steps);
      json["pattern_steps_ms"] = steps;
    }
    row_(json.dump());
  }

  ConvolutionShape shape_;
  const Device& device_;
  OpTimer& ops_;
  const std::function<void(const std::string&)>& row_;
  BatchNormAttributes relu_{.relu = true};
  TensorType x_{shape_.x, dtype}, y_{shape_.y, dtype};
  TensorType kernel_{{shape_.window.size[0], shape_.window.size[1], shape_.x[3], shape_.y[3]}, DType::float32};
  TensorType packed_{shape_.kernel(), dtype};
};

}  // namespace

void time_patterns(std::int64_t images, const std::function<void(const std::string&)>& row) {
  const Device device(device_of(0), {});
  OpTimer ops;
  for (const Case& which : cases) {
    Patterns patterns(which, images, device, ops, row);
    patterns.statistics();
    patterns.gradient(false);
    patterns.gradient(true);
  }
}

}  // namespace trainctl::cuda
