// trainctl doctor: what it finds on this machine, with emulated GPUs in the driver's place too, and its exit codes.
#include <filesystem>

#include "core/base/format.h"
#include "core/base/json.h"
#include "parallel/health/doctor/gpus.h"
#include "parallel/health/doctor/problems.h"
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

TEST_CASE("the doctor shows what it found also where a rank fails on its way") {
  const Folder folder;
  std::vector<std::string> arguments = {"doctor",  digits, "--device", "cpu",
                                        "--ranks", "2",    "--set",    "data.path=nowhere.npz"};
  const Finished text = test::trainctl(folder, arguments);
  CHECK(text.code == 1);
  CHECK(contains(text.out, "2 ranks"));
  CHECK(contains(text.out, "run directory"));
  CHECK(contains(text.out, "nowhere.npz"));
  CHECK(count(text.out, "a run would not start") == 1);

  arguments.push_back("--json");
  const Finished json = test::trainctl(folder, arguments);
  CHECK(json.code == 1);
  const Json report = Json::parse(json.out);  // one document
  CHECK(report["ok"] == false);
  CHECK(report["ranks"].size() == 2);
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["error"] == true);
  CHECK(contains(report["problems"][0]["message"], "nowhere.npz"));
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
  REQUIRE(report["problems"].size() == 1);
  const char* why = TRAINCTL_CUDA_MODULE ? "none of the 3 GPUs: " : "this build of trainctl has no CUDA module";
  CHECK(contains(report["problems"][0]["message"], why));
}

TEST_CASE("the driver's libraries are found beside CUDA's, and a GPU that does not tell its memory is shown") {
  const Folder folder;
  const std::string library = folder.write("cuda/lib64/libnvidia-ml.so.1", "");
  std::filesystem::remove(library);
  std::filesystem::create_symlink(TRAINCTL_EMULATED_NVML_LIBRARY, library);
  const std::string gpus = folder.write("gpus", "5 -1 -1 40 71000 345 1980 24\n");
  Command command(folder, {"doctor", "--ranks", "1", "--json"}, ".",
                  {"CUDA_HOME=" + folder / "cuda", "TRAINCTL_EMULATED_NVML=" + gpus, "CUDA_VISIBLE_DEVICES="});
  command.wait();
  const Json report = Json::parse(command.out());
  CHECK(report["ranks"][0]["driver"]["version"] == "580.65.06");
  const Json& gpu = report["ranks"][0]["gpus"][0];
  CHECK(gpu["memory_bytes"].is_null());
  CHECK(gpu["memory_used_bytes"].is_null());
  CHECK(gpu["throttled"] == Json{"power cap", "temperature"});
  int throttled = 0;
  for (const Json& problem : report["problems"]) {
    throttled += contains(problem["message"], "throttled now: temperature") ? 1 : 0;
    CHECK_FALSE(contains(problem["message"], "power cap"));
  }
  CHECK(throttled == 1);
}

TEST_CASE("GPUs of ranks that see one each make one table") {
  std::vector<Json> facts;
  for (int rank = 0; rank < 3; ++rank) {
    Json f = well(rank, "a", format("G{}", rank));
    f["gpus"] = Json::array();
    for (int other = 0; other < 4; ++other) {
      f["gpus"].push_back({{"name", "H100"}, {"uuid", format("G{}", other)}, {"visible", other == rank}});
    }
    f["links"] = Json(4, Json{"NVLink", "NVLink", "NVLink", "NVLink"});
    facts.push_back(f);
  }
  facts.push_back(well(3, "a", "G2"));  // it sees this one alone, from its container
  facts.push_back(well(4, "b", "G9"));
  const std::vector<HostGpu> gpus = gpus_of_host(facts, "a");
  REQUIRE(gpus.size() == 4);
  CHECK(gpus[0].ranks == "0");
  CHECK(gpus[2].ranks == "2, 3");
  CHECK(gpus[1].visible);
  CHECK_FALSE(gpus[3].visible);
  CHECK(gpus[1].links == std::vector<std::string>{"NVLink", "-", "NVLink", "NVLink"});
  CHECK(gpus_of_host(facts, "b").size() == 1);
  // Of GPUs that no rank sees together nothing is known.
  CHECK(gpus_of_host({well(0, "a", "G0"), well(1, "a", "G1")}, "a")[0].links == std::vector<std::string>{"-", "?"});
}

TEST_CASE("a GPU without kernels stops a run, a missing NVRTC does not") {
  Json old = well(0, "a", "G0");
  old["gpus"][0]["why_not"] = "Tesla T4 has compute capability 7.5; this trainctl needs 8.0 or later";
  const auto too_old = problems({old});
  REQUIRE(too_old.size() == 1);
  CHECK(too_old[0].stops_a_run);
  CHECK(contains(too_old[0].message, "7.5"));
  CHECK(problems({old}, "cpu").empty());

  Json without = well(0, "a", "G0");
  without["cuda"]["libraries"].push_back({{"name", "NVRTC"}, {"built", ""}, {"found", ""}});
  const auto no_compiler = problems({without});
  REQUIRE(no_compiler.size() == 1);
  CHECK_FALSE(no_compiler[0].stops_a_run);
  CHECK(contains(no_compiler[0].message, "NVRTC"));
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
