// Tests trainctl doctor with emulated GPUs, which an emulated NVML describes.
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::doctor_test {
namespace {

const std::string nvml =
    "LD_LIBRARY_PATH=" + std::filesystem::path(TRAINCTL_EMULATED_NVML_LIBRARY).parent_path().string();
const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/quickstart.yaml";

struct Report {
  int code = 0;
  Json json;
};
Report examine(const Folder& folder, const std::string& ranks, const std::vector<std::string>& variables) {
  Command command(folder, {"doctor", "--device", "cuda", "--ranks", ranks, "--json"}, ".", variables);
  const int code = command.wait();
  INFO(command.errors());
  return {code, Json::parse(command.out())};
}

// Returns the errors of a run that must fail because it has no usable GPU.
std::string refusal(const Folder& folder, const std::string& variable) {
  Command run(folder, {"run", digits, "--device", "cuda", "--ranks", "1"}, ".", {variable});
  CHECK(run.wait() == 6);
  return run.errors();
}

TEST_CASE("the doctor finds GPUs that a run would use") {
  const Folder folder;
  const Report one = examine(folder, "1", {nvml});
  CAPTURE(one.json["problems"].dump());
  CHECK(one.code == 0);
  const Json& rank = one.json["ranks"][0];
  REQUIRE(rank["gpus"].size() == 1);
  CHECK(rank["gpus"][0]["compute_capability"] == "9.0");
  CHECK(rank["gpus"][0]["visible"] == true);
  CHECK(rank["gpu"] == rank["gpus"][0]["uuid"]);

  Command two(folder, {"doctor", "--device", "cuda", "--ranks", "2"}, ".", {nvml, "TRAINCTL_EMULATED_GPUS=3"});
  CHECK(two.wait() == 0);
  CHECK(contains(two.out(), "NVLink"));
  CHECK(contains(two.out(), "a run would start"));
}

TEST_CASE("the doctor tries kernels on the GPU") {
  const Folder folder;
  const Report report = examine(folder, "1", {nvml, "TRAINCTL_EMULATED_GPU_BYTES=4096"});
  CHECK(report.code == 1);
  REQUIRE(report.json["problems"].size() == 1);
  CAPTURE(report.json["problems"].dump());
  CHECK(contains(report.json["problems"][0]["message"], "GPU memory"));
}

TEST_CASE("a GPU that is older than the kernels is refused") {
  const Folder folder;
  const std::string old = "TRAINCTL_EMULATED_CAPABILITY=7.5";
  const Report report = examine(folder, "2", {nvml, "TRAINCTL_EMULATED_GPUS=2", old});
  CHECK(report.code == 1);
  REQUIRE(report.json["problems"].size() == 2);  // one of each rank
  const std::string words = "Emulated GPU has compute capability 7.5; this trainctl needs 8.0 or later";
  CHECK(report.json["problems"][0]["message"] == words);
  CHECK(contains(refusal(folder, old), words));
}

TEST_CASE("CUDA's reason for having no GPU is reported, with a remedy") {
  const Folder folder;
  for (const auto& [error, name, remedy] : {std::tuple{35, "cudaErrorInsufficientDriver", "install a newer driver"},
                                            {100, "cudaErrorNoDevice", "CUDA_VISIBLE_DEVICES"},
                                            {802, "cudaErrorSystemNotReady", "nvidia-fabricmanager"},
                                            {803, "cudaErrorSystemDriverMismatch", "restart the machine"},
                                            {804, "cudaErrorCompatNotSupportedOnDevice", "LD_LIBRARY_PATH"}}) {
    const Report report = examine(folder, "1", {nvml, format("TRAINCTL_EMULATED_CUDA_ERROR={}", error)});
    CHECK(report.code == 1);
    REQUIRE(report.json["problems"].size() == 1);
    const Json& problem = report.json["problems"][0];
    CAPTURE(problem.dump());
    CHECK(contains(problem["message"], name));
    CHECK(contains(problem["remedy"], remedy));
  }
  const std::string said = refusal(folder, "TRAINCTL_EMULATED_CUDA_ERROR=802");
  CHECK(contains(said, "cudaErrorSystemNotReady"));
  CHECK(contains(said, "nvidia-fabricmanager"));
}

}  // namespace
}  // namespace trainctl::test::doctor_test
