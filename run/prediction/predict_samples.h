// Predicts the samples of files with a trained network, on all ranks.
#pragma once

#include <string>
#include <vector>

#include "run/job/trained_network.h"
#include "run/prediction/writer.h"

namespace trainctl {

struct RankContext;
struct RunSpec;

struct PredictionRequest {
  TrainedNetwork network;
  std::vector<std::string> inputs;  // files and folders, or NAME=ARRAY for each input of the network
  PredictionFormat format = PredictionFormat::csv;
  std::string file;    // the file for the predictions; empty: standard output
  std::string folder;  // the folder for a PNG file of each predicted picture; empty: no pictures
};

// Predicts all samples, and writes the predictions on rank 0. `spec`: the network's run, for one rank or for replicas.
// Throws the errors of PredictionData, Predictor and PictureWriter. Collective.
void predict_samples(const RunSpec& spec, const PredictionRequest& request, RankContext& context);

}  // namespace trainctl
