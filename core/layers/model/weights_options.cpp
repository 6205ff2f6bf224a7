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
  return Keys<WeightsOptions>("weights",
                              "Weights to start from instead of initial values; a run that resumes from a checkpoint "
                              "does not read them.")
      .shorthand("file")
      .required("file", &WeightsOptions::file,
                "A checkpoint's folder or a run directory; a .safetensors file with the names of trainctl, torchvision "
                "or timm; Keras' .weights.h5, .h5 or .keras; a Hugging Face folder (config.json and .safetensors "
                "files) of a network that a preset computes.")
      .key("skip", &WeightsOptions::skip,
           "Patterns of tensors that are not loaded (`predictions/*`): names of the network's tensors, which keep "
           "their initial values, or of the file's tensors.")
      .key("allow_missing", &WeightsOptions::allow_missing,
           "Whether tensors that are missing in the file keep their initial values. Otherwise they are an error.")
      .key("names", &WeightsOptions::names,
           "For each program, a list of rules that turn paths of layers into its names: `stage{s}/{n}/ -> "
           "layer{s}.{n+1}.` replaces its first match; braces match numbers, ^ and $ mean the ends of the name. The "
           "program with the rules that find the most tensors is chosen. A preset has rules of its own; without rules "
           "the layers have the same names in the file. PyTorch's recurrent layers are named rnn_l0, rnn_l1, ... or "
           "rnn_l0_reverse for the tensors rnn.weight_ih_l0, ...; rnn alone is rnn_l0.")
      .check(check_rules);
}

std::vector<NameRule> rules_of(const std::vector<Reference>& texts) {
  std::vector<NameRule> rules;
  for (const Reference& text : texts) rules.emplace_back(text.name);
  return rules;
}

}  // namespace trainctl
