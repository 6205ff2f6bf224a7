// Moves the statistics of Normalization layers from weights to options.
#include "io/keras/statistics.h"

#include <algorithm>
#include <memory>
#include <set>

#include "core/base/format.h"
#include "io/weights/weights_file.h"

namespace trainctl {
namespace {

constexpr std::int64_t most_channels_listed = 10'000;

// The values of the layer's tensor, by its number or name; a null node where the file has none.
Node values_of(const WeightsFile& file, const std::string& layer, int number, const std::string& name) {
  const auto& tensors = file.tensors();
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const FileTensor& tensor) {
    return tensor.name == format("{}/{}", layer, number) || tensor.name == layer + "/" + name;
  });
  if (found == tensors.end() || found->shape.count() > most_channels_listed) return {};
  std::vector<float> values(static_cast<std::size_t>(found->shape.count()));
  file.read(static_cast<std::size_t>(found - tensors.begin()), values.data());
  Node list = sequence_node();
  for (const float value : values) list.items.push_back(scalar_node(format("{}", value)));
  return list;
}

}  // namespace

std::vector<std::string> add_statistics(const std::string& path, const KerasNetwork& network,
                                        std::vector<Translation>& translations, Reader& reader) {
  std::unique_ptr<WeightsFile> file;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    if (translations[i].layers.empty()) continue;
    TranslatedLayer& layer = translations[i].layers[0];
    if (layer.kind != "normalization" || layer.options.find("mean") != nullptr) continue;
    if (file == nullptr) file = open_weights(path);
    const std::string& own = network.uses[i].name;
    std::vector<std::string> names{own};
    for (const RenamedLayer& renamed : network.renamed) {
      if (renamed.name == own) names = {renamed.keras};
    }
    Node mean, variance;
    for (const std::string& name : names) {
      if (!mean.is_null()) break;
      mean = values_of(*file, name, 0, "mean");
      variance = values_of(*file, name, 1, "variance");
      if (!mean.is_null()) taken.insert(name + "/*");
    }
    if (mean.is_null() || variance.is_null()) {
      reader.error({path}, format("Normalization '{}': the file has no mean and variance of it: call adapt()", own));
      continue;
    }
    append(layer.options, "mean", std::move(mean));
    append(layer.options, "variance", std::move(variance));
  }
  return {taken.begin(), taken.end()};
}

}  // namespace trainctl
