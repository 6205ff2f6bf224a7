// Seeded fuzz tests: a checkpoint's manifest and tensors with bytes changed, cut out, repeated and cut off. A file with
// any change is refused with a data error. TRAINCTL_MUTATIONS sets the number of mutations of each file.
#include "test/support/mutation.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/store.h"
#include "test/catch.h"
#include "test/io/checkpoint/parts.h"

namespace trainctl::test::mutation_test {
namespace {

// Whether a file is accepted. Any other exception than a data error fails the test.
template <class Read>
bool is_read(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) FAIL_CHECK("another kind: " << error.what());
  } catch (const std::exception& error) {
    FAIL_CHECK("an exception other than Error: " << error.what());
  }
  return false;
}

}  // namespace

TEST_CASE("mutated checkpoints are refused: manifest and tensors, in one file and in parts") {
  const TemporaryFolder folder;
  const RandomSnapshot random_snapshot(5);
  const bool in_parts = GENERATE(false, true);
  const std::string checkpoint = in_parts ? save_in_parts(CheckpointStore(folder.path, {}), random_snapshot.snapshot)
                                          : save(CheckpointStore(folder.path, {}), random_snapshot.snapshot);
  REQUIRE(is_read([&] { load_checkpoint(checkpoint); }));
  const int files = in_parts ? 2 : 1;
  for (const std::string& name : {std::string(manifest_file), file_name({SnapshotContent::weights, files, files}),
                                  file_name({SnapshotContent::state, 1, files})}) {
    const std::string path = checkpoint + "/" + name, whole = read_text(path);
    REQUIRE(whole.size() > 100);
    std::mt19937 random(7);
    int read = 0;
    for (int i = 0; i < mutations(); ++i) {
      const std::string bytes = mutated(whole, random);
      write_text(path, bytes);
      INFO(name << ", mutation " << i);
      read += bytes != whole && is_read([&] { load_checkpoint(checkpoint); });
      if (name != manifest_file) {
        is_read([&] {
          const SafetensorsFile file(path);
          std::vector<char> values(static_cast<std::size_t>(file.data_bytes()));
          file.read_all(values.data());
        });
      }
    }
    // The hashes in the manifest detect every change of a file, and the manifest's own hash every change of itself.
    CHECK(read == 0);
    write_text(path, whole);
  }
}

}  // namespace trainctl::test::mutation_test
