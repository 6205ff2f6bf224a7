// Tests the warnings about held-out splits that repeat training samples: the same file or folder under any name, and
// copies.
#include <filesystem>
#include <random>

#include "core/base/format.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test::repeated_samples_test {
namespace {

namespace fs = std::filesystem;

// The warnings about repeated samples.
std::vector<std::string> repeated(const std::string& yaml, const DataUse& use = {}) {
  std::vector<std::string> found;
  const Data data(data_options(yaml), 1, use);
  for (const std::string& warning : data.info().warnings) {
    if (warning.find("was not trained on") != std::string::npos) found.push_back(warning);
  }
  return found;
}

bool is_one_with(const std::vector<std::string>& warnings, const std::string& text) {
  return warnings.size() == 1 && warnings[0].find(text) != std::string::npos;
}

std::string table(unsigned seed) {
  std::mt19937 random(seed);
  std::string text = "a,b,y\n";
  for (int i = 0; i < 12; ++i) text += format("{},{},{}\n", random() % 100, random() % 100, i % 3);
  return text;
}

void write_arrays(const std::string& folder, unsigned seed) {
  write_file(folder + "/x.npy", npy("|u1", "(8, 5)", random_bytes(8 * 5, seed)));
  std::string labels;
  for (int i = 0; i < 8; ++i) labels += static_cast<char>(i % 2);
  write_file(folder + "/y.npy", npy("|u1", "(8,)", labels));
}

}  // namespace

TEST_CASE("a validation table that is the training table under any name is warned of") {
  const TempFolder folder;
  write_file(folder / "t.csv", table(1));
  write_file(folder / "other.csv", table(2));
  fs::create_hard_link(folder / "t.csv", folder / "hard.csv");
  fs::create_symlink(folder / "t.csv", folder / "soft.csv");
  fs::copy_file(folder / "t.csv", folder / "copy.csv");
  const auto with = [&](const std::string& path, const std::string& validation) {
    return repeated(format("{{dataset: csv, path: {}, validation: {{path: {}}}}}", path, validation));
  };
  for (const char* name : {"t.csv", "hard.csv", "soft.csv", "./t.csv"}) {
    CAPTURE(name);
    const std::string shown = fs::path(folder / name).lexically_normal().string();
    CHECK(is_one_with(with(folder / "t.csv", folder / name),
                      format("the validation split repeats training samples ({}), so that", shown)));
  }
  CHECK(is_one_with(with(folder / "t.csv", folder / "copy.csv"),
                    "the validation split has the same samples as the training split"));
  CHECK(is_one_with(with(folder / "t.csv", folder / "copy.csv"), "`validation: {split: 0.1}`"));
  CHECK(with(folder / "t.csv", folder / "other.csv").empty());
  const std::string both = format("[{}, {}]", folder / "other.csv", folder / "t.csv");
  CHECK(is_one_with(with(both, folder / "hard.csv"), "repeats training samples"));
  CHECK(repeated(format("{{dataset: csv, path: {}, validation: {{split: 0.25}}}}", folder / "t.csv")).empty());
  CHECK(is_one_with(repeated(format("{{dataset: csv, path: {0}, validation: {{split: 0.25}}, test: {{path: {0}}}}}",
                                    folder / "t.csv")),
                    "the test split repeats training samples"));
}

TEST_CASE("validation arrays and images that are the training ones are warned of") {
  const TempFolder folder;
  write_arrays(folder / "a", 1);
  write_arrays(folder / "b", 2);
  const auto with = [&](const std::string& validation) {
    return repeated(format("{{dataset: npy, path: {}, validation: {{path: {}}}}}", folder / "a", validation));
  };
  CHECK(is_one_with(with(folder / "a"), "the validation split has the same samples as the training split"));
  CHECK(with(folder / "b").empty());
  CHECK(is_one_with(repeated(format("{{dataset: npy, x: {0}/x.npy, y: {0}/y.npy, validation: {{x: {1}/x.npy, y: "
                                    "{1}/y.npy}}}}",
                                    folder / "a", folder / "b/../a")),
                    "repeats training samples"));

  for (const char* split : {"train", "val"}) {
    for (const char* kind : {"cat", "dog"}) {
      const unsigned seed = (split[0] == 't' ? 10u : 20u) + (kind[0] == 'c' ? 0u : 1u);
      write_file(folder / format("{}/{}/1.png", split, kind), png(4, 4, 2, random_bytes(48, seed)));
    }
  }
  const auto images = [&](const std::string& validation) {
    return repeated(
        format("{{dataset: image_folder, path: {}, validation: {{path: {}}}}}", folder / "train", validation));
  };
  CHECK(is_one_with(images(folder / "train/"), "the validation split repeats training samples"));
  CHECK(images(folder / "val").empty());
}

