// Tests which values of the config.json of a network's first weights an export keeps.
#include <filesystem>

#include "core/base/files.h"
#include "core/base/json_parse.h"
#include "io/hugging_face/kept_values.h"
#include "io/hugging_face/network.h"
#include "test/catch.h"
#include "test/io/weights/support.h"

namespace trainctl::test::hugging_face_kept_test {
namespace {

const std::string folders = TRAINCTL_SOURCE_DIR "/test/golden/hugging_face/";

Json config_of(const std::string& name) {
  return parse_json(read_file(folders + name + "/config.json", 1'000'000), SourceLocation{name});
}

// The config.json of an export of a run with few positions, whose tokenizer is unknown.
Json exported(const std::string& name, const char* positions) {
  Json config = config_of(name);
  config[positions] = 7;
  config["bos_token_id"] = config["eos_token_id"] = nullptr;
  return config;
}

}  // namespace

TEST_CASE("an export keeps the source's number of rotary positions and its special tokens") {
  for (const char* name : {"llama", "mistral"}) {
    CAPTURE(name);
    Json config = exported(name, "max_position_embeddings");
    keep_hugging_face_values(folders + name, config);
    CHECK(config["max_position_embeddings"] == 64);  // as test/golden/hugging_face.py sets it
    CHECK(config["bos_token_id"] == 1);              // LlamaConfig's and MistralConfig's defaults
    CHECK(config["eos_token_id"] == 2);
    // The preset that computes the network is the same, so that its logits are.
    const HuggingFaceNetwork kept = read_hugging_face_config(config, "config.json"),
                             before = read_hugging_face_config(folders + name);
    CHECK(flow_text(kept.with) == flow_text(before.with));
    CHECK(kept.sample == before.sample);
  }
}

TEST_CASE("an export keeps its own positions and tokens where the source's do not fit") {
  Json gpt2 = exported("gpt2", "n_positions");  // a table has the positions
  gpt2["vocab_size"] = 60'000;
  keep_hugging_face_values(folders + "gpt2", gpt2);
  CHECK(gpt2["n_positions"] == 7);
  CHECK(gpt2["eos_token_id"].is_null());  // another vocabulary

  Json small = exported("gpt2", "n_positions");
  keep_hugging_face_values(folders + "gpt2", small);
  CHECK(small["eos_token_id"].is_null());  // 50256 is no token of this vocabulary

  Json other = exported("llama", "max_position_embeddings");
  other["eos_token_id"] = 5;  // the run's texts end with another token than the source's
  keep_hugging_face_values(folders + "llama", other);
  CHECK(other["max_position_embeddings"] == 64);
  CHECK(other["eos_token_id"] == 5);
  CHECK(other["bos_token_id"].is_null());

  Json longer = exported("llama", "max_position_embeddings");
  longer["max_position_embeddings"] = 128;
  keep_hugging_face_values(folders + "llama", longer);
  CHECK(longer["max_position_embeddings"] == 128);

  Json alone = exported("llama", "max_position_embeddings");
  const Json before = alone;
  keep_hugging_face_values(folders + "missing", alone);
  keep_hugging_face_values(folders + "qwen3", alone);
  CHECK(alone == before);
}

TEST_CASE("an export keeps a list of tokens that end a text") {
  const TemporaryFolder folder;
  Json source = config_of("llama"), config = exported("llama", "max_position_embeddings");
  source["eos_token_id"] = {2, 4};
  write_text(folder / "config.json", json_text(source));
  config["eos_token_id"] = 4;
  keep_hugging_face_values(std::filesystem::path(std::string(folder / "config.json")).parent_path(), config);
  CHECK(config["eos_token_id"] == Json({2, 4}));
  CHECK(config["bos_token_id"] == 1);
}

}  // namespace trainctl::test::hugging_face_kept_test
