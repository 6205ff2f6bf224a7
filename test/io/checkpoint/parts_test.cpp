// Tests checkpoints whose files hold parts of tensors, the errors for damaged ones, and checkpoints of format
// version 1.
#include "test/io/checkpoint/parts.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "io/checkpoint/inspection.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::parts_test {
namespace {

// Returns the error text of loading a damaged checkpoint.
std::string loading_error(const std::string& path) {
  ErrorKind kind{};
  const std::string text = failure_of([&] { load_checkpoint(path); }, &kind);
  CHECK(kind == ErrorKind::data);
  CHECK(contains(text, "; --resume auto uses the newest whole checkpoint"));
  return text;
}

}  // namespace

TEST_CASE("a checkpoint whose files hold parts of tensors is loaded bit for bit") {
  const TemporaryFolder run;
  const RandomSnapshot random(5, 20);
  const std::string path = save_in_parts(CheckpointStore(run.path, {}), random.snapshot);
  const LoadedCheckpoint loaded = load_checkpoint(path);
  CHECK(same(loaded.snapshot.weights, random.snapshot.weights));
  CHECK(same(loaded.snapshot.state, random.snapshot.state));

  const Json manifest = Json::parse(read_text(path + "/manifest.json"));
  CHECK(manifest["format_version"] == 3);
  CHECK(manifest["mesh"] == std::vector<int>{2, 1, 1});
  const Json& file = manifest["files"]["weights-00002-of-00002.safetensors"];
  CHECK(file["tensors"]["conv/kernel"]["shape"] == std::vector<int>{3, 3, 2, 5});
  CHECK(file["tensors"]["conv/kernel"]["extent"].dump() == R"({"offsets":[0,0,0,3],"sizes":[3,3,2,2]})");
  CHECK(file["tensors"]["bn/moving_mean"]["extent"].dump() == R"({"offset":2,"count":3})");
  CHECK_FALSE(file["tensors"]["scalar"].contains("extent"));
}

TEST_CASE("errors name missing, overlapping and uncovered parts of tensors") {
  const TemporaryFolder run;
  const RandomSnapshot random(6, 20);
  const auto save = [&](const Change& change = {}) {
    return save_in_parts(CheckpointStore(run.path, {}), random.snapshot, change);
  };
  const auto rows = [](const Shape& shape, std::int64_t from, std::int64_t to) {
    return TensorExtent::box(shape, {from, 0}, {to - from, shape[1]});
  };
  const auto with_rows = [&](std::int64_t from, std::int64_t to) {
    return [=](const NamedTensor& tensor, const TensorExtent& extent) {
      return tensor.name == "dense/kernel" ? rows(tensor.shape, from, to) : extent;
    };
  };
  std::string path = save();
  fs::remove(path + "/weights-00001-of-00002.safetensors");
  CHECK(loading_error(path).find(
            path + "/weights-00001-of-00002.safetensors: the checkpoint is damaged: the file is missing") == 0);
  const std::string manifest = path + "/manifest.json: the checkpoint is damaged: element ";
  path = save(with_rows(2, 45));
  CHECK(loading_error(path).find(manifest +
                                 "20 of tensor 'dense/kernel' is in weights-00001-of-00002.safetensors and in "
                                 "weights-00002-of-00002.safetensors") == 0);
  path = save(with_rows(4, 45));
  CHECK(loading_error(path).find(manifest + "30 of tensor 'dense/kernel' is in none of its files") == 0);
  path = save(with_rows(3, 44));
  CHECK(loading_error(path).find(manifest + "440 of tensor 'dense/kernel' is in none of its files") == 0);

  // The manifest gets wrong values and a right hash of itself.
  path = save();
  REQUIRE_NOTHROW(load_checkpoint(path));
  std::string text = read_text(path + "/manifest.json");
  const auto reseal = [&](const std::string& before, const std::string& after) {
    std::string body = text.substr(0, text.rfind(",\n  \"manifest_sha256\""));
    const std::size_t at = body.find(before);
    REQUIRE(at != std::string::npos);
    body.replace(at, before.size(), after);
    write_text(path + "/manifest.json",
               body + ",\n  \"manifest_sha256\": \"" + sha256(body.data(), body.size()) + "\"\n}\n");
  };
  reseal("\"offset\":2", "\"offset\":3");
  CHECK(contains(loading_error(path), "bn/moving_mean's extent is {\"offset\":3,\"count\":3}"));
  reseal("\"count\":3", "\"count\":4503599627370496");
  CHECK(contains(loading_error(path), "bn/moving_mean's extent is"));
  reseal("\"bytes\": ", "\"bytes\": 1");
  CHECK(contains(loading_error(path), "weights-00001-of-00002.safetensors: the checkpoint is damaged: it has "));
  reseal("00002-of-00002.safetensors",
         "00001-of-00002/../../x");  // a name outside of the folder
  CHECK(contains(loading_error(path), "is in none of its files"));
}

