// The keys of the `log` section.
#include "io/metrics/options.h"

namespace trainctl {

Keys<LogOptions> LogOptions::keys() {
  return Keys<LogOptions>("log", "What a run writes down while it trains.")
      .key("every", &LogOptions::every,
           "How often a step goes to metrics.jsonl; at most so often to the screen where that is no terminal, and less "
           "often in a long run.",
           more_than(0))
      .key("gpu", &LogOptions::gpu,
           "On GPUs: their utilisation, memory, temperature, power and clocks with the steps, about once a second; "
           "warnings "
           "of throttling and of GPUs that lag.");
}

}  // namespace trainctl
