// bidirectional: a recurrent layer over the steps of a sequence, and a second one over the reversed steps.
#include <algorithm>
#include <array>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {

enum class MergeMode { concat, sum, mul, ave };

template <>
struct EnumNames<MergeMode> {
  static constexpr EnumName<MergeMode> names[] = {
      {MergeMode::concat, "concat"}, {MergeMode::sum, "sum"}, {MergeMode::mul, "mul"}, {MergeMode::ave, "ave"}};
};

namespace {

const Section* recurrent_section(const Choice& layer) {
  const bool recurrent = layer.name == "lstm" || layer.name == "gru" || layer.name == "simple_rnn";
  return recurrent ? layer_choices().find(layer.name) : nullptr;
}

Node options_of(const Choice& layer) {
  return recurrent_section(layer)->write(dynamic_cast<const void*>(layer.options.get()));
}

Node& value_of(Node& map, std::string_view key) {
  const auto is_key = [&](const Node::Entry& entry) { return entry.key == key; };
  return std::find_if(map.entries.begin(), map.entries.end(), is_key)->value;
}

bool is_set(const Choice& layer, std::string_view key) {
  Node map = options_of(layer);
  return value_of(map, key).text == "true";
}

struct BidirectionalOptions final : ChainedLayer {
  LayerList layers, backward_layers;
  MergeMode merge_mode = MergeMode::concat;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Choice& forward = layers[0];
    const Choice& other = backward_layers.empty() ? forward : backward_layers[0];
    const bool backwards = backward_layers.empty() ? !is_set(forward, "go_backwards") : is_set(other, "go_backwards");
    const Feature first = one_way(layer, forward, "forward_layer", inputs[0], is_set(forward, "go_backwards"), false);
    const Feature second = one_way(layer, other, "backward_layer", inputs[0], backwards, true);
    if (!first.known() || !second.known()) return {};
    if (merge_mode != MergeMode::concat && layer.shape(first) != layer.shape(second)) {
      return layer.error(format("merge_mode {} needs two layers with the same number of units", name_of(merge_mode)),
                         inputs[0]);
    }
    return layer.output(merged(layer, {first.tensor, second.tensor}), first.mask);
  }
  MaskUse mask_use() const override { return MaskUse::own; }

 private:
  // Expands a recurrent layer. As in Keras, an output of all steps is 0 at the steps that a padding mask hides, and
  // that of the second layer is reversed.
  static Feature one_way(Layer& layer, const Choice& recurrent, const std::string& name, const Feature& input,
                         bool backwards, bool turned) {
    const Section& section = *recurrent_section(recurrent);
    Node map = options_of(recurrent);
    const auto set = [&](const char* key, bool value) { value_of(map, key) = scalar_node(value ? "true" : "false"); };
    set("go_backwards", backwards);
    set("reverse_output", turned);
    set("zero_output_for_mask", is_set(recurrent, "return_sequences"));
    const std::shared_ptr<Options> options = section.make();
    Reader reader;
    section.read(map, reader, dynamic_cast<void*>(options.get()));
    reader.throw_if_failed();
    return layer.expand_part(section.name, dynamic_cast<const LayerOptions&>(*options), name, {input});
  }

  TensorId merged(Layer& layer, const std::vector<TensorId>& both) const {
    switch (merge_mode) {
      case MergeMode::concat:
        return layer.op(std::make_shared<Concatenate>(), both)[0];
      case MergeMode::mul:
        return layer.op(std::make_shared<Multiply>(), both)[0];
      case MergeMode::sum:
      case MergeMode::ave:
        break;
    }
    const TensorId sum = layer.op(std::make_shared<Add>(), both)[0];
    return merge_mode == MergeMode::sum ? sum : layer.op(std::make_shared<ScaleBy>(0.5f), {sum})[0];
  }
};

void check_directions(const BidirectionalOptions& options, const Node& node, Reader& reader) {
  const auto wrong = [&](const char* key, const LayerList& list) {
    if (list.size() == 1 && (!list[0] || recurrent_section(list[0]) != nullptr)) return false;
    reader.error(node.find(key)->location, format("{} must have one lstm, gru or simple_rnn", key));
    return true;
  };
  const bool two = !options.backward_layers.empty();
  if (wrong("layers", options.layers) || (two && wrong("backward_layers", options.backward_layers))) return;
  if (!two || !options.layers[0] || !options.backward_layers[0]) return;
  const Choice &forward = options.layers[0], &backward = options.backward_layers[0];
  if (is_set(forward, "return_sequences") != is_set(backward, "return_sequences")) {
    reader.error(backward.location, "both layers need the same return_sequences");
  }
  if (is_set(forward, "go_backwards") == is_set(backward, "go_backwards")) {
    reader.error(backward.location, "one of both layers needs go_backwards: true, and the other one false");
  }
}

}  // namespace

Section bidirectional() {
  using O = BidirectionalOptions;
  return layer_keys<O>("bidirectional",
                       "A recurrent layer over the steps of a sequence, and one over the reversed steps; Schuster and "
                       "Paliwal (1997). Their weights are forward_layer/... and backward_layer/...")
      .required("layers", &O::layers, "The layer: one lstm, gru or simple_rnn in a list.")
      .key("backward_layers", &O::backward_layers,
           "A list with the layer over the reversed steps, with go_backwards: true; absent: the same as in `layers`, "
           "with weights of its own.")
      .key("merge_mode", &O::merge_mode,
           "How both outputs are combined: concat joins them along the last dimension; sum, mul, or ave for the mean.")
      .check(check_directions);
}

}  // namespace trainctl
