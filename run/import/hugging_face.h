// Writes a config for the network in a Hugging Face folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

struct HuggingFaceImport {
  std::string preset;
  std::string config;  // YAML: `data` with the folder's tokenizer, `model`, and the loss
  std::size_t layers = 0;
  std::int64_t parameters = 0;
  std::vector<std::string> notes;  // sentences for the user, which are also comments in the config
};

// The name of the network in a folder: that of the folder.
std::string imported_name(const std::string& folder);

// Reads the config.json of a folder, and compares the headers of its weights with the network. The config names the
// folder as the source of its weights and tokenizer by a path that is relative to `config_folder`. Throws ConfigError
// with every key that no preset can express, and with missing and surplus tensors; and Error{data} if a file cannot be
// read.
HuggingFaceImport import_hugging_face(const std::string& folder, const std::string& config_folder);

}  // namespace trainctl
