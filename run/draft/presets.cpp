// Builds each preset network for one sample, and counts its parameters and FLOPs.
#include "run/draft/presets.h"

#include <cstdint>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/layers/model/model.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct PresetSize {
  std::string name;
  Shape sample;
  std::int64_t parameters = 0;
  double flops = 0;  // FLOPs of a sample's forward pass
};

PresetSize size_of(const std::string& name) {
  Reader reader;
  const Node preset = load_preset(scalar_node(name), reader);
  reader.throw_if_failed();
  const Node* shape = preset.find("shape");
  if (shape == nullptr)
    throw Error(ErrorKind::config, preset.location, "a preset must have the `shape` of its samples");
  const std::string text = format(
      "data: {{dataset: synthetic, samples: 1, shape: {}, classes: 2}}\n"
      "model: {{preset: {}}}\n"
      "train: {{batch_size: 1, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}}\n",
      flow_text(*shape), name);
  const RunSpec spec = load_run_spec(name, {}, text);
  PresetSize size{name, Shape(*spec.data.shape->find("")), 0, 0};
  ModelInput input{"", size.sample, {}};
  if (token_count(spec.model, "") > 0) input.format.dtype = DType::int32;
  for (const LayerLine& line : build_model(spec.model, {.inputs = {input}}, reader).layers) {
    size.parameters += line.parameters;
    size.flops += line.flops;
  }
  reader.throw_if_failed();
  return size;
}

std::vector<PresetSize> sizes_of_all() {
  std::vector<PresetSize> sizes;
  for (const std::string& name : preset_names()) sizes.push_back(size_of(name));
  return sizes;
}

}  // namespace

std::string presets_text() {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"preset"}, {"sample"}, {"parameters", right}, {"forward pass of a sample", right}});
  for (const PresetSize& size : sizes_of_all()) {
    table.add({size.name, to_string(size.sample), grouped(size.parameters), flops_text(size.flops)});
  }
  return table.text() + "a config uses one by `model: {preset: NAME, with: {classes: 10}}`\n";
}

Json presets_json() {
  Json json = Json::array();
  for (const PresetSize& size : sizes_of_all()) {
    json.push_back({{"name", size.name},
                    {"shape", size.sample.sizes()},
                    {"parameters", size.parameters},
                    {"flops_per_sample", size.flops}});
  }
  return json;
}

}  // namespace trainctl
