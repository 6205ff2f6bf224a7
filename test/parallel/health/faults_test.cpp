// Tests the faults of a config: how they are read, that each is marked once, and what they disturb.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/base/format.h"
#include "core/base/full_disk.h"
#include "io/checkpoint/atomic_file.h"
#include "io/yaml/yaml.h"
#include "parallel/health/faults/fault.h"
#include "parallel/health/faults/spoiled_batches.h"
#include "parallel/launch/host/process.h"
#include "test/catch.h"

namespace trainctl::test::faults_test {
namespace {

namespace fs = std::filesystem;

struct Config {
  FaultList faults;

  static Keys<Config> keys() {
    return Keys<Config>("config", "A config with faults.").key("faults", &Config::faults, "The faults.");
  }
};

FaultList faults_of(const std::string& text, Reader& reader) {
  Config config;
  section_of<Config>().read(parse_yaml(text, "c.yaml", ".", reader), reader, &config);
  return config.faults;
}

FaultList faults_of(const std::string& text) {
  Reader reader;
  FaultList faults = faults_of(text, reader);
  reader.throw_if_failed();
  return faults;
}

const std::string every_fault = R"(
faults:
  - kill: {rank: 1, step: 12}
  - hang: {rank: 1, step: 12, for: 30 s}
  - hang: {rank: 0, step: 1}
  - slow: {rank: 2, step: 1, steps: 4, delay: 20 ms}
  - nan: {rank: 0, step: 5}
  - corrupt: {rank: 0, step: 5}
  - torn_checkpoint: {step: 10}
  - full_disk: {step: 3, for: 2 s}
  - full_disk: {step: 3, saves: 2}
  - cut_link: {host: n2, step: 7, for: 5 s, interface: eth0}
  - lose_host: {host: n3, step: 8}
)";

// A scene that acts on nothing and notes the calls.
struct Scene final : FaultScene {
  int own_rank = 0;
  std::vector<std::string> names = {"n1", "n1", "n2", "n2"};
  std::string directory;
  std::vector<std::string> calls = {};

  int rank() const override { return own_rank; }
  const std::vector<std::string>& hosts() const override { return names; }
  pid_t launcher_process = 0;
  pid_t launcher() const override { return launcher_process; }
  const std::string& run_directory() const override { return directory; }
  void delay_steps(std::int64_t steps, double seconds) override {
    calls.push_back(format("delay {} {:g}", steps, seconds));
  }
  void spoil_next_batch(int of) override { calls.push_back(format("spoil {}", of)); }
  void flip_bit() override { calls.emplace_back("flip"); }
  void wait_for_checkpoints() override { calls.emplace_back("wait"); }
};

TEST_CASE("faults are read and written again without a difference") {
  const FaultList faults = faults_of(every_fault);
  REQUIRE(faults.size() == 11);
  CHECK(faults[0].as<FaultOptions>().step == 12);
  CHECK(faults[6].as<FaultOptions>().acts_after() == 11);
  Config config{faults};
  const std::string written = to_yaml(section_of<Config>().write(&config));
  Config again{faults_of(written)};
  CHECK(to_yaml(section_of<Config>().write(&again)) == written);
}

TEST_CASE("all wrong faults are named at once, with their lines") {
  Reader reader;
  faults_of(R"(
faults:
  - kill: {rank: -1, step: 12}
  - hang: {rank: 1, step: 0}
  - slow: {rank: 1, step: 1}
  - explode: {rank: 1}
  - cut_link: {host: n2, step: 7, interface: "a b"}
  - full_disk: {step: 3, saves: 0}
)",
            reader);
  std::string errors;
  for (const Diagnostic& diagnostic : reader.diagnostics()) errors += to_string(diagnostic) + "\n";
  INFO(errors);
  CHECK(reader.diagnostics().size() == 6);
  for (const char* part : {"c.yaml:3:", "rank must be at least 0", "c.yaml:4:", "step must be at least 1", "c.yaml:5:",
                           "steps", "c.yaml:6:", "explode", "c.yaml:7:", "'a b' cannot name a network interface",
                           "c.yaml:8:", "saves must be at least 1"}) {
    CHECK(errors.find(part) != std::string::npos);
  }
}

