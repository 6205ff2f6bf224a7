// Tests runs in which a bit of one rank's memory flips: the rank is named, and repaired if there is a majority.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::corruption_test {
namespace {

// 12 steps with Adam, whose state is copied, too.
std::string write_config(const Folder& folder) {
  return folder.write("config.yaml", uneven_data + mlp_model +
                                         "strategy: {reproducible: {shards: 4}, verify_every: 4 steps}\n" +
                                         train_section("batch_size: 20, epochs: 2, optimizer: adam"));
}

struct Flipped {
  int code = 0;
  std::string errors;
  std::string directory;
};

// `rank`: the rank whose parameter gets another bit after `step` steps; -1: none.
Flipped run_with_flip(const Folder& folder, const std::string& name, int ranks, int rank, int step,
                      const std::vector<std::string>& settings) {
  const std::string directory = folder / name;
  std::vector<std::string> words{"run",     write_config(folder), "--ranks", std::to_string(ranks), "--run-dir",
                                 directory, "--progress",         "none"};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  if (rank >= 0) words.insert(words.end(), {"--set", format("faults=[corrupt: {{rank: {}, step: {}}}]", rank, step)});
  Command run(folder, words);
  const int code = run.wait();
  return {code, run.errors(), directory};
}

std::string hash_of(const std::string& directory) { return events(directory, "end").back().at("weights_sha256"); }

TEST_CASE("a replica with a flipped bit receives the values of another one and ends with the undisturbed weights") {
  const Folder folder;
  const Flipped undisturbed = run_with_flip(folder, "undisturbed", 3, -1, 0, {});
  REQUIRE(undisturbed.code == 0);
  CHECK(events(undisturbed.directory, "corruption").empty());
  for (const int rank : {0, 1, 2}) {
    for (const char* shard : {"none", "optimizer"}) {
      CAPTURE(rank, shard);
      const Flipped run = run_with_flip(folder, format("flip-{}-{}", rank, shard), 3, rank, 8,
                                        {"strategy.on_corruption=repair", std::string("strategy.shard=") + shard});
      INFO(tail(run.errors));
      REQUIRE(run.code == 0);
      const std::vector<Json> found = events(run.directory, "corruption");
      REQUIRE(found.size() == 1);
      CHECK(found[0].at("step") == 8);
      CHECK(found[0].at("action") == "repair");
      CHECK(found[0].at("ranks") == Json{rank});
      CHECK(found[0].at("hosts").at(0) == events(run.directory, "start")[0].at("hosts").at(0));
      CHECK(contains(run.errors, "Another replica has sent the values again"));
      // A state that replicas share has no second copy, and the flipped one belongs to one rank.
      if (std::string(shard) == "none") CHECK(hash_of(run.directory) == hash_of(undisturbed.directory));
    }
  }
}

TEST_CASE("without repair, or without a majority, a run with a flipped bit ends and names what it knows") {
  const Folder folder;
  const Flipped stopped = run_with_flip(folder, "stopped", 3, 2, 4, {});
  CAPTURE(tail(stopped.errors));
  CHECK(stopped.code == 5);
  const std::string host = events(stopped.directory, "start")[0].at("hosts").at(0);
  CHECK(contains(stopped.errors, format("on rank 2 of {} differs from ranks 0 and 1", host)));
  CHECK(events(stopped.directory, "corruption").at(0).at("action") == "stop");

  const Flipped two = run_with_flip(folder, "two", 2, 1, 4, {"strategy.on_corruption=repair"});
  CAPTURE(tail(two.errors));
  CHECK(two.code == 5);
  CHECK(contains(two.errors, "it is unknown which of them is right"));
}

}  // namespace
}  // namespace trainctl::test::corruption_test
