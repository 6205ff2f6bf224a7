// Matches the tensors of a network with those of a file.
#include "io/weights/match.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/format.h"
#include "core/layers/model/weights_options.h"
#include "io/weights/keras_structure.h"
#include "io/weights/pytorch_names.h"

namespace trainctl {
namespace {

// A program's names for layers and their tensors, and its layouts.
struct Convention {
  std::string names;
  WeightsLayout layout = WeightsLayout::trainctl;
  std::vector<NameRule> rules = {};
};

// The order in which Keras numbers the tensors of a layer; the same order holds for all kinds of layers.
constexpr std::string_view keras_order[] = {"depthwise_kernel",
                                            "pointwise_kernel",
                                            "kernel",
                                            "recurrent_kernel",
                                            "real_kernel",
                                            "imag_kernel",
                                            "embeddings",
                                            "alpha",
                                            "gamma",
                                            "scale",
                                            "beta",
                                            "moving_mean",
                                            "moving_variance",
                                            "bias"};

std::ptrdiff_t keras_rank(const std::string& leaf) {
  return std::find(std::begin(keras_order), std::end(keras_order), leaf) - std::begin(keras_order);
}

class Matcher {
 public:
  Matcher(const std::vector<WantedTensor>& wanted, const WeightsFile& file, const WeightsOptions& options,
          Reader& reader, WeightsUse use)
      : wanted_(wanted),
        stored_(file.tensors()),
        missing_names_(file.missing_names()),
        options_(options),
        reader_(reader),
        origin_(file.origin()),
        use_(use) {
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      by_name_.emplace(stored_[i].name, i);
      for (const std::string& name : stored_[i].other_names) by_name_.emplace(name, i);
    }
    for (const WantedTensor& tensor : wanted_) leaves_[tensor.layer()].push_back(tensor.leaf());
    for (auto& [layer, leaves] : leaves_) {
      std::sort(leaves.begin(), leaves.end(), [](auto& a, auto& b) { return keras_rank(a) < keras_rank(b); });
    }
    choose(file.origin());
    if (file.origin() == WeightsOrigin::keras) remedy_ = "; for a whole model `trainctl import` makes a config";
    if (std::any_of(stored_.begin(), stored_.end(), is_counted)) {
      remedy_ += "; a Keras before 3.6 counted its layers by class and did not name them: save it with a newer one";
    }
  }