TEST_CASE("the warning names every fault of a run that is still to come") {
  CHECK(rehearsal_warning({}, "", 0).empty());
  const std::string warning = rehearsal_warning(faults_of(every_fault), "nowhere", 0);
  CHECK(
      warning.starts_with("this run rehearses faults, each of them once: rank 1 is killed after 12 steps; rank 1 "
                          "hangs for 30 s after 12 steps; rank 0 hangs after 1 step; "));
  CHECK(warning.find("host n3 is lost after 8 steps") != std::string::npos);

  const fs::path folder = fs::temp_directory_path() / format("trainctl-announced-{}", getpid());
  fs::create_directory(folder);
  const FaultList faults = faults_of(
      "faults: [kill: {rank: 0, step: 20}, nan: {rank: 1, step: 30}, kill: {rank: 1, step: 40}, nan: {rank: 0, step: "
      "35}]");
  REQUIRE(mark_fault(folder, 3, faults[2]));
  CHECK(rehearsal_warning(faults, folder, 25) ==
        "this run rehearses faults, each of them once: the next loss of rank 1 is NaN after 30 steps; the next loss of "
        "rank 0 is NaN after 35 steps");
  CHECK(rehearsal_warning(faults, folder, 35).empty());
  fs::remove_all(folder);
}

TEST_CASE("a fault that a run cannot have is refused") {
  const Scene scene;
  const auto why = [&](const std::string& fault) {
    return faults_of("faults: [" + fault + "]")[0].as<FaultOptions>().why_impossible(scene);
  };
  CHECK(why("kill: {rank: 3, step: 1}").empty());
  CHECK(why("kill: {rank: 4, step: 1}") ==
        "there is no rank 4 among 4 ranks: name one of 0 to 3, or train on more ranks");
  CHECK(why("lose_host: {host: n2, step: 1}").empty());
  CHECK(why("lose_host: {host: n5, step: 1}") == "no rank runs on a host 'n5': name n2");
  CHECK(why("lose_host: {host: n1, step: 1}").starts_with("rank 0 and the command itself run on n1"));
}

TEST_CASE("every fault that names a rank is refused if the run has no such rank") {
  int named = 0;
  for (const Section& section : fault_choices().choices) {
    if (section.find("rank") == nullptr) continue;
    const std::string steps = section.find("steps") == nullptr ? "" : ", steps: 2";
    const FaultList faults =
        faults_of(format("faults: [{}: {{rank: 7, step: 3{}}}, full_disk: {{step: 3}}]", section.name, steps));
    CAPTURE(section.name);
    const auto why = [&](std::size_t i, int ranks) { return why_no_rank(faults[i].as<FaultOptions>(), ranks); };
    CHECK(why(0, 8).empty());
    CHECK(why(0, 7) == "there is no rank 7 among 7 ranks: name one of 0 to 6, or train on more ranks");
    CHECK(why(0, 1) == "there is no rank 7 among 1 rank: name rank 0, or train on more ranks");
    CHECK(why(1, 1).empty());
    ++named;
  }
  CHECK(named == 5);
}

TEST_CASE("a host is lost only if its launcher's daemon has started the ranks") {
  Scene scene;
  scene.own_rank = 2;
  const FaultList faults = faults_of("faults: [lose_host: {host: n2, step: 1}]");
  const auto why = [&] { return faults[0].as<FaultOptions>().why_impossible(scene); };
  CHECK(why().empty());  // no launcher
  scene.launcher_process = getpid();
  CHECK(why().find(format("(process {}), which is no daemon of mpirun or srun", getpid())) != std::string::npos);
  const fs::path folder = fs::temp_directory_path() / format("trainctl-daemon-{}", getpid());
  fs::create_directory(folder);
  fs::create_symlink("/bin/sleep", folder / "orted");
  const ChildProcess daemon = start_process({folder / "orted", "60"}, {});
  scene.launcher_process = daemon.pid;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!why().empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();  // until exec
  CHECK(why().empty());
  scene.own_rank = 3;  // another rank acts for the host
  scene.launcher_process = getpid();
  CHECK(why().empty());
  kill(daemon.pid, SIGKILL);
  waitpid(daemon.pid, nullptr, 0);
  fs::remove_all(folder);
}

