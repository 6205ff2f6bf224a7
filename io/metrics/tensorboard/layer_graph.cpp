// Converts the ops of a network to nodes of layers. The numbers of fields are those of TensorFlow's graph.proto,
// node_def.proto, attr_value.proto and tensor_shape.proto.
#include "io/metrics/tensorboard/layer_graph.h"

#include <map>
#include <set>

#include "io/protobuf/message.h"

namespace trainctl {
namespace {

namespace graph_def {
constexpr int node = 1;
}
namespace node_def {
constexpr int name = 1, op = 2, input = 3, attribute = 5;
}
namespace map_entry {
constexpr int key = 1, value = 2;
}
namespace attr_value {
constexpr int list = 1, integer = 3, shape = 7;
}
namespace shape_proto {
constexpr int dimension = 2, size = 1;
}

ProtobufMessage attribute(const std::string& name, const ProtobufMessage& value) {
  ProtobufMessage entry;
  entry.text(map_entry::key, name).message(map_entry::value, value);
  return entry;
}

ProtobufMessage node(const std::string& name, const std::string& kind, const Shape& output,
                     const std::vector<std::string>& reads) {
  ProtobufMessage shape;
  shape.message(shape_proto::dimension, ProtobufMessage().integer(shape_proto::size, -1));  // any number of samples
  for (const std::int64_t size : output.sizes()) {
    shape.message(shape_proto::dimension, ProtobufMessage().integer(shape_proto::size, size));
  }
  ProtobufMessage result;
  result.text(node_def::name, name).text(node_def::op, kind);
  for (const std::string& read : reads) result.text(node_def::input, read);
  const ProtobufMessage list = ProtobufMessage().message(attr_value::shape, shape);
  result.message(node_def::attribute, attribute("_output_shapes", ProtobufMessage().message(attr_value::list, list)));
  return result;
}

// Returns the layer of an op, whose name is the layer's name or begins with it and a slash; null if the op belongs to
// no layer.
const LayerLine* layer_of(const std::vector<LayerLine>& layers, const std::string& op) {
  const LayerLine* found = nullptr;
  for (const LayerLine& layer : layers) {
    const bool belongs = op == layer.name || op.starts_with(layer.name + "/");
    if (belongs && (found == nullptr || layer.name.size() > found->name.size())) found = &layer;
  }
  return found;
}

}  // namespace

std::string layer_graph(const ModelOptions& model, const std::vector<ModelInput>& inputs) {
  Reader reader;
  BuildOptions options;
  options.inputs = inputs;
  options.training = false;
  const BuiltModel built = build_model(model, options, reader);
  reader.throw_if_failed();

  ProtobufMessage graph;
  std::map<TensorId, std::string> producer;  // key: a tensor; value: the node that produces it
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = inputs[i].name.empty() ? "input" : "input_" + inputs[i].name;
    producer[built.graph.inputs[i]] = name;
    graph.message(graph_def::node, node(name, "Placeholder", inputs[i].sample, {}));
  }
  std::map<std::string, std::set<std::string>> reads;  // key: a layer; value: the nodes that it reads
  for (const Op& op : built.graph.ops) {
    const LayerLine* layer = layer_of(built.layers, op.name);
    // The outputs of an op between layers, such as the scaling of stored bytes, count as outputs of the node that it
    // reads.
    std::string output_node = layer == nullptr ? "" : layer->name;
    for (const TensorId input : op.inputs) {
      const auto source = producer.find(input);
      if (source == producer.end()) continue;  // a parameter
      if (layer == nullptr) output_node = source->second;
      if (layer != nullptr && source->second != layer->name) reads[layer->name].insert(source->second);
    }
    for (const TensorId output : op.outputs) producer[output] = output_node;
  }
  for (const LayerLine& layer : built.layers) {
    const std::set<std::string>& read = reads[layer.name];
    ProtobufMessage one = node(layer.name, layer.kind, layer.output, {read.begin(), read.end()});
    const ProtobufMessage parameters = ProtobufMessage().integer(attr_value::integer, layer.parameters);
    if (layer.parameters > 0) one.message(node_def::attribute, attribute("parameters", parameters));
    graph.message(graph_def::node, one);
  }
  return graph.bytes();
}

}  // namespace trainctl
