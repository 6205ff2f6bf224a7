// The keys of the `log` section.
#include "io/metrics/options.h"

#include "core/base/format.h"

namespace trainctl {
namespace {

void check_histograms(const LogOptions& options, const Node& node, Reader& reader) {
  if (!options.histograms) return;
  const SourceLocation& location = node.find("histograms")->location;
  if (options.histograms->unit == Duration::Unit::seconds || options.histograms->amount <= 0) {
    reader.error(location, format("histograms must be none, or a number of steps or epochs, not '{}'",
                                  to_string(*options.histograms)));
  } else if (!options.tensorboard) {
    reader.error(location, "histograms are shown by TensorBoard, and tensorboard is false: leave out one of both");
  }
}

}  // namespace

Keys<LogOptions> LogOptions::keys() {
  return Keys<LogOptions>("log", "What a run writes down while it trains.")
      .key("every", &LogOptions::every,
           "How often a step goes to metrics.jsonl and to TensorBoard; at most so often to the screen where that is no "
           "terminal, and less "
           "often in a long run.",
           more_than(0))
      .key("gpu", &LogOptions::gpu,
           "On GPUs: their utilisation, memory, temperature, power and clocks with the steps, about once a second; "
           "warnings of throttling and of GPUs that lag.")
      .key("tensorboard", &LogOptions::tensorboard,
           "Writes what metrics.jsonl holds to `tensorboard` in the run directory, too, for `tensorboard --logdir "
           "runs`: "
           "curves by step, and those of epochs under Keras' names (epoch_loss), training and validation over each "
           "other; the config as a text.")
      .key("histograms", &LogOptions::histograms,
           "How often TensorBoard gets the distributions of all weights and gradients, in steps or epochs: "
           "`weights/conv1/kernel`, and under `gradients/conv1/kernel` the gradient of the mean loss in that step, "
           "before "
           "clipping and weight decay. Values that are not finite are left out.")
      .key("samples", &LogOptions::samples,
           "Of networks that tell pictures' classes: how many validation samples TensorBoard shows after each "
           "evaluation, always the same, in a frame that is green where the network is right, and as a table of labels "
           "and predictions. They are the first replica's.",
           between(1, 64))
      .key(
          "prometheus", &LogOptions::prometheus,
          "Where rank 0 tells Prometheus how the run goes while it trains, by GET /metrics over HTTP: a port, as 9464, "
          "for this host alone, or an address and a port ('0.0.0.0:9464', '[::]:9464') for others, too, without a "
          "password.")
      .key(
          "callbacks", &LogOptions::callbacks,
          "Commands that rank 0 runs when something has happened, one after another beside training: a mail, a webhook "
          "by curl. One that fails is warned of and stops nothing.")
      .check(check_histograms);
}

}  // namespace trainctl
