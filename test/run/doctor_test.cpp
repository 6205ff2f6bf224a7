// trainctl doctor: what it finds on this machine, with emulated GPUs in the driver's place too, and its exit codes.
#include <filesystem>

#include "cmd/doctor_problems.h"
#include "core/base/json.h"
#include "test/catch.h"
#include "test/run/command.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

const std::string nvml_folder =
    "LD_LIBRARY_PATH=" + std::filesystem::path(TRAINCTL_EMULATED_NVML_LIBRARY).parent_path().string();
const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/quickstart.yaml";

// Facts of a rank on a host where all is well.
Json well(int rank, const std::string& host, const std::string& gpu) {
  return {{"rank", rank},
          {"host", host},
          {"version", "1.0"},
          {"mpi", {{"built", "Open MPI 4.1.4"}, {"found", "Open MPI v4.1.6"}, {"mpirun", "/usr/bin/mpirun"}}},
          {"shared_memory_free_bytes", 1 << 30},
          {"locked_memory_limit_bytes", nullptr},
          {"run_directory", {{"path", "/data"}, {"writable", true}, {"shared", true}, {"free_bytes", 1e12}}},
          {"driver", {{"version", "580"}, {"why", ""}}},
          {"cuda", {{"module", true}, {"why", ""}, {"libraries", Json::array()}, {"why_no_nccl", ""}}},
          {"gpus", {{{"name", "H100"}, {"uuid", gpu}, {"throttled", Json::array()}}}},
          {"gpu", gpu}};
}

std::vector<Problem> problems(const std::vector<Json>& facts, const std::string& device = "auto") {
  return find_problems(facts, device, "auto");
}

}  // namespace

TEST_CASE("the doctor on this machine: a run on the CPU would start") {
  const Folder folder;
  const Finished alone = test::trainctl(folder, {"doctor", "--device", "cpu", "--ranks", "1"});
  CHECK(alone.code == 0);
  CHECK(contains(alone.out, "Open MPI"));
  CHECK(contains(alone.out, "oneDNN"));
  CHECK(contains(alone.out, "a run would start"));

  const Finished two = test::trainctl(folder, {"doctor", digits, "--device", "cpu", "--ranks", "2", "--json"});
  CHECK(two.code == 0);
  const Json report = Json::parse(two.out);
  CHECK(report["ok"] == true);
  REQUIRE(report["ranks"].size() == 2);
  CHECK(report["ranks"][1]["rank"] == 1);
  CHECK(report["ranks"][1]["run_directory"]["shared"] == true);
  CHECK(report["problems"].empty());
}

TEST_CASE("the doctor says no to a config that cannot run") {
  const Folder folder;
  const Finished typo =
      test::trainctl(folder, {"doctor", digits, "--device", "cpu", "--ranks", "1", "--set", "train.epoks=2"});
  CHECK(typo.code == 1);
  CHECK(contains(typo.out, "epoks"));
  CHECK(contains(typo.out, "a run would not start"));
  const Finished data = test::trainctl(
      folder, {"doctor", digits, "--device", "cpu", "--ranks", "1", "--set", "data.path=nowhere.npz", "--json"});
  CHECK(data.code == 1);
  CHECK(contains(Json::parse(data.out)["problems"][0]["message"], "nowhere.npz"));
}

TEST_CASE("the doctor shows the driver's GPUs, and why CUDA cannot use them") {
  const Folder folder;
  Command command(folder, {"doctor", "--device", "cuda", "--ranks", "1", "--json"}, ".",
                  {nvml_folder, "TRAINCTL_EMULATED_GPUS=3", "CUDA_VISIBLE_DEVICES="});
  CHECK(command.wait() == 1);
  const Json report = Json::parse(command.out());
  const Json& rank = report["ranks"][0];
  CHECK(rank["driver"]["version"] == "580.65.06");
  REQUIRE(rank["gpus"].size() == 3);
  CHECK(rank["gpus"][2]["nvlinks"] == 4);
  CHECK(rank["links"] == Json{{"-", "NVLink", "P2P"}, {"NVLink", "-", "P2P"}, {"P2P", "P2P", "-"}});
  CHECK(rank["gpu"].is_null());
  CHECK(report["ok"] == false);
  CHECK(report["problems"].size() == 1);
}

TEST_CASE("problems of several hosts are found from their facts") {
  CHECK(problems({well(0, "a", "G0"), well(1, "a", "G1"), well(2, "b", "G2")}).empty());

  const auto shared = problems({well(0, "a", "G0"), well(1, "a", "G0")});
  REQUIRE(shared.size() == 1);
  CHECK_FALSE(shared[0].stops_a_run);
  CHECK(contains(shared[0].message, "as rank 0 does"));
  CHECK(find_problems({well(0, "a", "G0"), well(1, "a", "G0")}, "cuda", "nccl")[0].stops_a_run);

  Json without = well(1, "b", "");
  without["gpu"] = nullptr;
  without["gpus"] = Json::array();
  without["driver"]["why"] = "no NVIDIA driver";
  const auto some = problems({well(0, "a", "G0"), without});
  REQUIRE(some.size() == 1);
  CHECK(some[0].stops_a_run);
  CHECK(contains(some[0].message, "1 of 2 ranks have a GPU"));
  CHECK(problems({without, without}).empty());  // auto: all compute on the CPU
  CHECK(problems({without}, "cuda")[0].stops_a_run);

  Json other = well(1, "b", "G1");
  other["version"] = "1.1";
  other["mpi"]["found"] = "Open MPI v5.0.1";
  other["run_directory"] = {{"path", "/data"}, {"writable", false}, {"shared", false}, {"free_bytes", 1e12}};
  std::vector<std::string> said;
  for (const Problem& problem : problems({well(0, "a", "G0"), other})) said.push_back(problem.message);
  CHECK(said == std::vector<std::string>{"trainctl is built with Open MPI 4.1.4, but Open MPI v5.0.1 is found",
                                         "/data cannot be written", "/data is not the folder that rank 0 has",
                                         "trainctl 1.1, but 1.0 on a"});
}
