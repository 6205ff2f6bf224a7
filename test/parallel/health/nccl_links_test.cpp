// Tests what the doctor derives from NCCL's logs: the links between ranks, slow choices with their remedies, and the
// tables; and the RDMA devices that it finds on a host.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/format.h"
#include "core/base/json.h"
#include "parallel/health/doctor/doctor.h"
#include "parallel/health/doctor/nccl/capture.h"
#include "parallel/health/doctor/nccl/choices.h"
#include "parallel/health/doctor/nccl/log.h"
#include "parallel/health/doctor/rdma.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::nccl_links_test {
namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The information about a rank on a host with four GPUs: 0 and 1 have NVLink, 2 is reached through PCIe, 3 only through
// the host. `gpu`: the number of the rank's GPU; `lines`: NCCL's log.
Json rank_with_log(int rank, const std::string& host, int gpu, const std::vector<std::string>& lines) {
  Json info = {{"rank", rank},
               {"host", host},
               {"gpu", format("{}-G{}", host, gpu)},
               {"rdma", {{"devices", Json::array()}, {"peer_memory", false}}},
               {"gpus", Json::array()},
               {"links",
                {{"-", "NVLink", "P2P", "host"},
                 {"NVLink", "-", "P2P", "host"},
                 {"P2P", "P2P", "-", "host"},
                 {"host", "host", "host", "-"}}}};
  for (int i = 0; i < 4; ++i) info["gpus"].push_back({{"uuid", format("{}-G{}", host, i)}});
  std::string log = "a:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n";
  for (const std::string& line : lines) log += "a:1:1 [0] NCCL INFO " + line + "\n";
  info["nccl"] = nccl_choices(parse_nccl_log(log), "");
  return info;
}

std::vector<Problem> slow_links(std::vector<Json>& info) {
  name_gpu_links(info);
  return find_slow_links(info);
}

std::string link_of_first(const std::vector<Json>& info) { return info[0]["nccl"]["connections"][0]["link"]; }

}  // namespace

TEST_CASE("GPU memory is accessed by the link that the driver names") {
  const std::string peer = "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM";
  for (const auto& [gpu, link] : {std::pair{1, "NVLink"}, {2, "PCIe"}, {3, "GPU memory"}}) {
    std::vector<Json> info = {rank_with_log(0, "a", 0, {peer}), rank_with_log(1, "a", gpu, {})};
    CHECK(slow_links(info).empty());
    CHECK(link_of_first(info) == link);
  }
  std::vector<Json> two = {rank_with_log(0, "a", 0, {"Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL"}),
                           rank_with_log(1, "b", 0, {})};
  CHECK(slow_links(two).empty());
  CHECK(link_of_first(two) == "NVLink");
  CHECK(two[0]["nccl"]["connections"][0]["gpu_link"].is_null());
}

TEST_CASE("host memory is reported as slow only if the GPUs have a faster link") {
  const std::string shared = "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct";
  std::vector<Json> info = {rank_with_log(0, "a", 0, {shared}),
                            rank_with_log(1, "a", 1, {"Channel 00 : 1[1] -> 0[0] via SHM/direct/direct"})};
  const auto nvlink = slow_links(info);
  REQUIRE(nvlink.size() == 1);
  CHECK_FALSE(nvlink[0].stops_a_run);
  CHECK(nvlink[0].where == "a");
  CHECK(nvlink[0].message ==
        "NCCL moves the data of ranks 0 and 1 through the host's memory (SHM/direct/direct), although NVLink connects "
        "their GPUs");
  CHECK(contains(nvlink[0].remedy, "nvidia-smi topo -p2p"));

  info = {rank_with_log(0, "a", 0, {shared, "NCCL_P2P_DISABLE set by environment to 1"}), rank_with_log(1, "a", 2, {})};
  const auto pcie = slow_links(info);
  REQUIRE(pcie.size() == 1);
  CHECK(contains(pcie[0].message, "through PCIe"));
  CHECK(pcie[0].remedy == "unset NCCL_P2P_DISABLE (its value is 1)");

  info = {rank_with_log(0, "a", 0, {shared, "NCCL_P2P_DISABLE set by environment to 0"}), rank_with_log(1, "a", 2, {})};
  CHECK(contains(slow_links(info).at(0).remedy, "NCCL_P2P_LEVEL=SYS"));

  info = {rank_with_log(0, "a", 0, {shared}), rank_with_log(1, "a", 3, {})};
  CHECK(slow_links(info).empty());
}

