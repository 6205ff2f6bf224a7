// The expansion of a whole model: walks the layers, names them, resolves references, and collects their features and
// table lines.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/layers/layer.h"
#include "core/layers/model/model_options.h"

namespace trainctl {

class Expansion {
 public:
  // Adds the model's inputs to the graph. The arguments must outlive the object.
  Expansion(const ModelOptions& model, const BuildOptions& options, Reader& reader);

  // Expands all layers and sets the graph's outputs. Problems are reported to the reader.
  void run();
  // Expands layers whose paths begin with `path` ("" for the model's own list). `output` is the model's output that the
  // last layer gives, or no_output; `taken` are names that no layer may have. Returns the last layer's output, unknown
  // after an error.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, int output,
                 const std::vector<std::string>& taken);
  // Reports inputs and layers whose output no layer takes.
  void check_all_used();
  // Reports patterns of `freeze` that name no layer, and a network of which nothing trains.
  void check_frozen();

  const ModelOptions& model;
  const BuildOptions& options;
  Reader& reader;
  Graph graph;
  std::vector<LayerLine> lines;
  std::set<std::string> blocks;

 private:
  friend class Layer;

  void add_input(const ModelInput& input);
  // Finds the layers that the model's `outputs` name: of a layer with several uses the last one.
  void find_outputs(const std::vector<std::string>& inputs);
  // The number of the model's output that a layer gives; `otherwise` where the model's `outputs` do not name the layer.
  int output_of(const std::string& path, int otherwise) const;
  bool resolve(const std::vector<Reference>& references, const Layer& layer, const std::string& path,
               std::vector<Feature>& inputs);
  // Whether the layer may have this path: its first use, or one with the options of the first. Reports other options.
  bool admit(const Choice& choice, const Layer& layer);
  // Whether `freeze` names the layer with this path, or a block around it.
  bool freezes(const std::string& path);
  // The feature of a name as seen from the layers below a path, of several uses so far the last one; null where no
  // feature has that name.
  const Feature* find(const std::string& name, const std::string& path) const;
  std::vector<std::string> visible_from(const std::string& path) const;
  // Expands one layer. Returns its output; unknown, after a report, where the layer's sizes overflow.
  Feature expand_layer(const LayerOptions& layer_options, Layer& layer, const std::vector<Feature>& inputs);
  void finish(Layer& layer, const Feature& output);
  // Reports outputs whose softmax or sigmoid the loss takes over, while other layers take that output too.
  void check_logits();

  std::map<std::string, Feature> features_;          // by path
  std::map<std::string, const Choice*> first_uses_;  // by path of a layer's weights
  std::map<std::string, TensorId> weights_;          // parameters and running statistics by name
  std::vector<std::string> output_paths_;            // of the model's `outputs`
  std::set<std::string> taken_;                      // paths of layers whose output another layer takes
  std::size_t expanded_ = 0;                         // number of layers so far
  std::set<std::string> freezing_;                   // patterns of `freeze` that name a layer
  bool too_large_ = false;                           // the size of the network was reported
};

}  // namespace trainctl
