// Finds the run and the checkpoint of a trained network that a user names.
#pragma once

#include <string>

namespace trainctl {

struct NetworkWeights;
struct RunSpec;

// Returns a run directory or a checkpoint as it is, and the newest run of a config. Throws the errors of
// load_run_spec() and newest_run().
std::string run_of(const std::string& path);

// Returns the run's best checkpoint, or its last one if there is no best one, which is logged.
std::string best_of_run(const std::string& run);

// A network that was named by a run directory, a checkpoint of a run, or a config, which means its newest run or, if it
// has none, the pretrained weights of its `model.weights`.
struct TrainedNetwork {
  std::string run;   // the run directory; empty for pretrained weights
  std::string path;  // the run directory or the checkpoint; for pretrained weights, the config

  bool is_untrained() const { return run.empty(); }
  // The config that describes the network.
  std::string config() const { return is_untrained() ? path : run + "/config.yaml"; }
  // Loads the weights: of `path`, of the checkpoint that best_of_run() chooses in a run directory, or the pretrained
  // ones. Logs what they are, after `verb`: "exports". `spec`: the config().
  NetworkWeights load(const RunSpec& spec, const std::string& verb) const;
};

// Throws Error{config} if the name is none of these, and as newest_run() does if a config names no weights.
TrainedNetwork find_trained(const std::string& name);

// Logs that a config, which names weights, has no run with a checkpoint of its model, and that these weights are used.
void begin_untrained(const RunSpec& spec, const std::string& config_file);

}  // namespace trainctl
