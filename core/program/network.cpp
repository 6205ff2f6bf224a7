// From the options of a model, a loss and metrics to a forward graph.
#include "core/program/network.h"

namespace trainctl {

Network build_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader) {
  Network network;
  const FinalActivation ending = final_activation(*spec.model);
  if (spec.loss) {
    network.loss = resolve_loss(spec.loss, ending, reader);
  } else {
    network.loss.folded = ending;
  }
  BuildOptions options;
  options.batch = micro_batch;
  options.sample = spec.sample;
  options.format = spec.format;
  options.training = training;
  options.compute = spec.compute;
  options.seed = spec.seed;
  options.logits = network.loss.folded != FinalActivation::none;
  BuiltModel built = build_model(*spec.model, options, reader);
  if (!reader.ok()) return network;
  network.graph = std::move(built.graph);
  network.layers = std::move(built.layers);
  if (!spec.loss) return network;
  const Shape& output = network.graph.tensor(network.graph.output).type.shape;
  network.target_form = match_targets(network.loss, output, {spec.classes, spec.target, spec.label_mode}, reader);
  if (reader.ok()) match_weights(network.loss, output, spec.weight, reader);
  network.metrics = resolve_metrics(spec.metrics, network.loss, output, reader);
  if (reader.ok()) network.chance_loss = chance_loss(network.loss.rule, output);
  return network;
}

}  // namespace trainctl
