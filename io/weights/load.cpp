// Loads weights.
#include "io/weights/load.h"

#include <algorithm>
#include <functional>
#include <map>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/graph/graph.h"
#include "core/graph/passes/initialize.h"
#include "core/layers/model/weights_options.h"
#include "io/weights/load_all.h"
#include "io/weights/match.h"

namespace trainctl {
namespace {

// Returns the first names, and the number of further ones.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(max_names, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > max_names ? format("{} and {} more", text, names.size() - max_names) : text;
}

// Throws Error{config} with the names of the layers of which a tensor is not loaded, if there are any.
void require_all(const WeightsOptions& options, const std::vector<WantedTensor>& wanted, const WeightsMatch& match) {
  std::vector<bool> loaded(wanted.size());
  for (const WeightsMatch::Pair& pair : match.loaded) loaded[pair.wanted] = true;
  std::vector<std::string> layers;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string layer(wanted[i].layer());
    if (!loaded[i] && std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  if (layers.empty()) return;
  throw Error(ErrorKind::config, options.file.location,
              format("{} gives no weights to {} {}, so that the network cannot be used without training",
                     options.file.value.text, layers.size() == 1 ? "the layer" : "the layers", some_of(layers)),
              "train first (trainctl run CONFIG)");
}

// An open file, the tensors of the network, and the match between them.
struct Opened {
  std::unique_ptr<WeightsFile> file;
  std::vector<WantedTensor> wanted;
  WeightsMatch match;
};

Opened open(const WeightsOptions& options, const Graph& graph, WeightsUse use) {
  Opened opened{open_weights(options.file.value.text), wanted_tensors(graph), {}};
  Reader reader;
  opened.match = match_weights(opened.wanted, *opened.file, options, reader, use);
  reader.throw_if_failed();
  const WeightsMatch& match = opened.match;
  std::string text = format("weights from {} by {}: {} of {}", options.file.value.text, match.names,
                            match.loaded.size(), counted(opened.wanted.size(), "tensor"));
  if (!match.missing.empty()) text += format("; missing, with initial values: {}", some_of(match.missing));
  if (!match.skipped.empty()) text += format("; skipped: {}", some_of(match.skipped));
  log::info(text);
  for (const WeightsMatch::Pair& pair : match.loaded) {
    for (const std::size_t number : pair.stored) {
      const FileTensor& stored = opened.file->tensors()[number];
      log::debug(
          format("weights: {} from '{}' ({})", opened.wanted[pair.wanted].name, stored.name, to_string(stored.shape)));
    }
  }
  for (const std::string& name : match.missing) log::debug(format("weights: {} is missing", name));
  for (const std::string& name : match.skipped) log::debug(format("weights: {} is skipped", name));
  return opened;
}

// Reads the values of the matched tensors, and makes those of the others.
LoadedWeights read(const WeightsOptions& options, const Opened& opened, const Graph& graph, std::uint64_t seed,
                   const std::function<std::string(const std::string&)>& followed) {
  LoadedWeights loaded{options.file.value.text, {}, {}};
  std::map<std::string, float*> values;
  for (const WantedTensor& tensor : opened.wanted) {
    const std::int64_t count = tensor.shape.count();
    loaded.memory.push_back(std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(count)));
    float* memory = values[tensor.name] = loaded.memory.back().get();
    loaded.snapshot.weights.push_back({tensor.name, tensor.shape, {memory, DType::float32, count}});
  }
  std::vector<float> stored, addend;
  for (const WeightsMatch::Pair& pair : opened.match.loaded) {
    const WantedTensor& tensor = opened.wanted[pair.wanted];
    const auto node = values.extract(tensor.name);
    const auto count = static_cast<std::size_t>(opened.file->tensors()[pair.stored[0]].shape.count());
    stored.resize(count);
    opened.file->read(pair.stored[0], stored.data());
    for (std::size_t k = 1; k < pair.stored.size(); ++k) {
      addend.resize(count);
      opened.file->read(pair.stored[k], addend.data());
      std::transform(stored.begin(), stored.end(), addend.begin(), stored.begin(), std::plus<>());
    }
    const float* part = stored.data() + static_cast<std::int64_t>(count) / pair.part.count * pair.part.index;
    to_logical(tensor, opened.match.layout, part, node.mapped());
  }
  for (const GraphParameter& parameter : graph.parameters) {
    const Tensor& tensor = graph.tensor(parameter.tensor);
    if (const auto found = values.find(tensor.name); found != values.end()) {
      initialize(parameter, tensor, seed, found->second);
    }
  }
  for (const GraphStatistic& statistic : graph.statistics) {
    const Tensor& tensor = graph.tensor(statistic.moving);
    const auto found = values.find(tensor.name);
    if (found != values.end()) std::fill_n(found->second, tensor.type.shape.count(), statistic.initial);
  }
  const auto known = by_name(loaded.snapshot.weights);
  for (const auto& [name, memory] : values) {
    const auto of = known.find(followed(name));
    if (of != known.end()) std::copy_n(of->second->view.as<float>(), of->second->view.count, memory);
  }
  return loaded;
}

}  // namespace

void check_weights(const WeightsOptions& options, const Graph& graph, WeightsUse use) {
  const Opened opened = open(options, graph, use);
  if (use == WeightsUse::import) opened.file->check_values();
}

LoadedWeights load_all_weights(const WeightsOptions& options, const Graph& graph) {
  const Opened opened = open(options, graph, WeightsUse::config);
  require_all(options, opened.wanted, opened.match);
  return read(options, opened, graph, 0, [](const std::string&) { return ""; });
}

LoadedWeights load_weights(const WeightsOptions& options, const Graph& graph, std::uint64_t seed,
                           const std::function<std::string(const std::string&)>& followed, WeightsUse use) {
  return read(options, open(options, graph, use), graph, seed, followed);
}

}  // namespace trainctl
