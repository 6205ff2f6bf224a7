// Gathers information about a machine: libraries, processor, memory, disk and GPUs.
#include "parallel/health/doctor/doctor.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/backend/device_module.h"
#include "core/backend/nvml.h"
#include "core/backend/select.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/memory.h"
#include "core/base/version.h"
#include "parallel/comm/environment.h"
#include "parallel/comm/text.h"
#include "parallel/health/doctor/rdma.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/ranks/run_rank.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

// The folder in which a run's directory would be created. Rank 0 has written a file there, which other ranks find if
// they share the folder.
struct RunFolder {
  std::string folder;
  std::string mark;
};

// Returns the free bytes of a file system; null if they cannot be read.
Json free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return nullptr;
  return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
}

// Returns the value; null if it is NaN.
Json bytes(double value) { return std::isnan(value) ? Json() : Json(static_cast<std::int64_t>(value)); }

Json locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return nullptr;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

Json memory() {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  return {{"total", page * sysconf(_SC_PHYS_PAGES)},
          {"free", available_memory().value_or(page * sysconf(_SC_AVPHYS_PAGES))}};
}

Json run_folder(const RunFolder& folder) {
  std::error_code ignored;
  return {{"path", folder.folder},
          {"writable", access(folder.folder.c_str(), W_OK | X_OK) == 0},
          {"shared", fs::exists(folder.mark, ignored)},
          {"free_bytes", free_bytes(folder.folder)}};
}

// Adds the GPUs of the driver, and the connection of each GPU to the others: "NVLink", "P2P" or "host".
void add_driver_info(Json& info) {
  info["driver"] = {{"version", nullptr}, {"why", ""}};
  info["gpus"] = Json::array();
  info["links"] = Json::array();
  try {
    const Nvml nvml;
    info["driver"]["version"] = nvml.driver_version();
    const auto devices = nvml.devices();
    for (Nvml::Device device : devices) {
      const GpuIdentity identity = nvml.identify(device);
      const GpuReading reading = nvml.read(device);
      info["gpus"].push_back({{"name", identity.name},
                              {"uuid", identity.uuid},
                              {"pci_bus_id", identity.pci_bus_id},
                              {"memory_bytes", bytes(reading.memory_total_bytes)},
                              {"memory_used_bytes", bytes(reading.memory_bytes)},
                              {"nvlinks", identity.active_nvlinks},
                              {"throttled", throttle_words(reading.throttled)},
                              {"visible", false}});
      Json row = Json::array();
      for (Nvml::Device other : devices) {
        row.push_back(other == device                 ? "-"
                      : nvml.is_linked(device, other) ? "NVLink"
                      : nvml.is_peer(device, other)   ? "P2P"
                                                      : "host");
      }
      info["links"].push_back(std::move(row));
    }
  } catch (const Error& error) {
    info["driver"]["why"] = error.what();
  }
}

// Adds the CUDA backend, its libraries, and the GPUs that are visible to this process.
void add_cuda_info(Json& info, int local_rank) {
  const LoadedCudaModule loaded = load_cuda_module();
  info["cuda"] = {{"module", loaded.module != nullptr}, {"why", loaded.why}, {"libraries", Json::array()}};
  info["gpu"] = nullptr;
  if (loaded.module == nullptr) return;
  for (const LibraryVersion& library : loaded.module->versions()) {
    info["cuda"]["libraries"].push_back({{"name", library.name}, {"built", library.built}, {"found", library.found}});
  }
  info["cuda"]["why_no_nccl"] = loaded.module->why_no_nccl();
  const VisibleGpus visible = loaded.module->gpus();
  info["cuda"]["why_no_gpu"] = visible.why;
  info["cuda"]["remedy"] = visible.remedy;
  for (const Gpu& gpu : visible.gpus) {
    Json* known = nullptr;
    for (Json& listed : info["gpus"]) {
      if (listed["uuid"] == gpu.uuid) known = &listed;
    }
    if (known == nullptr) {  // NVML is missing, or this is a MIG instance
      info["gpus"].push_back(
          {{"name", gpu.name}, {"uuid", gpu.uuid}, {"pci_bus_id", gpu.pci_bus_id}, {"memory_bytes", gpu.memory_bytes}});
      known = &info["gpus"].back();
    }
    (*known)["visible"] = true;
    (*known)["compute_capability"] = format("{}.{}", gpu.major, gpu.minor);
    (*known)["why_not"] = gpu.why_not;
  }
  if (const Gpu* own = gpu_of_rank(visible.gpus, local_rank)) info["gpu"] = own->uuid;
}

// Returns the time of this host's clock in seconds; all ranks read their clocks at the same moment.
double clock_seconds(Communicator& world, Stream& stream) {
  world.barrier(stream);
  stream.synchronize();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Returns the information about one rank as JSON text. `cores`: cores of the host, for all its ranks; `clock`: seconds
// of its clock.
std::string rank_info(int rank, int local_rank, const std::string& host, int cores, double clock,
                      const RunFolder& folder) {
  const MpiVersions mpi = mpi_versions();
  const MpiLibrary library = mpi_library();
  const std::string mpirun = library == MpiLibrary::other ? "" : mpirun_of(library)->find();
  Json info = {
      {"rank", rank},
      {"host", host},
      {"version", version()},
      {"mpi", {{"built", mpi.built}, {"found", mpi.found}, {"mpirun", mpirun.empty() ? Json() : Json(mpirun)}}},
      {"processor", make_backend("cpu")->fingerprint()},
      {"cores", cores},
      {"clock_seconds", clock},
      {"memory_bytes", memory()},
      {"shared_memory_free_bytes", free_bytes("/dev/shm")},
      {"locked_memory_limit_bytes", locked_memory_limit()},
      {"rdma", rdma_info()},
      {"run_directory", run_folder(folder)}};
  add_driver_info(info);
  try {
    add_cuda_info(info, local_rank);
  } catch (const Error& error) {
    info["cuda"]["why_no_gpu"] = error.what();
  }
  return json_text(info);
}

// Finds the nearest existing folder of the run's directory, and writes a file to it that identifies this process.
RunFolder prepare_folder(const std::string& run_directory) {
  const fs::path folder = nearest_folder(run_directory);
  const RunFolder prepared{folder.string(), (folder / format(".trainctl-doctor-{}", getpid())).string()};
  std::ofstream(prepared.mark) << "temporary file of trainctl doctor\n";
  return prepared;
}

}  // namespace

std::vector<Json> gather_info(const std::string& run_directory, const RankContext& context, Stream& stream) {
  World& world = context.world;
  const bool first = world.rank() == 0;
  RunFolder folder = first ? prepare_folder(run_directory) : RunFolder{};
  folder.folder = broadcast_text(folder.folder, 0, world.communicator(), stream);
  folder.mark = broadcast_text(folder.mark, 0, world.communicator(), stream);
  const std::string own =
      rank_info(world.rank(), world.local_rank(), world.hosts()[static_cast<std::size_t>(world.rank())],
                context.cores.usable, clock_seconds(world.communicator(), stream), folder);
  std::vector<Json> info;
  for (const std::string& text : gather_texts(own, world.communicator(), stream)) info.push_back(parse_json(text));
  std::error_code ignored;
  if (first) fs::remove(folder.mark, ignored);
  return info;
}

}  // namespace trainctl
