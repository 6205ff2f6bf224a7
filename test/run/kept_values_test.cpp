// Tests that values of the folder of the first weights are left out if its config.json cannot be read.
#include "io/hugging_face/kept_values.h"

#include <filesystem>

#include "core/base/json.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::kept_values_test {

TEST_CASE("values of a folder that cannot be reached are not kept, without an error") {
  const TempFolder folder;
  write_file(folder / "config.json", R"({"vocab_size": 9, "bos_token_id": 3})");
  Json config = {{"vocab_size", 9}, {"bos_token_id", nullptr}};
  const Json before = config;
  std::filesystem::create_symlink("loop", folder / "loop");  // following it fails with ELOOP
  for (const char* name : {"loop", "missing", "config.json"}) {
    CAPTURE(name);
    CHECK_NOTHROW(keep_hugging_face_values(folder / name, config));
    CHECK(config == before);
  }
  keep_hugging_face_values(folder.text(), config);
  CHECK(config["bos_token_id"] == 3);
}

}  // namespace trainctl::test::kept_values_test
