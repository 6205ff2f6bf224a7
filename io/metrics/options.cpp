// The keys of the `log` section.
#include "io/metrics/options.h"

namespace trainctl {

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
      .key(
          "prometheus", &LogOptions::prometheus,
          "Where rank 0 tells Prometheus how the run goes while it trains, by GET /metrics over HTTP: a port, as 9464, "
          "for this host alone, or an address and a port ('0.0.0.0:9464', '[::]:9464') for others, too, without a "
          "password.")
      .key(
          "callbacks", &LogOptions::callbacks,
          "Commands that rank 0 runs when something has happened, one after another beside training: a mail, a webhook "
          "by curl. One that fails is warned of and stops nothing.");
}

}  // namespace trainctl
