// Writes the network of a run as a Hugging Face folder: config.json, weights, tokenizer.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/hugging_face/description.h"
#include "io/hugging_face/kept_values.h"
#include "io/hugging_face/writer.h"
#include "io/text/load.h"
#include "run/export/formats.h"
#include "run/export/network.h"

namespace trainctl {
namespace {

// The text of a key of the config's data; empty if the data set has no such key, or the key no scalar.
std::string data_value(const RunSpec& spec, const char* key) {
  const Node data = section_of<DataOptions>().write(&spec.data);
  const Node* value = data.find(key);
  return value != nullptr && value->is_scalar() ? value->text : "";
}

// The tokenizer that the config's data names; no value if it names none, or bytes.
std::optional<TextTokenizer> tokenizer_of(const RunSpec& spec) {
  const std::string name = data_value(spec, "tokenizer");
  if (name.empty() || name == "none" || name == "auto" || name == "bytes") return std::nullopt;
  return open_tokenizer(Path{name});
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Copies the tokenizer's file, and the files about it that transformers wrote beside it.
void copy_tokenizer(const TextTokenizer& tokenizer, const std::string& folder) {
  const std::string file = tokenizer.path.substr(tokenizer.path.rfind('/') + 1);
  const bool json = file.ends_with(".json");
  if (!json && file != "tokenizer.model" && file != "spiece.model") {
    return log::warning(
        format("{} is not copied: transformers reads tokenizer.json and models of SentencePiece", tokenizer.path));
  }
  write_file(folder + "/" + (json ? "tokenizer.json" : file), read_file(tokenizer.path, largest_tokenizer_file));
  bool described = false;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string path = folder_of(tokenizer.path) + "/" + name;
    if (!exists(path)) continue;
    write_file(folder + "/" + name, read_file(path, largest_tokenizer_file));
    described = true;
  }
  if (json && !described) {
    write_file(folder + "/tokenizer_config.json", "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n");
  }
}

// Puts the names of the classes into the config.json of a classifier, if the checkpoint has them.
void name_classes(const SnapshotMetadata& metadata, Json& config) {
  const std::vector<std::string> names = read_class_names(metadata);
  if (!config.contains("id2label") || config["id2label"].size() != names.size()) return;
  config["label2id"] = Json::object();
  for (std::size_t k = 0; k < names.size(); ++k) {
    config["id2label"][std::to_string(k)] = names[k];
    config["label2id"][names[k]] = k;
  }
}

// The id of the token that tokenizer_config.json or special_tokens_map.json, beside the tokenizer, names by `key`.
std::optional<TokenId> described_token(const TextTokenizer& tokenizer, const char* key) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string path = folder_of(tokenizer.path) + "/" + name;
    if (!exists(path)) continue;
    JsonFault ignored;
    const Json json = parse_json(read_file(path, largest_tokenizer_file), ignored);
    if (!json.is_object() || !json.contains(key)) continue;
    const Json& token = json[key].is_object() && json[key].contains("content") ? json[key]["content"] : json[key];
    for (const SpecialToken& special : tokenizer.tokenizer->special_tokens()) {
      if (token == special.text) return special.id;
    }
  }
  return std::nullopt;
}

// The tokens with which the run's documents begin and end, as the keys of Hugging Face's configs; null if they are
// unknown.
Json document_tokens(const RunSpec& spec, const std::optional<TextTokenizer>& tokenizer) {
  std::optional<TokenId> begin, end;
  if (tokenizer) {
    const auto language = spec.data.dataset.as<DatasetOptions>().language_text();
    begin = language ? language->begin_token : begin_token_of(*tokenizer, "auto");
    end = language ? language->end_token : end_token_of(*tokenizer, "auto");
    // The documents that a language model was trained on begin with begin_token, or with no token.
    if (!begin && !language) begin = described_token(*tokenizer, "bos_token");
    if (!end && data_value(spec, "end_token") != "none") end = described_token(*tokenizer, "eos_token");
  }
  const auto id = [](const std::optional<TokenId>& token) { return token ? Json(*token) : Json(nullptr); };
  return {{"bos_token_id", id(begin)}, {"eos_token_id", id(end)}};
}

// Removes the files of an earlier export that describe its network and tokens, so that an export that is interrupted
// leaves no folder that loads.
void remove_descriptions(const std::string& folder, bool has_tokenizer) {
  std::vector<std::string> names{"config.json", "generation_config.json"};
  if (!has_tokenizer) {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model"}) {
      names.emplace_back(name);
    }
  }
  for (const std::string& name : names) {
    std::error_code ignored;
    std::filesystem::remove(folder + "/" + name, ignored);
  }
}

}  // namespace

ExportedFile write_hugging_face(const std::string& path, const ExportedRun& run) {
  HuggingFaceDescription description =
      describe_for_hugging_face(run.spec.model, transformed_inputs(run.spec, run.checkpoint.manifest.metadata));
  const std::vector<NamedTensor>& weights = run.checkpoint.snapshot.weights;
  const auto stored = by_name(weights);
  for (const TensorRule& rule : description.network.tensors) {
    for (const std::string& part : rule.parts) {
      const auto found = stored.find(part);
      if (found != stored.end() && found->second->shape == rule.part_shape()) continue;
      throw Error(ErrorKind::config, SourceLocation{run.checkpoint.path},
                  format("holds no {} of shape {}, which the network of its run's config.yaml has", part,
                         to_string(rule.part_shape())),
                  "restore the config.yaml that it was trained with");
    }
  }
  // BERT and vision transformers do not generate text.
  const bool is_language_model = description.network.preset == "gpt2" || description.network.preset == "llama";
  const std::optional<TextTokenizer> tokenizer = tokenizer_of(run.spec);
  Json& config = *description.config;
  if (is_language_model) config.update(document_tokens(run.spec, tokenizer));
  if (run.spec.model.weights) keep_hugging_face_values(run.spec.model.weights->file.value.text, config);
  Json tokens;
  if (is_language_model) {
    if (data_value(run.spec, "begin_token") == "none") config["bos_token_id"] = nullptr;
    if (data_value(run.spec, "end_token") == "none") config["eos_token_id"] = nullptr;
    // Without a token for the beginning, a text begins after the end of another one.
    const Json end = config["eos_token_id"];
    if (config["bos_token_id"].is_null()) config["bos_token_id"] = end.is_array() ? end[0] : end;
    for (const char* key : {"bos_token_id", "eos_token_id"}) tokens[key] = config[key];
  }
  name_classes(run.checkpoint.manifest.metadata, config);
  config["torch_dtype"] = name_of(run.dtype);
  create_folders(path);
  remove_descriptions(path, tokenizer.has_value());
  const std::int64_t bytes = write_hugging_face_weights(path, description.network.tensors, weights, run.dtype);
  if (tokenizer) copy_tokenizer(*tokenizer, path);
  if (is_language_model && !tokens["bos_token_id"].is_null()) {
    write_file(path + "/generation_config.json", json_text(tokens, 2) + "\n");
  }
  write_file(path + "/config.json", json_text(config, 2) + "\n");
  return {bytes, {}, {}};
}

}  // namespace trainctl