TEST_CASE("pairs with the same slow link are one note, and a network inside a host is slow") {
  std::vector<Json> info;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> lines;
    for (int to = 0; to < 4; ++to) {
      if (to != rank) lines.push_back(format("Channel 00 : {}[0] -> {}[1] via SHM/direct/direct", rank, to));
    }
    info.push_back(rank_with_log(rank, "a", rank % 2, lines));
    info.back()["gpu"] = format("a-G{}", rank);
    for (auto& row : info.back()["links"]) row = Json(4, "NVLink");
  }
  const auto found = slow_links(info);
  REQUIRE(found.size() == 1);
  CHECK(contains(found[0].message, "ranks 0 and 1, 0 and 2, 0 and 3 and 3 more pairs"));

  info = {rank_with_log(
              0, "a", 0,
              {"Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", "NCCL_SHM_DISABLE set by environment to 1."}),
          rank_with_log(1, "a", 3, {})};
  const auto network = slow_links(info);
  REQUIRE(network.size() == 1);
  CHECK(network[0].message ==
        "NCCL sends the data of ranks 0 and 1 through the network (NET/Socket/0), although they are on one host");
  CHECK(network[0].remedy == "unset NCCL_SHM_DISABLE (its value is 1)");
}

TEST_CASE("TCP between hosts is slow if the host has an active RDMA device") {
  const std::vector<std::string> lines = {"NET/Socket : Using [0]eth0:10.0.0.5<0>", "Using network Socket",
                                          "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"};
  std::vector<Json> info = {rank_with_log(0, "a", 0, lines), rank_with_log(1, "b", 0, {})};
  CHECK(slow_links(info).empty());
  CHECK(link_of_first(info) == "TCP");
  CHECK(info[0]["nccl"]["connections"][0]["device"] == "eth0");
  info[0]["rdma"]["devices"] = {{{"name", "mlx5_0"}, {"link", "InfiniBand"}, {"active", true}},
                                {{"name", "mlx5_1"}, {"link", "InfiniBand"}, {"active", false}}};
  const auto found = slow_links(info);
  REQUIRE(found.size() == 1);
  CHECK(found[0].where == "a");
  CHECK(found[0].message ==
        "NCCL uses TCP over eth0 between hosts, although this host has active RDMA devices: mlx5_0 (InfiniBand)");
  CHECK(contains(found[0].remedy, "libibverbs"));
  info[0]["nccl"]["variables"]["NCCL_IB_DISABLE"] = "1";
  CHECK(slow_links(info).at(0).remedy == "unset NCCL_IB_DISABLE (its value is 1)");
}

TEST_CASE("InfiniBand without GPUDirect RDMA is slow, and the cause is named") {
  const auto examine = [](const std::vector<std::string>& more, bool peer_memory, const char* direct = "") {
    std::vector<std::string> lines = {"NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "Using network IB",
                                      format("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0{}", direct),
                                      format("Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0{}", direct)};
    lines.insert(lines.end(), more.begin(), more.end());
    std::vector<Json> info = {rank_with_log(0, "a", 0, lines), rank_with_log(1, "b", 0, {})};
    info[0]["rdma"]["peer_memory"] = peer_memory;
    auto found = slow_links(info);
    CHECK(link_of_first(info) == "InfiniBand");
    return found;
  };
  CHECK(examine({}, true, "/GDRDMA").empty());
  const auto module = examine({}, false);
  REQUIRE(module.size() == 1);
  CHECK(contains(module[0].message, "GPUDirect RDMA is off: data between the GPUs and mlx5_0 passes"));
  CHECK(contains(module[0].message, "nvidia-peermem is not loaded"));
  CHECK(contains(module[0].remedy, "modprobe nvidia-peermem"));
  CHECK_FALSE(contains(examine({}, true).at(0).message, "nvidia-peermem"));
  CHECK_FALSE(contains(examine({"DMA-BUF is available on GPU device 0"}, false).at(0).message, "nvidia-peermem"));
  CHECK(contains(examine({"GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 7 > 4)"}, false).at(0).message,
                 "too long"));
  CHECK(examine({"NCCL_NET_GDR_LEVEL set by environment to LOC"}, false).at(0).remedy ==
        "unset NCCL_NET_GDR_LEVEL (its value is LOC)");
}

