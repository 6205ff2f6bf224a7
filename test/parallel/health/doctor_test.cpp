// Tests the doctor's rules: the problems that it derives from the reports of the ranks, and the GPUs of a host.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/format.h"
#include "core/base/json.h"
#include "parallel/health/doctor/doctor.h"
#include "parallel/health/doctor/gpus.h"
#include "test/catch.h"

namespace trainctl::doctor_test {
namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The report of a rank on a host without problems.
Json healthy(int rank, const std::string& host, const std::string& gpu) {
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

std::vector<Problem> problems(const std::vector<Json>& reports, const std::string& device = "auto") {
  return find_problems(reports, device, "auto");
}

}  // namespace

TEST_CASE("if each rank of a host sees one GPU only, the GPUs of all its ranks form one table") {
  std::vector<Json> reports;
  for (int rank = 0; rank < 3; ++rank) {
    Json report = healthy(rank, "a", format("G{}", rank));
    report["gpus"] = Json::array();
    for (int other = 0; other < 4; ++other) {
      report["gpus"].push_back({{"name", "H100"}, {"uuid", format("G{}", other)}, {"visible", other == rank}});
    }
    report["links"] = Json(4, Json{"NVLink", "NVLink", "NVLink", "NVLink"});
    reports.push_back(report);
  }
  reports.push_back(healthy(3, "a", "G2"));  // in its container only this GPU is visible
  reports.push_back(healthy(4, "b", "G9"));
  const std::vector<HostGpu> gpus = gpus_of_host(reports, "a");
  REQUIRE(gpus.size() == 4);
  CHECK(gpus[0].ranks == "0");
  CHECK(gpus[2].ranks == "2, 3");
  CHECK(gpus[1].visible);
  CHECK_FALSE(gpus[3].visible);
  CHECK(gpus[1].links == std::vector<std::string>{"NVLink", "-", "NVLink", "NVLink"});
  CHECK(gpus_of_host(reports, "b").size() == 1);
  // The link between GPUs that no rank sees together is unknown.
  CHECK(gpus_of_host({healthy(0, "a", "G0"), healthy(1, "a", "G1")}, "a")[0].links ==
        std::vector<std::string>{"-", "?"});
}

TEST_CASE("a GPU that trainctl has no kernels for stops a run, a missing NVRTC does not") {
  Json old = healthy(0, "a", "G0");
  old["gpus"][0]["why_not"] = "Tesla T4 has compute capability 7.5; this trainctl needs 8.0 or later";
  const auto too_old = problems({old});
  REQUIRE(too_old.size() == 1);
  CHECK(too_old[0].stops_a_run);
  CHECK(contains(too_old[0].message, "7.5"));
  CHECK(problems({old}, "cpu").empty());

  Json without = healthy(0, "a", "G0");
  without["cuda"]["libraries"].push_back({{"name", "NVRTC"}, {"built", ""}, {"found", ""}});
  const auto no_compiler = problems({without});
  REQUIRE(no_compiler.size() == 1);
  CHECK_FALSE(no_compiler[0].stops_a_run);
  CHECK(contains(no_compiler[0].message, "NVRTC"));
}

TEST_CASE("problems of several hosts are found by comparing their reports") {
  CHECK(problems({healthy(0, "a", "G0"), healthy(1, "a", "G1"), healthy(2, "b", "G2")}).empty());

  const auto shared = problems({healthy(0, "a", "G0"), healthy(1, "a", "G0")});
  REQUIRE(shared.size() == 1);
  CHECK_FALSE(shared[0].stops_a_run);
  CHECK(contains(shared[0].message, "as rank 0 does"));
  CHECK(find_problems({healthy(0, "a", "G0"), healthy(1, "a", "G0")}, "cuda", "nccl")[0].stops_a_run);

  Json without = healthy(1, "b", "");
  without["gpu"] = nullptr;
  without["gpus"] = Json::array();
  without["driver"]["why"] = "no NVIDIA driver";
  const auto some = problems({healthy(0, "a", "G0"), without});
  REQUIRE(some.size() == 1);
  CHECK(some[0].stops_a_run);
  CHECK(contains(some[0].message, "1 of 2 ranks have a GPU"));
  CHECK(problems({without, without}).empty());  // auto: all compute on the CPU
  CHECK(problems({without}, "cuda")[0].stops_a_run);

  Json other = healthy(1, "b", "G1");
  other["version"] = "1.1";
  other["mpi"]["found"] = "Open MPI v5.0.1";
  other["run_directory"] = {{"path", "/data"}, {"writable", false}, {"shared", false}, {"free_bytes", 1e12}};
  std::vector<std::string> messages;
  for (const Problem& problem : problems({healthy(0, "a", "G0"), other})) messages.push_back(problem.message);
  CHECK(messages == std::vector<std::string>{"trainctl is built with Open MPI 4.1.4, but Open MPI v5.0.1 is found",
                                             "/data cannot be written", "/data is not the same folder as on rank 0",
                                             "trainctl 1.1, but 1.0 on a"});
}

TEST_CASE("a clock that differs is reported once for each host") {
  Json first = healthy(0, "a", "G0"), second = healthy(1, "b", "G1"), third = healthy(2, "b", "G2"),
       fourth = healthy(3, "c", "G3");
  first["clock_seconds"] = 1'800'000'000.5;
  second["clock_seconds"] = third["clock_seconds"] = 1'800'000'047.4;
  fourth["clock_seconds"] = 1'799'999'999.7;
  const auto found = problems({first, second, third, fourth});
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].stops_a_run);
  CHECK(found[0].where == "b");
  CHECK(found[0].message == "its clock is 47 s ahead of the clock of a");
  CHECK(problems({second, third, first})[0].message == "its clock is 47 s behind the clock of b");
}

