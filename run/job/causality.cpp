// Follows the positions of a language model with the pass that makes its program for generation.
#include "run/job/causality.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/graph/graph.h"
#include "core/graph/passes/cache_positions.h"
#include "run/run_spec.h"

namespace trainctl {

std::string causality_warning(const RunSpec& spec, const DataInfo& data) {
  const auto& dataset = spec.data.dataset.as<DatasetOptions>();
  const DataUse use = data_use(spec);
  const auto tokens =
      std::find_if(use.inputs.begin(), use.inputs.end(), [](const auto& input) { return input.tokens > 0; });
  if (!dataset.predicts_positions() || tokens == use.inputs.end() || use.targets.size() != 1) return "";
  const auto number = static_cast<std::size_t>(tokens - use.inputs.begin());
  Reader reader;
  Graph graph = build_model(spec.model, {.inputs = data.inputs, .training = false}, reader).graph;
  if (!reader.ok()) return "";
  const CachedGraph followed = cache_positions(std::move(graph), number, data.inputs[number].sample[0]);
  if (followed.not_causal.empty()) return "";
  return format(
      "the network learns the next token, which it may see: {}. If it does, its loss is meaningless. `predict "
      "--prompt` "
      "refuses such a network: use attention with `use_causal_mask: true`, transformer_decoder instead of "
      "transformer_encoder, or recurrent layers",
      followed.not_causal);
}

}  // namespace trainctl
