// Times patterns of ops, as one graph of cuDNN and as this project's kernels.
#include "test/cuda/patterns/patterns.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/backend/cuda/choice/op_timer.h"
#include "core/backend/cuda/choice/timing.h"
#include "core/backend/cuda/choice/timings.h"
#include "core/backend/cuda/cudnn/engines.h"
#include "core/backend/cuda/cudnn/plans.h"
#include "core/backend/single_op.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl::cuda {
namespace {

// The times of the steps of a computation, in milliseconds.
using Steps = std::vector<double>;

double sum(const Steps& steps) {
  double total = 0;
  for (double step : steps) total += step;
  return total;
}

class OpTimer {
 public:
  explicit OpTimer(const Device& device) : device_(device), plans_({device.cudnn(), nullptr}, 1) {}

  // Times one run of an op as the backend lowers it, on random inputs of these types; in place if the op allows it.
  double milliseconds(const std::shared_ptr<const OpDef>& def, const std::vector<TensorType>& inputs) {
    const SingleOp single(def, inputs, "timed", {});
    const LowerContext context{{single.op, single.program, single.present, choices_}, device_, plans_};
    return 1e3 * measure_op(context, lower_op(context));
  }

 private:
  const Device& device_;
  Plans plans_;
  KernelChoices choices_;
};

// The time of a pattern's fastest engine.
struct Fastest {
  std::optional<double> milliseconds;
  std::string engine;
  std::size_t engines = 0, tried = 0;
  std::string why;  // the reason why there is no time
};

constexpr std::chrono::seconds time_limit(5);  // after this time, no further engine is tried if one has run

// Times the graph's engines. `tensors` are the types of the tensors in memory, in the graph's order.
Fastest fastest(const std::function<Graph()>& make_graph, const Device& device,
                const std::vector<TensorType>& tensors) {
  const GraphTarget target{device.cudnn(), nullptr};
  const auto begin = std::chrono::steady_clock::now();
  Fastest result;
  std::optional<Graph> graph;
  try {
    graph.emplace(make_graph());
  } catch (const Error& error) {
    result.why = format("cuDNN does not know an operation of the graph: {}", error.what());
    return result;
  }
  if (!graph->finalize(target)) {
    result.why = "cuDNN does not support the graph";
    return result;
  }
  const std::vector<std::string> engines = list_engines(*graph, target, {.deterministic = false});
  result.engines = engines.size();
  if (engines.empty()) {
    result.why = "cuDNN has no engine for the graph";
    return result;
  }
  std::vector<RandomBuffer> memory;
  memory.reserve(tensors.size());
  std::vector<void*> buffers;
  for (const TensorType& type : tensors) {
    buffers.push_back(memory.emplace_back(type.bytes(), type.dtype).get());
  }
  std::string why;
  Timings timings("a pattern");
  for (const std::string& engine : engines) {
    if (result.milliseconds && std::chrono::steady_clock::now() - begin > time_limit) break;
    ++result.tried;
    std::optional<double> milliseconds;
    timings.add(engine, [&] {  // clears the error of CUDA if the engine fails
      try {
        auto plan = Plan::make(*graph, target, engine);
        if (!plan) throw Error(ErrorKind::resource, "no plan can be made");
        const RandomBuffer workspace(plan->workspace_bytes(), DType::float32);
        const double seconds = measure([&](cudaStream_t stream) { plan->run(stream, buffers, workspace.get()); });
        milliseconds = 1e3 * seconds;
        return seconds;
      } catch (const Error& error) {
        why = format("engine {}: {}", engine, error.what());
        throw;
      }
    });
    if (!milliseconds || (result.milliseconds && *result.milliseconds <= *milliseconds)) continue;
    result.milliseconds = milliseconds;
    result.engine = engine;
  }
  if (!result.milliseconds) result.why = format("none of {} engines runs; {}", engines.size(), why);
  return result;
}

// The patterns of one shape.
class Patterns {
 public:
  Patterns(ConvolutionShape shape, const Device& device, OpTimer& ops,
           const std::function<void(const std::string&)>& row)
      : shape_(std::move(shape)), device_(device), ops_(ops), row_(row) {}

  void statistics() {
    const std::vector<TensorType> norm = normalised(y_, false);
    const Steps ours{ops_.milliseconds(std::make_shared<Conv2d>(shape_.window, 1, ActivationFunction{}), {x_, kernel_}),
                     ops_.milliseconds(std::make_shared<BatchNorm>(relu_), norm)};
    std::vector<TensorType> inference = norm;
    inference.insert(inference.end(), 2, channels(y_));
    write("statistics", 2, ours,
          fastest([&] { return statistics_graph(shape_); }, device_, {x_, packed_, y_, channels(y_), channels(y_)}),
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
      return fastest([&] { return gradient_sums_graph(shape_, {residual, products}); }, device_, tensors);
    };
    const char* name = residual ? "residual gradient" : "gradient";
    // If cuDNN computes both sums, the remaining pass reads g and x and writes dx; it is timed as an op that adds two
    // tensors. If cuDNN computes one sum, the remaining step is timed as the gradient without ReLU.
    const Fastest both = find(true);
    if (both.milliseconds) {
      BatchNormAttributes pass;
      pass.residual = true;
      std::vector<TensorType> inputs = normalised(x_, false);
      inputs.insert(inputs.end(), {channels(x_), channels(x_), x_});
      return write(name, 2, ours, both,
                   [&] { return ops_.milliseconds(std::make_shared<BatchNormInference>(pass), inputs); });
    }
    Fastest one = find(false);
    one.why = "two sums: " + both.why + (one.milliseconds ? "" : "; one sum: " + one.why);
    write(name, 1, ours, one, [&] {
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
    Json json{{"dtype", name_of(shape_.dtype)},
              {"shape", size(shape_.x) + " to " + size(shape_.y) + ", " + std::to_string(shape_.window.size[0]) + "x" +
                            std::to_string(shape_.window.size[1])},
              {"pattern", pattern},
              {"sums", sums},
              {"ours_ms", sum(ours)},
              {"ours_steps_ms", ours},
              {"pattern_ms", nullptr},
              {"engines", found.engines},
              {"tried", found.tried},
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
  TensorType x_{shape_.x, shape_.dtype}, y_{shape_.y, shape_.dtype};
  TensorType kernel_{{shape_.window.size[0], shape_.window.size[1], shape_.x[3], shape_.y[3]}, DType::float32};
  TensorType packed_{shape_.kernel(), shape_.dtype};
};

}  // namespace

void time_patterns(std::int64_t images, DType dtype, const std::function<void(const std::string&)>& row) {
  const Device device(device_of(0), {});
  OpTimer ops(device);
  for (const ConvolutionShape& shape : pattern_shapes(images, dtype)) {
    Patterns patterns(shape, device, ops, row);
    patterns.statistics();
    patterns.gradient(false);
    patterns.gradient(true);
  }
}

}  // namespace trainctl::cuda

void trainctl_cuda_time_patterns(std::int64_t images, trainctl::DType dtype,
                                 const std::function<void(const std::string&)>& row) {
  trainctl::cuda::time_patterns(images, dtype, row);
}