TEST_CASE("inspect lists several files and one table of all their tensors") {
  const TemporaryFolder run;
  const RandomSnapshot random(7, 20);
  const std::string one = save(CheckpointStore(run / "one", {}), random.snapshot);
  const std::string several = save_in_parts(CheckpointStore(run / "several", {}), random.snapshot);
  const Inspection whole = inspect_all(one).at(0), parts = inspect_all(several).at(0);
  CHECK(parts.problem == "");
  const std::string of_whole = describe(whole), of_parts = describe(parts);
  CHECK(contains(of_parts, "\nweights-00001-of-00002.safetensors  "));
  CHECK(contains(of_parts, "\nstate-00002-of-00002.safetensors  "));
  // The same rows in the same order.
  const auto rows = [](const std::string& text) {
    std::istringstream lines(text);
    std::string found;
    for (std::string line; std::getline(lines, line);) found += line.starts_with("  ") ? line + "\n" : "";
    return found;
  };
  CHECK(rows(of_whole) == rows(of_parts));
  CHECK(contains(rows(of_parts), "momentum/dense/kernel"));

  const Json json = to_json(parts);
  CHECK(json["files"].size() == 4);
  CHECK(json["files"][0]["tensors"][1]["name"] == "conv/kernel");
  CHECK(json["files"][0]["tensors"][1]["bytes"] == 3 * 3 * 2 * 3 * 4);
  CHECK(json["files"][0]["tensors"][1]["extent"]["sizes"] == std::vector<int>{3, 3, 2, 3});
  CHECK(json["files"][0]["tensors"][1]["norm"] == to_json(whole)["files"][0]["tensors"][1]["norm"]);

  fs::remove(several + "/manifest.json");
  CHECK(contains(inspect_all(several).at(0).problem, "it has no manifest.json"));
}

TEST_CASE("a checkpoint of format version 1 is read") {
  const TemporaryFolder folder;
  const std::string checkpoint = folder / "checkpoints/step-00000007";
  fs::create_directories(checkpoint);
  // The files are written by hand as the format specifies.
  const auto tensors = [](const std::string& header, const std::vector<float>& values) {
    const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
    std::string text;
    for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(padded.size() >> shift);
    return text + padded + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  const std::vector<float> weights = {0.5f, -1.25f, 3.0f, 1e-3f, 7.0f, -2.0f, 0.125f}, state = {9.0f};
  const std::string weights_text = tensors(
      R"({"__metadata__":{"format":"trainctl"},"a/kernel":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"F32","shape":[],"data_offsets":[24,28]}})",
      weights);
  const std::string state_text = tensors(
      R"({"__metadata__":{"format":"trainctl"},"momentum/b":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", state);
  write_text(checkpoint + "/weights.safetensors", weights_text);
  write_text(checkpoint + "/state.safetensors", state_text);
  const auto xxh = [](const float* values, std::size_t count) { return format("{:016x}", xxh3(values, count * 4)); };
  const std::string all = std::string("a/kernel") + '\0' +
                          std::string(reinterpret_cast<const char*>(weights.data()), 24) + "b" + '\0' +
                          std::string(reinterpret_cast<const char*>(weights.data() + 6), 4);
  std::string body = R"({
  "format": "trainctl checkpoint",
  "format_version": 1,
  "sequence": 4,
  "step": 7,
  "position": {
    "seed": 3,
    "epoch": 1,
    "offset": 40
  },
  "mesh": [],
  "weights_sha256": ")" +
                     sha256(all.data(), all.size()) +
                     R"(",
  "metrics": {
    "loss": 0.25
  },
  "facts": {
    "ranks": "1"
  },
  "best": null,
  "files": {
    "weights.safetensors": {
      "bytes": )" + std::to_string(weights_text.size()) +
                     R"(,
      "sha256": ")" + sha256(weights_text.data(), weights_text.size()) +
                     R"(",
      "tensors": {
        "a/kernel": {
          "shape": [2, 3],
          "xxh3": ")" +
                     xxh(weights.data(), 6) +
                     R"("
        },
        "b": {
          "shape": [],
          "xxh3": ")" +
                     xxh(weights.data() + 6, 1) +
                     R"("
        }
      }
    },
    "state.safetensors": {
      "bytes": )" + std::to_string(state_text.size()) +
                     R"(,
      "sha256": ")" + sha256(state_text.data(), state_text.size()) +
                     R"(",
      "tensors": {
        "momentum/b": {
          "shape": [],
          "xxh3": ")" +
                     xxh(state.data(), 1) +
                     R"("
        }
      }
    }
  })";
  const auto seal = [&](const std::string& text) {
    write_text(checkpoint + "/manifest.json",
               text + ",\n  \"manifest_sha256\": \"" + sha256(text.data(), text.size()) + "\"\n}\n");
  };
  std::string other = body;  // with a hash of other weights
  other.replace(other.find(sha256(all.data(), all.size())), 64, sha256(all.data(), 1));
  seal(other);
  CHECK(contains(failure_of([&] { load_checkpoint(checkpoint); }),
                 "the hash of the weights differs from weights_sha256"));
  seal(body);
  CHECK(load_checkpoint(checkpoint).manifest.weights_sha256 == sha256(all.data(), all.size()));

  const std::optional<LoadedCheckpoint> loaded = load_newest_checkpoint(folder.path);
  REQUIRE(loaded);
  CHECK(loaded->snapshot.step == 7);
  CHECK(loaded->snapshot.position == DataPosition{3, 1, 40});
  CHECK(loaded->snapshot.mesh.empty());
  CHECK(loaded->snapshot.metrics.at("loss") == 0.25);
  REQUIRE(loaded->snapshot.weights.size() == 2);
  CHECK(loaded->snapshot.weights[0].shape == Shape{2, 3});
  CHECK(std::vector<float>(loaded->snapshot.weights[0].view.as<float>(),
                           loaded->snapshot.weights[0].view.as<float>() + 6) ==
        std::vector<float>(weights.begin(), weights.begin() + 6));
  CHECK(loaded->snapshot.weights[1].view.as<float>()[0] == 0.125f);
  CHECK(loaded->snapshot.state[0].name == "momentum/b");
  CHECK(loaded->snapshot.state[0].view.as<float>()[0] == 9.0f);
}

}  // namespace trainctl::test::parts_test
