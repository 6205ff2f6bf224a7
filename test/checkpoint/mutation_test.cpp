// A seeded campaign: a checkpoint's manifest and tensors with bytes changed, cut out, repeated and cut off. Each loads
// as it was, or is refused by an error of the data. TRAINCTL_MUTATIONS sets how many of each.
#include <cstdlib>

#include "io/checkpoint/load.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/store.h"
#include "test/catch.h"
#include "test/checkpoint/support.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

int mutations() {
  const char* text = std::getenv("TRAINCTL_MUTATIONS");
  return text ? std::atoi(text) : 150;
}

std::string mutated(std::string bytes, std::mt19937& random) {
  for (int i = 0, changes = 1 + static_cast<int>(random() % 4); i < changes && !bytes.empty(); ++i) {
    std::size_t at = random() % bytes.size();
    if (random() % 2) at %= 128;
    const std::size_t length = 1 + random() % std::min<std::size_t>(16, bytes.size() - at);
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes.replace(at, 1, std::string(1, "0123456789-e.\"{}[]:,"[random() % 20]));
    }
  }
  return bytes;
}

// Whether a file is accepted; anything but an error of the data fails the test.
template <class Read>
bool is_read(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) FAIL_CHECK("another kind: " << error.what());
  } catch (const std::exception& error) {
    FAIL_CHECK("no error of ours: " << error.what());
  }
  return false;
}

}  // namespace

TEST_CASE("mutated checkpoints: manifest and tensors") {
  const TemporaryFolder folder;
  const RandomSnapshot random_snapshot(5);
  const std::string checkpoint = CheckpointStore(folder.path, {}).save(random_snapshot.snapshot);
  REQUIRE(is_read([&] { load_checkpoint(checkpoint); }));
  for (const char* name : {manifest_file, weights_file, state_file}) {
    const std::string path = checkpoint + "/" + name, whole = read_text(path);
    REQUIRE(whole.size() > 100);
    std::mt19937 random(7);
    int read = 0;
    for (int i = 0; i < mutations(); ++i) {
      const std::string bytes = mutated(whole, random);
      write_text(path, bytes);
      INFO(name << ", mutation " << i);
      read += bytes != whole && is_read([&] { load_checkpoint(checkpoint); });
      if (name != std::string(manifest_file)) {
        is_read([&] {
          const SafetensorsFile file(path);
          std::vector<char> values(static_cast<std::size_t>(file.data_bytes()));
          file.read_all(values.data());
        });
      }
    }
    // A seal tells every change; in a manifest, which has one of its own, nothing passes either.
    CHECK(read == 0);
    write_text(path, whole);
  }
}
