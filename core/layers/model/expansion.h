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
  // Expands layers whose paths begin with `path` ("" for the model's own list). `output` is the number of the model's
  // output that the last layer produces, or no_output; `taken` are names that no layer may have. Returns the last
  // layer's output, unknown after an error.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, int output,
                 const std::vector<std::string>& taken);
  // Reports inputs and layer outputs that no layer reads.
  void check_all_used();
  // Reports patterns of `freeze` that name no layer, and a network without trainable parameters.
  void check_frozen();

  const ModelOptions& model;
  const BuildOptions& options;
  Reader& reader;
  Graph graph;
  std::vector<LayerLine> lines;
  std::set<std::string> blocks;
  std::vector<std::vector<TensorId>> added_losses;  // the tensors that each of the model's added losses reads

 private:
  friend class Layer;

  void add_input(const ModelInput& input);
  // Finds the layers that the model's `outputs` name; if a layer has several uses, finds its last use.
  void find_outputs(const std::vector<std::string>& inputs);
  // The number of the model's output that a layer produces; `otherwise` if the model's `outputs` do not name the layer.
  int output_of(const std::string& path, int otherwise) const;
  bool resolve(const std::vector<Reference>& references, const Layer& layer, const std::string& path,
               std::vector<Feature>& inputs);
  // Whether the layer may have this path: it is the first layer with this name, or has the same options as the first
  // layer. Reports an error if the options differ.
  bool admit(const Choice& choice, const Layer& layer);
  // Whether `freeze` names the layer with this path, or a block that contains the layer.
  bool freezes(const std::string& path);
  // Whether a feature has as many samples as the layers that are expanded now: those inside time_distributed read steps
  // as samples. report_steps() reports a reference to a feature that has not.
  bool has_samples_of_here(const Feature& feature) const;
  void report_steps(const std::string& reader_of, const Reference& reference);
  // Whether a path, in which a layer's first use may end in "@1", is that of a further output.
  bool is_further_output(const std::string& path) const;
  // Returns the feature that a name refers to in the layers under a path: the last use so far if there are several
  // uses. Null if no feature has that name.
  const Feature* find(const std::string& name, const std::string& path) const;
  std::vector<std::string> visible_from(const std::string& path) const;
  // Expands one layer. Returns its output, which is unknown after an error, for example if its sizes overflow.
  Feature expand_layer(const LayerOptions& layer_options, Layer& layer, const std::vector<Feature>& inputs);
  // Expands a layer that changes values alone inside time_distributed: the steps are parts of one sample again.
  Feature expand_joined(const LayerOptions& layer_options, Layer& layer, const Feature& input);
  void finish(Layer& layer, const Feature& output);
  // Finds the tensors that added losses read.
  void find_added_losses();
  TensorId read_by_added_loss(const Reference& reference);
  // Reports an output if the loss takes over its softmax or sigmoid although other layers read the output, too.
  void check_logits();

  std::map<std::string, Feature> features_;          // key: path
  std::set<std::string> further_outputs_;            // paths of outputs of layers besides their own (add_output())
  std::vector<std::string> output_layers_;           // paths of the layers that produce the graph's outputs
  std::int64_t steps_ = 1;                           // steps of a sample that inner layers read as samples
  std::map<std::string, const Choice*> first_uses_;  // key: path of a layer's weights
  std::map<std::string, TensorId> weights_;          // parameters and running statistics; key: name
  std::vector<std::string> output_paths_;            // paths of the model's `outputs`
  std::set<std::string> read_layers_;                // paths of layers that another layer reads
  std::size_t expanded_ = 0;                         // number of layers that were expanded so far
  std::set<std::string> freezing_;                   // patterns of `freeze` that name a layer
  bool too_large_ = false;                           // whether the network was reported as too large
};

}  // namespace trainctl
