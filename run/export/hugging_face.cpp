// Writes the network of a run as a Hugging Face folder: config.json, weights, tokenizer.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/hugging_face/description.h"
#include "io/hugging_face/kept_values.h"
#include "io/hugging_face/writer.h"
#include "run/export/formats.h"
#include "run/export/image_processor.h"
#include "run/export/network.h"
#include "run/export/tokenizer_files.h"

namespace trainctl {
namespace {

// The text of a key of the config's data; empty if the data set has no such key, or the key no scalar.
std::string data_value(const RunSpec& spec, const char* key) {
  const Node data = section_of<DataOptions>().write(&spec.data);
  const Node* value = data.find(key);
  return value != nullptr && value->is_scalar() ? value->text : "";
}

// The tokenizer that the config's data names, which may be bytes; no value if it names none.
std::optional<TextTokenizer> tokenizer_of(const RunSpec& spec) {
  const std::string name = data_value(spec, "tokenizer");
  if (name.empty() || name == "none" || name == "auto") return std::nullopt;
  if (name == "bytes") return open_tokenizer(NamedTokenizer::bytes);
  return open_tokenizer(Path{name}, data_value(spec, "encoding"));
}

// Warns that the folder gets no tokenizer, and says what the network's token ids are. Networks that read no text need
// none.
void warn_of_ids(const RunSpec& spec, const std::optional<TextTokenizer>& tokenizer) {
  const std::string bytes = "0 to 255 are the bytes of a text in UTF-8, and 256 is the end of a document";
  std::string ids;
  if (tokenizer && tokenizer->path == "bytes") {
    ids = bytes;
  } else if (tokenizer) {
    ids = format("the ids are those of {}, but transformers reads only tokenizer.json and models of SentencePiece",
                 tokenizer->path);
  } else if (spec.data.dataset.name == "text") {
    ids = format("`tokenizer` is not set, so that the ids are those of the token files, or of text: {}", bytes);
  } else if (spec.data.dataset.name == "text_classification") {
    ids = "the ids are the numbers of words that the run's checkpoints hold";
  }
  if (!ids.empty()) log::warning(format("no tokenizer is written: {}", ids));
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

// The tokens with which the run's documents begin and end; empty if they are unknown.
TokenizerUse document_tokens(const RunSpec& spec, const TextTokenizer& tokenizer) {
  const auto language = spec.data.dataset.as<DatasetOptions>().language_text();
  TokenizerUse use;
  use.begin_token = language ? language->begin_token : begin_token_of(tokenizer, "auto");
  use.end_token = language ? language->end_token : end_token_of(tokenizer, "auto");
  // The documents that a language model was trained on begin with begin_token, or with no token.
  if (!use.begin_token && !language) use.begin_token = described_token(tokenizer, "bos_token");
  if (!use.end_token && data_value(spec, "end_token") != "none") {
    use.end_token = described_token(tokenizer, "eos_token");
  }
  return use;
}

// The most tokens of a text, by the network's config.json.
std::optional<std::int64_t> positions_of(const Json& config) {
  for (const char* key : {"n_positions", "max_position_embeddings"}) {
    if (config.contains(key)) return config[key].get<std::int64_t>();
  }
  return std::nullopt;
}

// Removes the files of an earlier export that describe its network and tokens, so that an export that is interrupted
// leaves no folder that loads.
void remove_descriptions(const std::string& folder, bool has_tokenizer) {
  std::vector<std::string> names{"config.json", "generation_config.json", image_processor_file};
  if (!has_tokenizer) {
    for (const char* name :
         {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model", "spiece.model"}) {
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
  const bool copies = tokenizer && is_read_by_transformers(*tokenizer);
  Json& config = *description.config;
  TokenizerUse use;
  if (is_language_model) {
    if (tokenizer) use = document_tokens(run.spec, *tokenizer);
    const auto id = [](const std::optional<TokenId>& token) { return token ? Json(*token) : Json(nullptr); };
    config.update({{"bos_token_id", id(use.begin_token)}, {"eos_token_id", id(use.end_token)}});
  }
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
  remove_descriptions(path, copies);
  const std::int64_t bytes = write_hugging_face_weights(path, description.network.tensors, weights, run.dtype);
  use.positions = positions_of(config);
  if (const Shape& sample = description.network.sample; sample.rank() == 3) {
    write_image_processor(run, sample.back(), path);
  } else if (copies) {
    write_tokenizer_files(*tokenizer, use, path);
  } else {
    warn_of_ids(run.spec, tokenizer);
  }
  if (is_language_model && !tokens["bos_token_id"].is_null()) {
    write_file(path + "/generation_config.json", json_text(tokens, 2) + "\n");
  }
  write_file(path + "/config.json", json_text(config, 2) + "\n");
  return {bytes, {}, {}};
}

}  // namespace trainctl
