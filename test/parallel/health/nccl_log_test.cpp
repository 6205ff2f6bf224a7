// Tests the parser of NCCL's log, with the forms that lines have in several versions of NCCL.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/base/format.h"
#include "parallel/health/doctor/nccl/log.h"
#include "test/catch.h"

namespace trainctl::nccl_log_test {
namespace {

// Returns the lines with the prefix of an information line.
std::string log_of(const std::vector<std::string>& bodies) {
  std::string all;
  for (const std::string& body : bodies) all += "node-1.example:4021:4188 [3] NCCL INFO " + body + "\n";
  return all;
}

NcclConnection parse_one(const std::string& body) {
  const NcclLog log = parse_nccl_log(log_of({body}));
  CAPTURE(body);
  REQUIRE(log.connections.size() == 1);
  return log.connections.front();
}

// Returns lines of all forms that the parser reads.
std::vector<std::string> all_forms() {
  return {"NCCL version 2.28.9+cuda13.0",
          "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
          "Channel 03 : 14[e1000] -> 13[a7000] via SHM/direct/direct",
          "Channel 00/0 : 3[1] -> 1[1] [send] via NET/IB/2(5)/GDRDMA(PCI)/Shared",
          "NET/IB : Using [0]mlx5_0:1/IB [1]={[1] mlx5_1:1/IB, [2] mlx5_2:1/IB} [RO]; OOB eth0:10.0.0.1<0>",
          "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2",
          "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
          "NET/Socket : Using [0]eth0:10.0.0.5<0> [1]eth1:fe80::1%eth1<0>",
          "Using network IB",
          "NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)",
          "DMA-BUF is available on GPU device 3",
          "NCCL_P2P_DISABLE set by environment to 1."};
}

}  // namespace

TEST_CASE("the transports between ranks of one host are read in the forms of NCCL 2.14 to 2.28") {
  const NcclConnection old = parse_one("Channel 03 : 14[e1000] -> 13[a7000] via P2P/direct pointer/read");
  CHECK(old.from == 14);
  CHECK(old.to == 13);
  CHECK(old.transport == NcclTransport::peer);
  CHECK(old.via == "P2P/direct pointer/read");
  CHECK(old.channels == 1);
  CHECK_FALSE(old.of_receiver);
  for (const char* via :
       {"P2P/IPC", "P2P/IPC/read/CE", "P2P/CUMEM", "P2P/CUMEM/read", "P2P/MNNVL", "P2P/indirect/2[2]"}) {
    const NcclConnection peer = parse_one(format("Channel 00/0 : 0[0] -> 1[1] via {}", via));
    CHECK(peer.transport == NcclTransport::peer);
    CHECK(peer.via == via);
  }
  for (const char* via : {"SHM/direct/direct", "SHM/CE/direct"}) {
    const NcclConnection shared = parse_one(format("Channel 01 : 5[5] -> 4[4] via {}", via));
    CHECK(shared.transport == NcclTransport::host_memory);
    CHECK(shared.from == 5);
    CHECK(shared.via == via);
  }
  CHECK(parse_one("Channel 00 : 0[0] -> 1[1] via P2P/IPC comm 0x7f1a nRanks 02").via == "P2P/IPC");
}

TEST_CASE("network connections have a device, a direction and GPUDirect RDMA") {
  const NcclConnection plain = parse_one("Channel 00/0 : 3[1] -> 1[1] [receive] via NET/IB/2");
  CHECK(plain.transport == NcclTransport::network);
  CHECK(plain.of_receiver);
  CHECK(plain.network == "IB");
  CHECK(plain.device == 2);
  CHECK_FALSE(plain.gpudirect);
  for (const char* via :
       {"NET/IB/3/GDRDMA", "NET/IB/3/GDRDMA/Shared", "NET/IB/3(7)/GDRDMA(PCI)", "NET/IB/3/GDRDMA/flush=None"}) {
    const NcclConnection direct = parse_one(format("Channel 11/1 : 37[5] -> 36[4] [send] via {}", via));
    CAPTURE(via);
    CHECK_FALSE(direct.of_receiver);
    CHECK(direct.device == 3);
    CHECK(direct.gpudirect);
    CHECK(direct.via == via);
  }
  const NcclConnection plugin = parse_one("Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/1/GDRDMA");
  CHECK(plugin.network == "AWS Libfabric");
  CHECK(plugin.device == 1);
  CHECK(plugin.gpudirect);
}

TEST_CASE("channels are counted for each connection, and a channel counts once") {
  const NcclLog log = parse_nccl_log(
      log_of({"Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM",
              "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM", "Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM"}));
  REQUIRE(log.connections.size() == 2);
  CHECK(log.connections[0].channels == 2);
  CHECK(log.connections[1].channels == 1);
}

TEST_CASE("the devices of networks are found by their numbers") {
  const NcclLog log = parse_nccl_log(log_of(
      {"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/RoCE [RO]; OOB ib0:10.128.3.13<0>",
       "NET/IB : Made virtual device [1] name=mlx5_2 speed=400000 ndevs=1",
       "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_2 speed=800000 ndevs=2",
       "NET/Socket : Using [0]eth0:10.0.0.5<0> [1]eth1:fe80::1%eth1<0>",
       "NET/Socket: Using 2 threads and 8 sockets per thread", "Using network IB",
       "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/1", "Channel 00/0 : 0[0] -> 2[1] [send] via NET/IBext_v8/0",
       "Channel 00/0 : 0[0] -> 3[1] [send] via NET/Socket/1", "Channel 00/0 : 0[0] -> 4[1] [send] via NET/IB/2",
       "Channel 00/0 : 0[0] -> 5[1] [send] via NET/IB/9"}));
  CHECK(log.network == "IB");
  REQUIRE(log.devices.size() == 5);
  REQUIRE(log.connections.size() == 5);
  std::vector<std::string> names, links;
  for (std::size_t i = 0; i < 4; ++i) {
    const NcclDevice* device = log.device_of(log.connections[i]);
    REQUIRE(device != nullptr);
    names.push_back(device->name);
    links.push_back(device->link);
  }
  CHECK(names == std::vector<std::string>{"mlx5_2", "mlx5_0", "eth1", "mlx5_0+mlx5_2"});
  CHECK(links == std::vector<std::string>{"RoCE", "IB", "", ""});
  CHECK(log.device_of(log.connections[4]) == nullptr);

  const NcclLog merged = parse_nccl_log(
      log_of({"NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [1]mlx5_2:1/IB; OOB eth0:10.0.0.1<0>"}));
  REQUIRE(merged.devices.size() == 2);
  CHECK(merged.devices[0].name == "mlx5_0+mlx5_1");
  CHECK(merged.devices[0].link == "IB");
  CHECK(merged.devices[1].name == "mlx5_2");
  CHECK(merged.devices[1].number == 1);
}

TEST_CASE("the version, the variables and the properties of GPUs and cards are read") {
  const NcclLog log = parse_nccl_log(
      "NCCL version 2.16.5+cuda11.8\n\n[2025-11-03 10:04:01] node:1:2 [0] init.cc:5 (f) NCCL WARN Channel 00/0 : 0[0] "
      "-> "
      "1[1] via P2P/IPC\n" +
      log_of({"NCCL_P2P_DISABLE set by environment to 1.", "NCCL_NET_GDR_LEVEL set by environment to SYS",
              "NCCL_IB_HCA set to =mlx5_3:1", "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
              "NVLS multicast support is not available on dev 2 (NVLS_NCHANNELS 0)"}));
  CHECK(log.version == "2.16.5+cuda11.8");
  CHECK(log.variables == std::map<std::string, std::string>{
                             {"NCCL_P2P_DISABLE", "1"}, {"NCCL_NET_GDR_LEVEL", "SYS"}, {"NCCL_IB_HCA", "=mlx5_3:1"}});
  CHECK(log.gpudirect == false);
  CHECK(log.multicast == false);
  CHECK_FALSE(log.dma_buf);
  CHECK_FALSE(log.gpudirect_too_far);
  CHECK(log.connections.empty());  // a warning is not a connection

  const NcclLog good = parse_nccl_log(log_of(
      {"NCCL version 2.28.9+cuda13.0", "NVLS multicast support is available on dev 0",
       "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'",
       "GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 7 > 4)", "DMA-BUF is available on GPU device 0"}));
  CHECK(good.version == "2.28.9+cuda13.0");
  CHECK(good.gpudirect == true);
  CHECK(good.gpudirect_too_far);
  CHECK(good.multicast == true);
  CHECK(good.dma_buf);
}

TEST_CASE("lines of other forms are ignored, and so is damage to lines of known forms") {
  const NcclLog none = parse_nccl_log("\n\r\nChannel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" +
                                      log_of({"",
                                              "Channel",
                                              "Channel 00/0",
                                              "Channel 00/0 : ",
                                              "Channel 00/0 : 0[0] -> ",
                                              "Channel 00/0 : 0[0] -> 1[1]",
                                              "Channel 00/0 : 0[0] -> 1[1] via ",
                                              "Channel 00/0 : -1[0] -> 1[1] via P2P/IPC",
                                              "Channel 00/0 : 0[0 -> 1 via P2P/IPC",
                                              "Channel 00/0 : 99999999999999[0] -> 1[1] via P2P/IPC",
                                              "Channel 00/02 :    0   1   2   3",
                                              "NET/",
                                              "NET/IB",
                                              "NET/IB :",
                                              "NET/IB : Using",
                                              "NET/IB : Using [",
                                              "NET/IB : Using [1",
                                              "NET/IB : No device found.",
                                              "NET/IB : Made virtual device [",
                                              "NCCL_X set by environment to"}));
  CHECK(none.connections.empty());
  CHECK(none.devices.empty());
  CHECK(none.variables.empty());
  CHECK(none.version.empty());
  CHECK(parse_one("Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/x").transport == NcclTransport::other);

  std::mt19937 random(20);
  const auto below = [&random](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const std::string whole = log_of(all_forms());
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
      const std::size_t at = below(damaged.size());
      if (below(3) == 0)
        damaged.erase(at, 1 + below(40));
      else if (below(2) == 0)
        damaged.insert(at, whole.substr(below(whole.size()), below(40)));
      else
        damaged[at] = static_cast<char>(below(256));
      if (damaged.empty()) break;
    }
    const NcclLog log = parse_nccl_log(damaged);
    for (const NcclConnection& connection : log.connections) {
      REQUIRE((connection.from >= 0 && connection.to >= 0 && connection.channels > 0 && !connection.via.empty()));
      REQUIRE((connection.transport == NcclTransport::network) == (connection.device >= 0));
    }
    for (const NcclDevice& device : log.devices) REQUIRE(device.number >= 0);
    if (damaged.size() == whole.size() && damaged == whole) CHECK(log.connections.size() == 3);
  }
}

}  // namespace trainctl::nccl_log_test
