// Reads the options of one Keras layer while it is translated.
#pragma once

#include <set>
#include <string>

#include "core/base/document.h"
#include "core/base/json_fwd.h"
#include "io/keras/layers.h"

namespace trainctl {

// Each option is marked once it is read, so that finish() can report the others. The methods throw Json::exception if
// the layer is not as Keras writes it.
class LayerReader {
 public:
  // The parameters are those of translate(), and must outlive the object.
  LayerReader(const LayerUse& use, const std::string& version, const std::string& path, Reader& reader);

  // The class of the layer in Keras: "Dense".
  std::string kind() const;
  // Reports an error that begins with the layer's class and name.
  void error(const std::string& message);
  // Reports that an option's value cannot be translated.
  void no_counterpart(const std::string& key, const Json& value);

  // Returns the option's value, null if it is absent, and marks it as translated.
  const Json& take(const std::string& key);
  double number(const std::string& key, double otherwise);
  // Translates an option that has the same name in trainctl.
  void copy(const std::string& key, Node& options);
  // Translates the layer that this one wraps, as a list of one layer.
  Node wrapped();

  // Checks the options that were not translated: each must have the value that trainctl always uses, else it is
  // reported.
  void finish(Translation& result);

 private:
  void read_axes(Translation& result);
  void read_dtype(Translation& result);
  Node initializer(const std::string& key, const Json& value);
  Node regularizer(const std::string& key, const Json& value);
  Node activation(const std::string& key, const Json& value);

  const LayerUse& use_;
  const Json& config_;
  const std::string& version_;
  const std::string& path_;
  Reader& reader_;
  std::set<std::string> taken_;
  bool trains_inside_ = true;  // whether the wrapped layer trains
};

}  // namespace trainctl