TEST_CASE("a host with slow transfers to all others is named, and so is a slow pair of other hosts") {
  const auto pair = [](const char* first, const char* second, double seconds) {
    return Json{
        {"hosts", {first, second}}, {"small_seconds", 1e-4}, {"large_seconds", seconds}, {"large_bytes", 16 << 20}};
  };
  Json first = healthy(0, "a", "G0");
  first["network"] = {pair("a", "b", 0.01), pair("a", "c", 0.1),   pair("b", "c", 0.09),
                      pair("a", "d", 0.03), pair("b", "d", 0.012), pair("c", "d", 0.2)};
  const auto found = problems({first, healthy(1, "b", "G1"), healthy(2, "c", "G2"), healthy(3, "d", "G3")});
  REQUIRE(found.size() == 2);
  CHECK(found[0].where == "c");
  CHECK(found[0].message == "all-reduces with it move at most 186.4 MB/s, all-reduces between other hosts 1.7 GB/s");
  CHECK(found[1].where == "a and d");
  CHECK(found[1].message == "all-reduces between them move 559.2 MB/s, all-reduces between other hosts up to 1.7 GB/s");
  first["network"] = {pair("a", "b", 0.01)};
  CHECK(problems({first, healthy(1, "b", "G1")}).empty());
}

TEST_CASE("a host with slow small all-reduces is named, and so is a slow pair of other hosts") {
  const auto pair = [](const char* first, const char* second, double small) {
    return Json{
        {"hosts", {first, second}}, {"small_seconds", small}, {"large_seconds", 0.01}, {"large_bytes", 16 << 20}};
  };
  Json first = healthy(0, "a", "G0");
  first["network"] = {pair("a", "b", 50e-6),  pair("a", "c", 1e-3),   pair("b", "c", 0.9e-3),
                      pair("a", "d", 800e-6), pair("b", "d", 180e-6), pair("c", "d", 2e-3)};
  const auto found = problems({first, healthy(1, "b", "G1"), healthy(2, "c", "G2"), healthy(3, "d", "G3")});
  REQUIRE(found.size() == 2);
  CHECK(found[0].where == "c");
  CHECK(found[0].message == "small all-reduces with it take 900.0 us, small all-reduces between other hosts 50.0 us");
  CHECK(found[1].where == "a and d");
  CHECK(found[1].message ==
        "small all-reduces between them take 800.0 us, small all-reduces between other hosts 50.0 us");
  // A difference of microseconds is not reported, however large the ratio is.
  first["network"] = {pair("a", "b", 5e-6), pair("a", "c", 90e-6), pair("b", "c", 80e-6)};
  CHECK(problems({first, healthy(1, "b", "G1"), healthy(2, "c", "G2")}).empty());
}

TEST_CASE("missing disk space for a checkpoint or a run's records stops a run, for two checkpoints it is a warning") {
  Json first = healthy(0, "a", "G0");
  const auto with = [&](double free) {
    first["run_directory"]["free_bytes"] = free;
    std::vector<Problem> found;
    add_space_problem(first, 1'500'000'000, found);
    return found;
  };
  CHECK(with(3.001e9).empty());
  REQUIRE(with(2.9e9).size() == 1);
  CHECK_FALSE(with(2.9e9)[0].stops_a_run);
  REQUIRE(with(1.4e9).size() == 1);
  CHECK(with(1.4e9)[0].stops_a_run);
  CHECK(contains(with(1.4e9)[0].message, "/data has 1.4 GB left; a checkpoint takes 1.5 GB"));
  first["run_directory"]["free_bytes"] = 4096;
  std::vector<Problem> found;
  add_space_problem(first, 0, found);  // without a config, or with a network whose checkpoint would fit
  REQUIRE(found.size() == 1);
  CHECK(found[0].stops_a_run);
  CHECK(contains(found[0].message, "/data has 4.1 kB left, but a run's log"));
}

}  // namespace trainctl::doctor_test
