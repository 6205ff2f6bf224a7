// The expansion of a whole model: walks the layers, names them, resolves references, keeps what they gave.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/layers/layer.h"

namespace trainctl {

class Expansion {
 public:
  // Begins with the model's input.
  Expansion(const BuildOptions& options, Reader& reader);

  // Expands layers whose paths begin with `path` ("" for the model's own). `last`: the last one's output is the
  // model's. `taken` is a name that none may have. Returns the last output, unknown where an error stands in the way.
  Feature expand(const std::vector<Choice>& layers, const Feature& input, const std::string& path, bool last,
                 const std::string& taken);
  const Feature& input() const { return features_.at("input"); }
  // Reports layers whose output nothing takes.
  void check_all_used();

  const BuildOptions& options;
  Reader& reader;
  Graph graph;
  std::vector<LayerLine> lines;

 private:
  std::vector<std::string> choose_names(const std::vector<Choice>& layers, const std::string& path,
                                        const std::string& taken);
  bool resolve(const std::vector<Reference>& references, const Layer& layer, const std::string& path,
               std::vector<Feature>& inputs);
  // The feature of a name as seen from layers below a path; null where there is none.
  const Feature* find(const std::string& name, const std::string& path) const;
  std::vector<std::string> visible_from(const std::string& path) const;
  // What the layer gives; unknown where its sizes overflow, which is reported.
  Feature expand_layer(const LayerOptions& layer_options, Layer& layer, const std::vector<Feature>& inputs);
  void finish(Layer& layer, const Feature& output);

  std::map<std::string, Feature> features_;  // by path
  std::size_t expanded_ = 0;                 // layers so far
  bool too_large_ = false;                   // was reported
};

}  // namespace trainctl
