// Lists cuDNN's engines for an operation graph, and makes plans from them.
#include "core/backend/cuda/cudnn/engines.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

constexpr std::int64_t max_configs = 64;  // maximum number of configurations of one mode of the heuristics
constexpr int max_variants = 12;          // maximum number of variants of one engine in the list
constexpr int max_compiled = 3;  // maximum number of engines that are compiled at run time, in about a second each

// The configurations of engines that one mode of the heuristics returns.
std::vector<Descriptor> configurations(const Graph& graph, const GraphTarget& target, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.properties) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  if (!heuristics.can_finalize()) return {};
  const std::int64_t offered = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  return heuristics.children(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                             std::min(offered, max_configs));
}

// Whether the engine obeys the rules.
bool obeys(const Descriptor& engine, const EngineRules& rules) {
  const auto notes =
      engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return rules.deterministic;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return !rules.tensor_cores;
      // Engines with these notes lose more precision than the dtype does.
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return true;
      default:
        return false;
    }
  });
}

// Whether the engine compiles its kernels when a plan is made.
bool is_compiled(const Descriptor& engine) {
  const auto notes =
      engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return std::find(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes.end();
}

// Returns text such as "62:2=4,13=0": the engine's number, then the types and values of its knobs.
std::string text_of(const Descriptor& configuration, const Descriptor& engine) {
  std::string text = format("{}:", engine.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const auto knobs = configuration.children(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                            CUDNN_KNOB_TYPE_COUNTS);
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    const auto type = knobs[i].value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    const auto value = knobs[i].value<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    text += format("{}{}={}", i == 0 ? "" : ",", static_cast<int>(type), value);
  }
  return text;
}

// Reads a number and the separator after it from the front of a text, and removes both from the text. A separator ","
// may be missing at the end of the text.
std::optional<std::int64_t> read_number(std::string_view& text, char separator) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty() || text.front() != separator)
    return text.empty() && separator == ',' ? std::optional(number) : std::nullopt;
  text.remove_prefix(1);
  return number;
}

// Makes the configuration of an engine of this graph from a text that text_of() wrote. Empty if the text is malformed
// or cuDNN rejects it.
std::optional<Descriptor> configuration_of(const Graph& graph, const GraphTarget& target, std::string_view text) {
  const auto index = read_number(text, ':');
  if (!index) return {};
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.get());
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, *index);
  if (target.properties) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.properties);
  if (!engine.can_finalize()) return {};
  std::vector<Descriptor> knobs;
  while (!text.empty()) {
    const auto type = read_number(text, '=');
    const auto value = type ? read_number(text, ',') : std::nullopt;
    if (!value || *type < 0 || *type >= CUDNN_KNOB_TYPE_COUNTS) return {};
    Descriptor& knob = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(*type));
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, *value);
    if (!knob.can_finalize()) return {};
  }
  Descriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::span<const Descriptor>(knobs));
  if (!configuration.can_finalize()) return {};
  return configuration;
}

}  // namespace

std::vector<std::string> list_engines(const Graph& graph, const GraphTarget& target, const EngineRules& rules) {
  std::vector<std::string> engines;
  // The number of variants by engine: the heuristics often list one engine with many settings of its knobs.
  std::map<std::int64_t, int> variants;
  int compiled = 0;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!engines.empty()) break;
    for (const Descriptor& configuration : configurations(graph, target, mode)) {
      if (static_cast<int>(engines.size()) >= rules.max_engines) return engines;
      const auto engine = configuration.children(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
      if (engine.empty() || !obeys(engine[0], rules)) continue;
      const auto workspace = configuration.find<std::int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
      if (workspace.value_or(0) > rules.max_workspace_bytes) continue;
      const std::string text = text_of(configuration, engine[0]);
      if (std::find(engines.begin(), engines.end(), text) != engines.end()) continue;
      if (++variants[engine[0].value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)] > max_variants) continue;
      if (is_compiled(engine[0]) && ++compiled > max_compiled) continue;
      engines.push_back(text);
    }
  }
  return engines;
}

std::optional<Plan> Plan::make(const Graph& graph, const GraphTarget& target, std::string_view engine) {
  const auto configuration = configuration_of(graph, target, engine);
  if (!configuration) return {};
  auto plan = std::make_shared<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle) plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  if (target.properties) plan->set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *configuration);
  if (!plan->can_finalize()) return {};
  return Plan(std::move(plan), graph.ids(), target.handle);
}

Plan::Plan(std::shared_ptr<const Descriptor> plan, std::vector<std::int64_t> ids, cudnnHandle_t handle)
    : plan_(std::move(plan)),
      ids_(std::move(ids)),
      handle_(handle),
      workspace_bytes_(plan_->value<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

Plan::Plan(const Plan& other)
    : plan_(other.plan_), ids_(other.ids_), handle_(other.handle_), workspace_bytes_(other.workspace_bytes_) {}

const Plan::Pack& Plan::pack(std::span<void* const> buffers, void* workspace) {
  for (const Pack& pack : packs_) {
    if (pack.buffers.back() == workspace && std::equal(buffers.begin(), buffers.end(), pack.buffers.begin()))
      return pack;
  }
  Pack& pack = packs_.emplace_back();
  pack.buffers.assign(buffers.begin(), buffers.end());
  pack.buffers.push_back(workspace);
  pack.descriptor.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids_));
  pack.descriptor.set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, buffers);
  pack.descriptor.set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&workspace, 1));
  pack.descriptor.finalize();
  return pack;
}

void Plan::run(cudaStream_t stream, std::span<void* const> buffers, void* workspace) {
  check(cudnnSetStream(handle_, stream), "cudnnSetStream");
  check(cudnnBackendExecute(handle_, plan_->get(), pack(buffers, workspace).descriptor.get()), "cudnnBackendExecute");
}

}  // namespace trainctl::cuda
