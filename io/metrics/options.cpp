// The keys of the `log` section.
#include "io/metrics/options.h"

#include "core/base/format.h"

namespace trainctl {
namespace {

// Reports an interval that is not a number of steps or epochs.
void check_interval(const std::optional<Duration>& interval, const char* key, const Node& node, Reader& reader) {
  if (!interval || (interval->unit != Duration::Unit::seconds && interval->amount > 0)) return;
  reader.error(node.find(key)->location,
               format("{} must be none, or a number of steps or epochs, not '{}'", key, to_string(*interval)));
}

void check_intervals(const LogOptions& options, const Node& node, Reader& reader) {
  check_interval(options.gradient_norms, "gradient_norms", node, reader);
  check_interval(options.histograms, "histograms", node, reader);
  if (options.histograms && !options.tensorboard) {
    reader.error(node.find("histograms")->location,
                 "histograms are shown by TensorBoard, but tensorboard is false: remove one of the two keys");
  }
}

}  // namespace

Keys<LogOptions> LogOptions::keys() {
  return Keys<LogOptions>("log", "What a run records while it trains.")
      .key("every", &LogOptions::every,
           "How often a step is written to metrics.jsonl and to TensorBoard. If the output is not a terminal, it has "
           "at most as many lines, and fewer in a long run.",
           more_than(0))
      .key("gpu", &LogOptions::gpu,
           "On GPUs: add utilization, memory, temperature, power and clocks to the steps, about once a second, and "
           "warn of throttling and of slow GPUs.")
      .key("tensorboard", &LogOptions::tensorboard,
           "Also write the metrics to `tensorboard` in the run directory, for `tensorboard --logdir runs`: curves by "
           "step; curves by epoch under Keras' names (epoch_loss), with training and validation in one chart; the "
           "config as a text.")
      .key("histograms", &LogOptions::histograms,
           "How often the distributions of all weights and gradients are written for TensorBoard, in steps or epochs: "
           "`weights/conv1/kernel`, and under `gradients/conv1/kernel` the gradient of the mean loss in that step, "
           "before clipping and weight decay. Values that are not finite are left out.")
      .key("gradient_norms", &LogOptions::gradient_norms,
           "How often the norm of each layer's gradient is written to metrics.jsonl (event gradient_norms) and to "
           "TensorBoard (gradient_norm/LAYER), in steps or epochs: the gradient of the mean loss in that step, before "
           "clipping and weight decay.")
      .key("samples", &LogOptions::samples,
           "For networks that classify images: the number of validation samples that TensorBoard shows after each "
           "evaluation. They are always the same samples, taken from the first replica, with a green frame if the "
           "prediction is right and a red one otherwise, and as a table of labels and predictions.",
           between(1, 64))
      .key("prometheus", &LogOptions::prometheus,
           "Where rank 0 answers GET /metrics of Prometheus over HTTP while the run trains: a port, such as 9464, for "
           "access from this host only, or an address and a port ('0.0.0.0:9464', '[::]:9464') for access from other "
           "hosts, too. There is no password.")
      .key("callbacks", &LogOptions::callbacks,
           "Commands that rank 0 runs after an event, one after another and in parallel to training, such as sending a "
           "mail or calling a webhook with curl. If a command fails, a warning is logged and training continues.")
      .check(check_intervals);
}

}  // namespace trainctl
