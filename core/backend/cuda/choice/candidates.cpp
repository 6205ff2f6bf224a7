// Chooses between the kernels that can compute an op.
#include "core/backend/cuda/choice/candidates.h"

#include <algorithm>
#include <memory>

#include "core/backend/cuda/choice/digest.h"
#include "core/backend/cuda/choice/timing.h"
#include "core/backend/cuda/choice/timings.h"
#include "core/backend/cuda/cudnn/plans.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl::cuda {
namespace {

// Tensors with random values in each candidate's layouts, on which the candidates are timed. Outputs share the memory
// of inputs if the op can run in place, as in nearly all memory plans.
class Bench {
 public:
  explicit Bench(const LowerContext& context) : context_(context) {}

  // Queues the candidate's kernel.
  void run(const Candidate& candidate, cudaStream_t stream) {
    if (candidate_ != &candidate) bind(candidate);
    candidate.run(Buffers{{binding_, Slot{}}, stream});
  }

  // Runs the candidate once more, on the same values as all candidates, and computes the digests of its outputs.
  Result result(const Candidate& candidate) {
    if (candidate_ != &candidate) bind(candidate);
    for (std::size_t i = 0; i < taken_; ++i) buffers_[i].memory->fill();
    const auto stream = make<OwnedStream>(cudaStreamCreate, "cudaStreamCreate");
    run(candidate, stream.get());
    const auto known = std::find(layouts_.begin(), layouts_.end(), candidate.inputs);
    Result result{static_cast<int>(known - layouts_.begin()), {}};
    if (known == layouts_.end()) layouts_.push_back(candidate.inputs);
    for (std::size_t i = 0; i < context_.op.outputs.size(); ++i) {
      const TensorType& type = context_.output(i);
      result.outputs.push_back(digest_of(binding_.outputs[i].at(Slot{}), type.shape.count(), type.dtype, stream.get()));
    }
    return result;
  }

 private:
  void bind(const Candidate& candidate) {
    candidate_ = nullptr;
    binding_ = {};
    taken_ = 0;
    for (std::size_t i = 0; i < candidate.inputs.size(); ++i) {
      binding_.inputs.push_back(random(context_.input(i).shape.count(), candidate.inputs[i].dtype));
    }
    for (std::size_t i = 0; i < context_.op.outputs.size(); ++i) {
      binding_.outputs.push_back(random(context_.output(i).shape.count(), context_.output(i).dtype));
    }
    for (const InPlace& pair : context_.op.def->in_place()) {
      binding_.outputs[static_cast<std::size_t>(pair.output)] = binding_.inputs[static_cast<std::size_t>(pair.input)];
    }
    binding_.workspace = random(candidate.workspace_bytes / size_of(DType::float32), DType::float32);
    candidate_ = &candidate;
  }
  // The address of the next buffer. Reuses the previous candidate's buffer with the same index if size and dtype are
  // equal.
  Address random(std::int64_t count, DType dtype) {
    if (taken_ == buffers_.size()) buffers_.emplace_back();
    Buffer& buffer = buffers_[taken_++];
    if (buffer.memory == nullptr || buffer.count != count || buffer.dtype != dtype) {
      buffer = {};
      buffer = {count, dtype, std::make_unique<RandomBuffer>(count * size_of(dtype), dtype)};
    }
    return {buffer.memory->get<std::byte>(), 0};
  }

  struct Buffer {
    std::int64_t count = 0;
    DType dtype = DType::float32;
    std::unique_ptr<RandomBuffer> memory;
  };

  const LowerContext& context_;
  const Candidate* candidate_ = nullptr;  // the candidate that is bound
  Binding binding_;
  std::vector<Buffer> buffers_;
  std::size_t taken_ = 0;                     // number of buffers used so far by the candidate that is being bound
  std::vector<std::vector<Layout>> layouts_;  // the different layouts of inputs; Result::inputs is an index into them
};

// The rule for the choice of a candidate: the first candidate that can be made; the first candidate that runs and is
// not outvoted by the others; or the fastest candidate that is not outvoted.
enum class Pick { first, first_right, fastest };

// The chosen candidate and its name; no value if no candidate can be made.
std::optional<std::pair<std::string, Candidate>> best(const LowerContext& context, const Candidates& candidates,
                                                      Pick pick) {
  const std::vector<std::string> names = candidates.names();
  if (pick != Pick::first && candidates.prepare) candidates.prepare(names);
  std::vector<std::pair<std::string, Candidate>> made;
  for (const std::string& name : names) {
    if (auto candidate = candidates.make(name)) made.emplace_back(name, std::move(*candidate));
    if (!made.empty() && pick == Pick::first) break;
  }
  if (made.empty()) return {};
  if (made.size() == 1) return std::move(made[0]);
  Bench bench(context);
  Timings timings(context.label());
  std::vector<Result> results;
  for (const auto& entry : made) {
    const Candidate& candidate = entry.second;
    Result& result = results.emplace_back();
    timings.add(candidate.implementation, [&] {
      const double seconds = measure([&](cudaStream_t stream) { bench.run(candidate, stream); });
      result = bench.result(candidate);
      return seconds;
    });
  }
  const std::vector<int> others = outvoted(results);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (others[i] == 1) timings.reject(i, "an earlier candidate computes a different result");
    if (others[i] > 1) timings.reject(i, format("{} other candidates agree on a different result", others[i]));
  }
  return std::move(made[pick == Pick::fastest ? timings.fastest() : timings.first()]);
}

// The rule for a device. A deterministic device without timing chooses no candidate by its speed, but still compares
// their results.
Pick pick_of(const DeviceOptions& options, bool timing) {
  if (timing) return Pick::fastest;
  return options.deterministic && !options.timing ? Pick::first_right : Pick::first;
}

}  // namespace

std::string choice_key(const LowerContext& context) {
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

Lowering lowering_of(const LowerContext& context, const Candidate& candidate) {
  Lowering lowering = own_kernel(context, candidate.run, candidate.workspace_bytes);
  lowering.implementation = candidate.implementation;
  lowering.inputs = candidate.inputs;
  return lowering;
}

Lowering lower_fastest(const LowerContext& context, const Candidates& candidates) {
  const std::string key = choice_key(context);
  if (const auto recorded = context.choices.find(key)) {
    if (const auto candidate = candidates.make(*recorded)) return lowering_of(context, *candidate);
    log::warning(
        format("{}: the recorded kernel {} cannot be used here; another one is chosen", context.label(), *recorded));
  }
  const bool wanted = context.device.options().timing;
  const bool timing = wanted && context.choices.may_time(key);
  const auto chosen = best(context, candidates, pick_of(context.device.options(), timing));
  if (!chosen) {
    throw Error(
        ErrorKind::config, context.op.location,
        format("{} '{}': cuDNN {} has no kernel for {}", context.op.def->kind(), context.op.name, cudnnGetVersion(),
               key),
        "use another window, number of groups or precision for this layer, or compute on the CPU (device: cpu)");
  }
  if (wanted && !timing) {
    context.choices.assume(key);
  } else {
    context.choices.record(key, chosen->first);
  }
  context.plans.settle(false);
  return lowering_of(context, chosen->second);
}

}  // namespace trainctl::cuda