TEST_CASE("lists of files and patterns that have a file in common are warned of") {
  const TempFolder folder;
  for (unsigned shard = 0; shard < 4; ++shard) {
    write_file(folder / format("c-{}.csv", shard), table(shard + 5));
    write_file(folder / format("w-{}.tar", shard), tar_member("a.png", png(3, 4, 2, random_bytes(36, shard))) +
                                                       tar_member("a.cls", std::to_string(shard % 2)) + tar_end());
  }
  const auto with = [&](const std::string& kind, const std::string& training, const std::string& validation) {
    return repeated(format("{{dataset: {}, path: {}, validation: {{path: {}}}}}", kind, training, validation));
  };
  const auto list = [&](int first, int last) {
    return format("[{0}/c-{1}.csv, {0}/c-{2}.csv]", folder.text(), first, last);
  };
  CHECK(is_one_with(with("csv", list(0, 2), list(2, 3)), "c-2.csv"));
  CHECK(with("csv", list(0, 1), list(2, 3)).empty());
  const auto pattern = [&](const std::string& numbers) { return format("'{}/w-{{{}}}.tar'", folder.text(), numbers); };
  CHECK(is_one_with(with("webdataset", pattern("0..2"), pattern("2..3")), "w-2.tar"));
  CHECK(with("webdataset", pattern("0..1"), pattern("2..3")).empty());
}

TEST_CASE("synthetic samples and folders that hold both splits are not warned of") {
  CHECK(repeated("{dataset: synthetic, samples: 9, shape: [4], classes: 3, validation: {samples: 9}}").empty());
  const TempFolder folder;
  for (const char* split : {"train", "test"}) {
    const unsigned seed = split[1] == 'r' ? 1 : 2;
    write_file(folder / format("x_{}.npy", split), npy("|u1", "(8, 5)", random_bytes(8 * 5, seed)));
    write_file(folder / format("y_{}.npy", split), npy("|u1", "(8,)", std::string("\0\1\0\1\0\1\0\1", 8)));
  }
  CHECK(repeated(format("{{dataset: npy, path: {0}, validation: {{path: {0}}}}}", folder.text())).empty());
}

TEST_CASE("with several inputs, only samples whose files are all training files are warned of") {
  const TempFolder folder;
  for (const char* name : {"a", "b", "context"}) {
    write_file(folder / format("{}.npy", name),
               npy("|u1", "(8, 5)", random_bytes(8 * 5, static_cast<unsigned>(*name))));
  }
  write_file(folder / "y.npy", npy("|u1", "(8,)", std::string("\0\1\0\1\0\1\0\1", 8)));
  DataUse use;
  use.inputs = {{"image"}, {"context"}};
  const auto with = [&](const std::string& inputs) {
    return repeated(
        format("{{dataset: npy, x: {{image: {0}/a.npy, context: {0}/context.npy}}, y: {0}/y.npy, validation: "
               "{{x: {1}, y: {0}/y.npy}}}}",
               folder.text(), inputs),
        use);
  };
  const std::string path = folder.text();
  CHECK(with(format("{{image: {0}/b.npy, context: {0}/context.npy}}", path)).empty());
  CHECK(is_one_with(with(format("{{context: {0}/context.npy, image: {0}/a.npy}}", path)), "repeats training samples"));
}

}  // namespace trainctl::test::repeated_samples_test
