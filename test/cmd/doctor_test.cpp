// Tests trainctl doctor: its findings on this machine, also with an emulated GPU driver, and its exit codes.
#include <filesystem>

#include "core/base/format.h"
#include "core/base/json.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::doctor_test {
namespace {

const std::string nvml_folder =
    "LD_LIBRARY_PATH=" + std::filesystem::path(TRAINCTL_EMULATED_NVML_LIBRARY).parent_path().string();
const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/quickstart.yaml";

}  // namespace

TEST_CASE("the doctor reports that a run on the CPU would start on this machine") {
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

TEST_CASE("the doctor reports a config that cannot run") {
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

TEST_CASE("the doctor shows its findings also if a rank fails") {
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

TEST_CASE("the driver's libraries are found next to CUDA's, and a GPU that does not report its memory is shown") {
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

}  // namespace trainctl::test::doctor_test
