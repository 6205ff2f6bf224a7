// The table of families, and what the files of all families have in common.
#include "io/hugging_face/network.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/spec/reader.h"
#include "io/hugging_face/config_json.h"
#include "io/hugging_face/families.h"
#include "io/hugging_face/json_file.h"

namespace trainctl {
namespace {

constexpr std::int64_t largest_config = 4 << 20;

// Marks the keys that all families may have and that do not change the outputs.
void ignore_common(ConfigJson& config) {
  config.ignore({"model_type",
                 "architectures",
                 "_name_or_path",
                 "transformers_version",
                 "use_cache",
                 "initializer_range",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "sep_token_id",
                 "unk_token_id",
                 "decoder_start_token_id",
                 "task_specific_params",
                 "output_attentions",
                 "output_hidden_states",
                 "return_dict",
                 "torchscript",
                 "id2label",
                 "label2id",
                 "problem_type",
                 "auto_map",
                 "_attn_implementation",
                 "_commit_hash",
                 "finetuning_task",
                 "prefix",
                 "model_max_length"});
}

}  // namespace

const std::vector<HuggingFaceFamily>& hugging_face_families() {
  static const std::vector<HuggingFaceFamily> families{bert_family(), gpt2_family(), llama_family(), vit_family()};
  return families;
}

HuggingFaceNetwork read_hugging_face_config(const Json& json, const std::string& path) {
  Reader reader;
  ConfigJson config(json, path, reader);
  const std::string model_type = config.find("model_type") == nullptr ? "" : config.text("model_type", "");
  std::vector<std::string> known;
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    for (const std::string& type : family.model_types) known.push_back(type);
    if (std::find(family.model_types.begin(), family.model_types.end(), model_type) == family.model_types.end()) {
      continue;
    }
    ignore_common(config);
    HuggingFaceNetwork network = family.read(model_type, config);
    for (const char* key : {"torch_dtype", "dtype"}) {
      config.only(key, {"float32", "float16", "bfloat16", "float64", "auto", nullptr}, network.preset);
    }
    config.refuse_others();
    reader.throw_if_failed();
    network.model_type = model_type;
    return network;
  }
  config.error(model_type.empty()
                   ? format("it has no 'model_type', which says what the network is; it can be {}", join_or(known))
                   : format("no preset of trainctl computes networks of the model_type '{}'; there are presets for {}",
                            model_type.substr(0, 60), join_or(known)));
  reader.throw_if_failed();
  return {};
}

HuggingFaceNetwork read_hugging_face_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  return read_hugging_face_config(read_json_object(path, largest_config), path);
}

}  // namespace trainctl
