// The expansion of a whole model: walks the layers, names them, resolves references, keeps what they gave.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/layers/layer.h"
#include "core/layers/model_options.h"

namespace trainctl {

class Expansion {
 public:
  // Begins with the model's inputs.
  Expansion(const ModelOptions& model, const BuildOptions& options, Reader& reader);

  // Expands all layers; the graph's outputs are then the model's.
  void run();
  // Expands layers whose paths begin with `path` ("" for the model's own). `output`: that of the model which the last
  // one gives, or no_output. `taken` are names that none may have. Returns the last output, unknown where an error
  // stands in the way.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, int output,
                 const std::vector<std::string>& taken);
  // Reports inputs and layers whose output nothing takes.
  void check_all_used();

  const ModelOptions& model;
  const BuildOptions& options;
  Reader& reader;
  Graph graph;
  std::vector<LayerLine> lines;

 private:
  void add_input(const ModelInput& input);
  // Which of the model's outputs a layer gives; `otherwise`, what its list says.
  int output_of(const std::string& path, int otherwise) const;
  bool resolve(const std::vector<Reference>& references, const Layer& layer, const std::string& path,
               std::vector<Feature>& inputs);
  // The feature of a name as seen from layers below a path; null where there is none.
  const Feature* find(const std::string& name, const std::string& path) const;
  std::vector<std::string> visible_from(const std::string& path) const;
  // What the layer gives; unknown where its sizes overflow, which is reported.
  Feature expand_layer(const LayerOptions& layer_options, Layer& layer, const std::vector<Feature>& inputs);
  void finish(Layer& layer, const Feature& output);
  // Reports outputs whose softmax or sigmoid the loss takes over, and that other layers take too.
  void check_logits();

  std::map<std::string, Feature> features_;  // by path
  std::set<std::string> taken_;              // paths of layers whose output another one takes
  std::size_t expanded_ = 0;                 // layers so far
  bool too_large_ = false;                   // was reported
};

}  // namespace trainctl
