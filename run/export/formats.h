// The formats that a trained network is exported in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint/load.h"
#include "io/onnx/model.h"
#include "run/run_spec.h"

namespace trainctl {

// What is exported, and how.
struct ExportedRun {
  RunSpec spec;
  LoadedCheckpoint checkpoint;
  DType dtype = DType::float32;  // of stored weights, or bfloat16
  bool preprocess = false;       // whether the network begins with the config's transforms
};

struct ExportedFile {
  std::int64_t bytes = 0;
  std::vector<OnnxValue> inputs, outputs;  // of a network; none where weights alone were written
};

struct ExportFormat {
  std::string name;
  std::string ending;    // of files
  bool network = false;  // not the weights alone: may preprocess
  bool bfloat16 = true;  // or float32 alone
  // Writes the file, replacing one of that name.
  ExportedFile (*write)(const std::string& path, const ExportedRun& run);
};

const std::vector<ExportFormat>& export_formats();

}  // namespace trainctl
