// The keys of `model.weights`.
#include "core/layers/model/weights_options.h"

namespace trainctl {
namespace {

void check_rules(const WeightsOptions& options, const Node&, Reader& reader) {
  for (const auto& [program, rules] : options.names) {
    for (const Reference& rule : rules) {
      try {
        NameRule parsed(rule.name);
      } catch (const Error& error) {
        reader.error(rule.location, error.what());
      }
    }
  }
}

}  // namespace

Keys<WeightsOptions> WeightsOptions::keys() {
  return Keys<WeightsOptions>(
             "weights",
             "Weights to begin with, in place of initial values; a run that goes on from a checkpoint does without.")
      .shorthand("file")
      .required("file", &WeightsOptions::file,
                "A checkpoint's folder or a run directory; a .safetensors file with the names of trainctl, torchvision "
                "or timm; Keras' .weights.h5, .h5 or .keras.")
      .key(
          "skip", &WeightsOptions::skip,
          "Patterns of tensors that are not loaded (`predictions/*`): names of the network's, which keep their initial "
          "values, or of the file's.")
      .key("allow_missing", &WeightsOptions::allow_missing,
           "Whether tensors that the file lacks keep their initial values. Otherwise they are an error.")
      .key("names", &WeightsOptions::names,
           "By program, a list of rules that turn paths of layers into its names: `stage{s}/{n}/ -> layer{s}.{n+1}.` "
           "replaces what it finds, numbers in braces, ^ and $ for the ends of the name. The rules that find most "
           "tensors are taken. A preset brings its own, and without any the layers have the same names in the file. "
           "PyTorch's recurrent layers are named rnn_l0, rnn_l1, ... or rnn_l0_reverse for the tensors "
           "rnn.weight_ih_l0, ...; rnn alone is rnn_l0.")
      .check(check_rules);
}

std::vector<NameRule> rules_of(const std::vector<Reference>& texts) {
  std::vector<NameRule> rules;
  for (const Reference& text : texts) rules.emplace_back(text.name);
  return rules;
}

}  // namespace trainctl
