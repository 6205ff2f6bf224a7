// Tests trainctl doctor with emulated GPUs, which an emulated NVML describes.
#include <chrono>
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

TEST_CASE("the doctor shows the links that NCCL chooses between two GPUs, and names the slow choice") {
  const Folder folder;
  const std::string gpus = "TRAINCTL_EMULATED_GPUS=2", shared = "TRAINCTL_EMULATED_NCCL_TRANSPORT=SHM";
  const Report fast = examine(folder, "2", {nvml, gpus});
  CAPTURE(fast.json.dump());
  CHECK(fast.code == 0);
  CHECK(fast.json["problems"].empty());
  for (int rank = 0; rank < 2; ++rank) {
    const Json& nccl = fast.json["ranks"][static_cast<std::size_t>(rank)]["nccl"];
    CHECK(nccl["why_not_shown"] == "");
    CHECK(contains(nccl["version"], "+cuda"));
    CHECK(nccl["network"] == "Socket");
    CHECK(nccl["devices"] == Json{"eth0"});
    CHECK(nccl["gpudirect_rdma"] == false);
    REQUIRE(nccl["connections"].size() == 1);
    const Json& connection = nccl["connections"][0];
    CHECK(connection["from"] == rank);
    CHECK(connection["to"] == 1 - rank);
    CHECK(connection["via"] == "P2P/CUMEM/read");
    CHECK(connection["link"] == "NVLink");
    CHECK(connection["channels"] == 2);
  }

  const Report slow = examine(folder, "2", {nvml, gpus, shared});
  CAPTURE(slow.json.dump());
  CHECK(slow.code == 0);
  CHECK(slow.json["ok"] == true);
  CHECK(slow.json["ranks"][1]["nccl"]["connections"][0]["link"] == "host memory");
  REQUIRE(slow.json["problems"].size() == 1);
  CHECK(slow.json["problems"][0]["error"] == false);
  CHECK(contains(slow.json["problems"][0]["message"],
                 "ranks 0 and 1 through the host's memory (SHM/direct/direct), although NVLink connects their GPUs"));

  Command text(folder, {"doctor", "--device", "cuda", "--ranks", "2"}, ".", {nvml, gpus, "NCCL_P2P_DISABLE=1"});
  CHECK(text.wait() == 0);
  CAPTURE(text.out());
  CHECK(contains(text.out(), "0-1    host memory         SHM/direct/direct"));
  CHECK(contains(text.out(), "although NVLink connects their GPUs\n  -> unset NCCL_P2P_DISABLE (its value is 1)"));
  CHECK(contains(text.out(), "a run would start"));
}

TEST_CASE("the doctor checks the data that GPUs exchange, and names a link that corrupts it or loses it") {
  const Folder folder;
  const auto examine_gpus = [&](const std::string& fault) {
    Command command(folder,
                    {"doctor", digits, "--device", "cuda", "--ranks", "2", "--gpus", "--json", "--set",
                     format("cluster.timeout={} s", 5 * sanitizer_slowdown)},
                    ".", {nvml, "TRAINCTL_EMULATED_GPUS=2", fault});
    const int code = command.wait();
    INFO(command.errors());
    return Report{code, Json::parse(command.out())};
  };
  const Report sound = examine_gpus("NO_FAULT=1");
  CAPTURE(sound.json["problems"].dump());
  CHECK(sound.code == 0);
  const Json& exchanges = sound.json["ranks"][0]["exchanges"];
  REQUIRE(exchanges.size() == 4);  // two sizes in two directions
  for (const Json& one : exchanges) CHECK(one["wrong_bits"] == 0);

  const Report corrupt = examine_gpus("TRAINCTL_EMULATED_NCCL_FLIPS=1:0");
  CAPTURE(corrupt.json["problems"].dump());
  CHECK(corrupt.code == 1);
  REQUIRE(corrupt.json["problems"].size() == 1);
  CHECK(contains(corrupt.json["problems"][0]["message"],
                 "the GPU of rank 1 sends to that of rank 0 is corrupted: 2 of 134217632 bits are wrong"));

  const Report silent = examine_gpus("TRAINCTL_EMULATED_NCCL_LOSES=0:1");
  CAPTURE(silent.json["problems"].dump());
  CHECK(silent.code == 1);
  const std::string problems = silent.json["problems"].dump();  // the message of the first call that waits too long
  const bool names_both = contains(problems, "the GPUs of ranks 0 and 1 do not exchange data");
  CHECK((names_both || contains(problems, "all ranks answer, but no data arrives from their GPUs")));
}

TEST_CASE("the doctor says why NCCL's links are not shown, and leaves the user's variables for NCCL's log") {
  const Folder folder;
  const std::string gpus = "TRAINCTL_EMULATED_GPUS=2";
  const Report empty = examine(folder, "2", {nvml, gpus, "TRAINCTL_EMULATED_NCCL_TRANSPORT=none"});
  CHECK(empty.code == 0);
  CHECK(empty.json["ranks"][0]["nccl"] == Json{{"why_not_shown", "NCCL's log names no connection between ranks"}});

  const std::string log = folder / "nccl.log";
  Command own(folder, {"doctor", "--device", "cuda", "--ranks", "2"}, ".",
              {nvml, gpus, "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=" + log});
  CHECK(own.wait() == 0);
  CAPTURE(own.out());
  CHECK(contains(own.out(), "NCCL's choices of links on ranks 0, 1 are not shown: the variable NCCL_DEBUG is set"));
  CHECK(std::filesystem::file_size(log) > 0);

  const Report one = examine(folder, "1", {nvml});
  CHECK_FALSE(one.json["ranks"][0].contains("nccl"));  // one rank does not use NCCL
}

TEST_CASE("the doctor ends within the deadline if NCCL hangs") {
  const Folder folder;
  Command command(folder,
                  {"doctor", digits, "--device", "cuda", "--ranks", "2", "--set", "cluster.timeout=3s", "--json"}, ".",
                  {nvml, "TRAINCTL_EMULATED_GPUS=2", "TRAINCTL_EMULATED_NCCL_HANGS=1"});
  const auto start = std::chrono::steady_clock::now();
  CHECK(command.wait() == 1);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
  CAPTURE(command.out());
  const Json report = Json::parse(command.out());
  CHECK(report["ok"] == false);
  CHECK(report["ranks"].size() == 2);
  REQUIRE_FALSE(report["problems"].empty());
  CHECK(contains(report["problems"].back()["message"], "all_reduce"));
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