  WeightsMatch match() {
    WeightsMatch match{convention_.names, convention_.layout};
    if (found_ == 0 && !wanted_.empty()) {
      report_unknown_names();
      return match;
    }
    std::vector<bool> used(stored_.size());
    std::size_t missing = 0;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const WantedTensor& tensor = wanted_[i];
      const Source source = source_of(tensor);
      bool skips = is_skipped(tensor.name);
      for (const std::size_t number : source.tensors) {
        used[number] = true;
        skips |= is_skipped(stored_[number].name);
      }
      const auto other = std::find_if(source.tensors.begin(), source.tensors.end(), [&](std::size_t number) {
        return !fits(tensor, stored_[number].shape, convention_.layout, source.part);
      });
      if (skips) {
        match.skipped.push_back(tensor.name);
      } else if (!source.missing.empty()) {
        match.missing.push_back(tensor.name);
        if (!options_.allow_missing) report_missing(tensor, source.missing, missing++);
      } else if (other != source.tensors.end()) {
        report_shape(tensor, stored_[*other]);
      } else {
        match.loaded.push_back({i, source.tensors, source.part});
      }
    }
    report_further(missing, "of the network's tensors are missing, too");
    std::size_t unused = 0;
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      if (used[i]) continue;
      if (is_skipped(stored_[i].name)) {
        match.skipped.push_back(stored_[i].name);
      } else if (unused++ < max_reports) {
        error(format("no tensor of the network uses '{}' ({}); {}", stored_[i].name, to_string(stored_[i].shape),
                     advice("if that is intended, name it in `skip`")));
      }
    }
    report_further(unused, "of the file's tensors are not used, too");
    for (std::size_t i = 0; i < options_.skip.size(); ++i) {
      if (skips_.contains(i)) continue;
      reader_.error(options_.skip[i].location,
                    format("'{}' skips no tensor, neither of the network nor of the file", options_.skip[i].name));
    }
    return match;
  }

 private:
  static constexpr std::size_t max_reports = 10;  // largest number of errors of one kind

  void choose(WeightsOrigin origin) {
    std::vector<Convention> conventions;
    const bool keras = origin == WeightsOrigin::keras, hugging_face = origin == WeightsOrigin::hugging_face;
    if (hugging_face) conventions.push_back({"Hugging Face's names", WeightsLayout::trainctl});
    if (!keras && !hugging_face) conventions.push_back({"trainctl's names", WeightsLayout::trainctl});
    const WeightsLayout layout = keras ? WeightsLayout::keras : WeightsLayout::pytorch;
    if (origin != WeightsOrigin::trainctl && !hugging_face) {
      for (const auto& [program, rules] : options_.names) {
        conventions.push_back({program + "'s names", layout, rules_of(rules)});
      }
      conventions.push_back({"the network's own names", layout});
      if (keras)
        conventions.push_back(
            {"the layers' kinds and shapes of weights", layout, rules_by_structure(wanted_, stored_)});
    }
    for (const Convention& convention : conventions) {
      const auto count = std::count_if(wanted_.begin(), wanted_.end(), [&](const WantedTensor& tensor) {
        return find(tensor, convention).has_value();
      });
      if (count > found_ || convention_.names.empty()) convention_ = convention;
      found_ = std::max(found_, count);
    }
  }

  // Returns the names that a tensor may have in the file, the usual name first.
  std::vector<std::string> names_of(const WantedTensor& tensor, const Convention& convention) const {
    std::string layer = renamed(tensor.layer(), convention.rules), leaf = tensor.leaf();
    switch (convention.layout) {
      case WeightsLayout::trainctl:
        return {tensor.name};
      case WeightsLayout::pytorch: {
        layer = module_of(layer);
        if (tensor.gates > 0) return {pytorch_recurrent_name(layer, leaf)};
        std::vector<std::string> names{layer + "." + pytorch_name(leaf)};
        // A module may have the only tensor of a layer as a parameter of its own, such as a class token.
        if (leaves_.at(tensor.layer()).size() == 1) names.push_back(layer);
        return names;
      }
      case WeightsLayout::keras:
        break;
    }
    const std::vector<std::string>& leaves = leaves_.at(tensor.layer());
    if (leaf == "recurrent_bias") leaf = "bias";  // both biases are rows of one tensor
    const auto number = std::find(leaves.begin(), leaves.end(), leaf) - leaves.begin();
    std::vector<std::string> names{layer + "/" + leaf, format("{}/{}", layer, number)};
    if (leaf == "depthwise_kernel") names.push_back(layer + "/kernel");
    return names;
  }
  // A tensor of the file, and the part of it that a tensor of the network is.
  struct Found {
    std::size_t tensor = 0;
    StoredPart part = {};
  };
  std::optional<Found> find(const WantedTensor& tensor, const Convention& convention) const {
    for (const std::string& name : names_of(tensor, convention)) {
      if (const auto found = by_name_.find(name); found != by_name_.end()) return Found{found->second};
    }
    if (convention.layout != WeightsLayout::pytorch) return std::nullopt;
    const PackedNames packed = packed_names(tensor.layer(), tensor.leaf(), convention.rules);
    for (const std::string& stored : packed.names) {
      if (const auto found = by_name_.find(stored); found != by_name_.end()) return Found{found->second, packed.part};
    }
    return std::nullopt;
  }

  // The tensors of the file that are added to obtain a tensor of the network: two for PyTorch's biases of lstm,
  // otherwise one. `missing` is the name of a tensor that is missing in the file.
  struct Source {
    std::vector<std::size_t> tensors;
    StoredPart part = {};
    std::string missing = {};
  };
  Source source_of(const WantedTensor& tensor) const {
    Source source;
    if (const auto found = find(tensor, convention_)) {
      source.tensors.push_back(found->tensor);
      source.part = found->part;
    } else {
      const auto known = missing_names_.find(tensor.name);
      source.missing = known != missing_names_.end() ? known->second : names_of(tensor, convention_)[0];
    }
    if (convention_.layout != WeightsLayout::pytorch || tensor.gates != 4 || tensor.leaf() != "bias") return source;
    const WantedTensor second{tensor.layer() + "/recurrent_bias", tensor.shape, {}, tensor.gates};
    if (const auto found = find(second, convention_)) {
      source.tensors.push_back(found->tensor);
    } else if (source.missing.empty()) {
      source.missing = names_of(second, convention_)[0];
    }
    return source;
  }

  bool is_skipped(const std::string& name) {
    bool skipped = false;
    for (std::size_t i = 0; i < options_.skip.size(); ++i) {
      if (fnmatch(options_.skip[i].name.c_str(), name.c_str(), 0) != 0) continue;
      skips_[i] = skipped = true;
    }
    return skipped;
  }

  // The location of the option is in a config; an import has no config and gives the file itself, which is named once.
  void error(std::string message) {
    const bool is_config = use_ == WeightsUse::config;
    reader_.error(options_.file.location,
                  is_config ? format("{}: {}", options_.file.value.text, message) : std::move(message));
  }
  void report_unknown_names() {
    std::string file_names, network_names;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, stored_.size()); ++i) {
      file_names += format("{}'{}'", i == 0 ? "" : ", ", stored_[i].name);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(3, wanted_.size()); ++i) {
      network_names += format("{}'{}'", i == 0 ? "" : ", ", wanted_[i].name);
    }
    error(format("{} that matches a tensor of the network: the file has {}, ..., the network {}, ...; {}",
                 stored_.size() == 1 ? "its only tensor has no name"
                                     : format("none of its {} tensors has a name", stored_.size()),
                 file_names.empty() ? "none" : file_names, network_names,
                 advice("give rules in `names` that convert the network's names" + remedy_)));
  }
  void report_missing(const WantedTensor& tensor, const std::string& name, std::size_t before) {
    if (before >= max_reports) return;
    error(format("'{}' is missing (by {}: '{}'); {}", tensor.name, convention_.names, name,
                 advice("`allow_missing: true` keeps its initial values")));
  }
  void report_shape(const WantedTensor& tensor, const FileTensor& stored) {
    const Shape expected = stored_shape(tensor, convention_.layout);
    const std::string as = expected == tensor.shape ? "" : format(" ({} in the file's layout)", to_string(expected));
    error(format("'{}' is {}{}, but '{}' in the file is {}; {}", tensor.name, to_string(tensor.shape), as, stored.name,
                 to_string(stored.shape),
                 advice(format("`skip: [{}/*]` keeps the layer's initial values", tensor.layer()))));
  }
  // What to do about tensors that do not match: `for_config` in a config. An import has no config with such keys:
  // there, the description and the weights in the file do not belong together.
  std::string advice(const std::string& for_config) const {
    if (use_ == WeightsUse::config) return for_config;
    return origin_ == WeightsOrigin::hugging_face
               ? "config.json and the weights are of different networks: copy the whole folder that save_pretrained "
                 "wrote"
               : "the network's description and the weights do not belong together: save the network again, with "
                 "model.save(\"network.keras\")";
  }
  void report_further(std::size_t count, const char* what) {
    if (count > max_reports) error(format("{} more {}", count - max_reports, what));
  }

  const std::vector<WantedTensor>& wanted_;
  const std::vector<FileTensor>& stored_;
  const std::map<std::string, std::string>& missing_names_;
  const WeightsOptions& options_;
  Reader& reader_;
  const WeightsOrigin origin_;
  const WeightsUse use_;
  std::map<std::string, std::size_t> by_name_;              // key: name of a tensor of the file; value: its index
  std::map<std::string, std::vector<std::string>> leaves_;  // key: layer; value: names of its tensors in Keras' order
  Convention convention_;
  std::string remedy_;                 // a further remedy if no name is known
  std::ptrdiff_t found_ = 0;           // number of the network's tensors that the convention finds in the file
  std::map<std::size_t, bool> skips_;  // key: index of a pattern that skips a tensor
};

}  // namespace

WeightsMatch match_weights(const std::vector<WantedTensor>& wanted, const WeightsFile& file,
                           const WeightsOptions& options, Reader& reader, WeightsUse use) {
  return Matcher(wanted, file, options, reader, use).match();
}

}  // namespace trainctl