TEST_CASE("a fault after the last step of a run is refused") {
  const FaultList faults = faults_of("faults: [kill: {rank: 0, step: 20}, torn_checkpoint: {step: 20}]");
  const auto why = [&](std::size_t i, std::int64_t steps) { return why_too_late(faults[i].as<FaultOptions>(), steps); };
  CHECK(why(0, 20).empty());
  CHECK(why(0, 0).empty());  // the end is unknown
  CHECK(why(0, 19) ==
        "the fault would happen after 20 steps, and the run ends after 19: choose an earlier step, or train longer");
  CHECK(why(1, 21).empty());
  CHECK(why(1, 20).starts_with("the fault would happen after 21 steps"));
}

TEST_CASE("a disk that is full until a save has failed") {
  const fs::path file = fs::temp_directory_path() / format("trainctl-full-{}", getpid());
  faults_of("faults: [full_disk: {step: 1, saves: 2}]")[0].as<FaultOptions>().act(*std::make_unique<Scene>());
  const auto write = [&](FileUse use) { OutputFile(file, "file", 4, use).write("text", 4); };
  for (int i = 0; i < 2; ++i) {
    CHECK(full_disk_error() == ENOSPC);
    for (int other = 0; other < 3; ++other) {  // a file that is no part of a checkpoint does not count
      CHECK_THROWS_WITH(write_file(file, "text"), Catch::Contains("No space left on device"));
      write(FileUse::shared_memory);
    }
    CHECK_THROWS_WITH(write(FileUse::checkpoint), Catch::Contains("No space left on device"));
  }
  CHECK(full_disk_error() == 0);
  write(FileUse::checkpoint);
  write_file(file, "text");
  fs::remove(file);
}

TEST_CASE("a fault disturbs its own rank only") {
  const FaultList faults = faults_of(every_fault);
  for (const int rank : {0, 2}) {
    Scene scene;
    scene.own_rank = rank;
    for (const int index : {3, 4, 5}) faults[static_cast<std::size_t>(index)].as<FaultOptions>().act(scene);
    using Calls = std::vector<std::string>;
    CHECK(scene.calls == (rank == 0 ? Calls{"spoil 0", "flip"} : Calls{"delay 4 0.02", "spoil 0"}));
  }
}

TEST_CASE("a fault is marked once in the life of a run") {
  const fs::path folder = fs::temp_directory_path() / format("trainctl-faults-{}", getpid());
  fs::create_directories(folder);
  const FaultList faults = faults_of(every_fault);
  CHECK_FALSE(is_marked(folder, 1, faults[0]));
  CHECK(mark_fault(folder, 1, faults[0]));
  CHECK(is_marked(folder, 1, faults[0]));
  CHECK_FALSE(mark_fault(folder, 1, faults[0]));
  CHECK(mark_fault(folder, 2, faults[0]));  // another fault of the same kind
  fs::remove_all(folder);
  CHECK_FALSE(mark_fault(folder, 1, faults[0]));  // a mark that cannot be written
}

TEST_CASE("on a full disk no file of a run can be written, for a time") {
  const fs::path file = fs::temp_directory_path() / format("trainctl-full-{}", getpid());
  write_file(file, "before");
  rehearse_full_disk(std::chrono::milliseconds(300));
  CHECK(full_disk_error() == ENOSPC);
  CHECK_THROWS_WITH(write_file(file, "after"), Catch::Contains("No space left on device"));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  CHECK(full_disk_error() == 0);
  write_file(file, "after");
  CHECK(fs::file_size(file) == 5);
  fs::remove(file);
}

// A source of one batch.
struct OneBatch final : BatchSource {
  Batch batch;

  const Batch& next() override { return batch; }
  DataPosition position() const override { return {}; }
  std::int64_t samples_per_epoch() const override { return 3; }
  std::int64_t batch_size() const override { return 3; }
  std::int64_t last_batch_size() const override { return 3; }
  std::int64_t batch_bytes() const override { return 0; }
};

TEST_CASE("one batch is spoiled, and the data themselves are not") {
  std::vector<float> weights = {1, 2, 3};
  OneBatch source;
  source.batch.weights = {weights.data(), DType::float32, 3};
  SpoiledBatches batches(source);
  CHECK(batches.next().weights.as<float>()[2] == 3);
  batches.spoil_next();
  const Batch& spoiled = batches.next();
  REQUIRE(spoiled.weights.count == 3);
  for (int i = 0; i < 3; ++i) CHECK(std::isnan(spoiled.weights.as<float>()[i]));
  CHECK(batches.next().weights.as<float>()[2] == 3);
  CHECK(weights[0] == 1);
}

}  // namespace
}  // namespace trainctl::test::faults_test
