// The formats in which a trained network is exported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint/load.h"
#include "io/onnx/model.h"
#include "run/run_spec.h"

namespace trainctl {

// The run to export, and how.
struct ExportedRun {
  RunSpec spec;
  LoadedCheckpoint checkpoint;
  DType dtype = DType::float32;  // dtype of the stored weights: float32 or bfloat16
  bool preprocess = false;       // whether the network begins with the config's transforms
};

struct ExportedFile {
  std::int64_t bytes = 0;
  std::vector<OnnxValue> inputs, outputs;  // inputs and outputs of a network; empty if only weights were written
};

// Writes a Hugging Face folder. Returns its bytes.
ExportedFile write_hugging_face(const std::string& path, const ExportedRun& run);

// A format, and the function that writes it.
struct ExportFormat {
  std::string name;
  std::string ending;    // ending of the name of the file or folder
  bool network = false;  // whether it stores a network, which may preprocess, and not only weights
  bool bfloat16 = true;  // whether it can store bfloat16 weights
  // Writes the file, and replaces an existing one.
  ExportedFile (*write)(const std::string& path, const ExportedRun& run);
};

// All formats.
const std::vector<ExportFormat>& export_formats();

}  // namespace trainctl