TEST_CASE("the tables show networks and connections, or why they are not shown") {
  std::vector<Json> info = {
      rank_with_log(
          0, "a", 0,
          {"NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "Using network IB",
           "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", "NVLS multicast support is available on dev 0",
           "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
           "Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0/GDRDMA"}),
      rank_with_log(1, "a", 1, {"Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM/read"}), rank_with_log(2, "b", 0, {})};
  name_gpu_links(info);
  CHECK(nccl_text(info) ==
        "host  NCCL             network  devices  GPUDirect RDMA  NVLink multicast\n"
        "a     2.28.9+cuda13.0  IB       mlx5_0   yes             yes\n"
        "\n"
        "host           ranks  data moves through                 NCCL's name      channels\n"
        "a              0-1    NVLink                             P2P/CUMEM/read          2\n"
        "between hosts  0-2    InfiniBand mlx5_0, GPUDirect RDMA  NET/IB/0/GDRDMA         1\n"
        "\n"
        "NCCL's choices of links on rank 2 are not shown: NCCL's log names no connection between ranks\n");

  for (Json& rank : info) rank["nccl"] = nccl_choices({}, "the variable is set");
  CHECK(nccl_text(info) == "NCCL's choices of links on ranks 0, 1, 2 are not shown: the variable is set\n");
  CHECK(find_slow_links(info).empty());
  for (Json& rank : info) rank.erase("nccl");
  name_gpu_links(info);
  CHECK(nccl_text(info).empty());
}

TEST_CASE("NCCL's log is captured in a file, unless the user has set one of the variables") {
  {
    const NcclLogCapture capture;
    REQUIRE(capture.why_not().empty());
    REQUIRE(std::getenv("NCCL_DEBUG") == std::string("INFO"));
    std::ofstream(std::getenv("NCCL_DEBUG_FILE")) << "first\n" << std::flush << "second\n";
    CHECK(capture.text() == "first\nsecond\n");
  }
  CHECK(std::getenv("NCCL_DEBUG") == nullptr);
  CHECK(std::getenv("NCCL_DEBUG_FILE") == nullptr);
  setenv("NCCL_DEBUG_SUBSYS", "NET", 1);
  {
    const NcclLogCapture capture;
    CHECK(contains(capture.why_not(), "NCCL_DEBUG_SUBSYS"));
    CHECK(std::getenv("NCCL_DEBUG") == nullptr);
    CHECK(std::getenv("NCCL_DEBUG_FILE") == nullptr);
    CHECK(capture.text().empty());
  }
  CHECK(std::getenv("NCCL_DEBUG_SUBSYS") == std::string("NET"));
  unsetenv("NCCL_DEBUG_SUBSYS");
}

TEST_CASE("RDMA devices and the module for the GPUs' memory are found where Linux lists them") {
  const test::TemporaryFolder root;
  CHECK(rdma_info(root.path) == Json{{"devices", Json::array()}, {"peer_memory", false}});
  const auto write = [&root](const std::string& path, const char* text) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  write("sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
  write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  write("sys/class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE\n");
  write("sys/class/infiniband/mlx5_0/ports/2/link_layer", "InfiniBand\n");
  std::filesystem::create_directories(root / "sys/module/nvidia_peermem");
  const Json found = rdma_info(root.path);
  CHECK(found["peer_memory"] == true);
  CHECK(found["devices"] == Json{{{"name", "mlx5_0"}, {"link", "InfiniBand"}, {"active", true}},
                                 {{"name", "mlx5_1"}, {"link", "Ethernet"}, {"active", false}}});
}

}  // namespace trainctl::nccl_links_test
