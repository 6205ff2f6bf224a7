// Writes the log of the emulated NCCL.
#include "test/emulated_gpu/nccl_log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "test/emulated_gpu/nccl_order.h"

namespace emulated {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Opens the file at the first call in this process; later changes of the variables have no effect, as in NCCL.
std::FILE* log_file() {
  static std::FILE* const file = [] {
    if (variable("NCCL_DEBUG") != "INFO") return static_cast<std::FILE*>(nullptr);
    const std::string path = variable("NCCL_DEBUG_FILE");
    std::FILE* opened = path.empty() ? nullptr : std::fopen(path.c_str(), "w");
    return opened == nullptr ? stdout : opened;
  }();
  return file;
}

void write_line(std::FILE* file, int device, const std::string& text) {
  std::fprintf(file, "emulated:%d:%d [%d] NCCL INFO %s\n", getpid(), getpid(), device, text.c_str());
  std::fflush(file);
}

std::string connection(int channel, int from, int to, const std::string& via) {
  const bool numbers_connections = !via.starts_with("SHM");  // NCCL does not write the number for shared memory
  return "Channel 0" + std::to_string(channel) + (numbers_connections ? "/0 : " : " : ") + std::to_string(from) + "[" +
         std::to_string(from) + "] -> " + std::to_string(to) + "[" + std::to_string(to) + "]" + via;
}

}  // namespace

void log_connections(int rank, int ranks, int device) {
  std::FILE* file = log_file();
  std::string transport = variable("TRAINCTL_EMULATED_NCCL_TRANSPORT");
  if (file == nullptr || transport == "none") return;
  static std::mutex& mutex = *new std::mutex;
  const std::scoped_lock lock(mutex);
  const auto line = [&](const std::string& text) { write_line(file, device, text); };
  const int version = nccl_version();
  line("NCCL version " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
       std::to_string(version % 100) + "+cuda13.0");
  const bool by_card = transport == "NET/IB";
  if (!by_card) line("NET/IB : No device found.");
  line(by_card ? "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.5<0>" : "NET/Socket : Using [0]eth0:10.0.0.5<0>");
  line(by_card ? "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
               : "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'");
  line(std::string("Using network ") + (by_card ? "IB" : "Socket"));
  const std::string disabled = variable("NCCL_P2P_DISABLE");
  if (!disabled.empty()) line("NCCL_P2P_DISABLE set by environment to " + disabled);
  line("NVLS multicast support is not available on dev " + std::to_string(device) + " (NVLS_NCHANNELS 0)");
  if (transport.empty()) transport = disabled == "1" ? "SHM" : "P2P";
  for (int channel = 0; channel < 2 && ranks > 1; ++channel) {
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    if (transport.starts_with("NET/")) {
      line(connection(channel, last, rank, " [receive] via " + transport + "/0"));
      line(connection(channel, rank, next, " [send] via " + transport + "/0"));
    } else {
      line(connection(channel, rank, next, transport == "SHM" ? " via SHM/direct/direct" : " via P2P/CUMEM/read"));
    }
  }
}

}  // namespace emulated
