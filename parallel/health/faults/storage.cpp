// Faults of storage: a damaged checkpoint, and a full disk.
#include <filesystem>
#include <optional>

#include "core/base/format.h"
#include "core/base/full_disk.h"
#include "core/base/log.h"
#include "parallel/health/faults/fault.h"
#include "parallel/health/faults/table.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

// Cuts the first file of the newest checkpoint in half.
void damage_newest(const std::string& run_directory) {
  std::error_code error;
  const fs::path newest = fs::canonical(run_directory + "/checkpoints/last", error);
  fs::path file;
  if (!error) {
    for (const auto& entry : fs::directory_iterator(newest, error)) {
      if (entry.path().extension() == ".safetensors" && (file.empty() || entry.path() > file)) file = entry.path();
    }
  }
  if (!error && !file.empty()) fs::resize_file(file, fs::file_size(file, error) / 2, error);
  if (error || file.empty()) {
    log::warning("no checkpoint is damaged, since none was written" + (error ? ": " + error.message() : ""));
  } else {
    log::warning(format("rehearsed fault: {} is damaged", file.string()));
  }
}

// Acts one step later, since the checkpoint of a step is written after the faults of this step.
struct TornCheckpointFault final : FaultOptions {
  static Keys<TornCheckpointFault> keys() {
    return Keys<TornCheckpointFault>("torn_checkpoint",
                                     "Cuts a file of the newest checkpoint in half, one step after the checkpoint of "
                                     "its step, as a disk that loses data.")
        .required("step", &TornCheckpointFault::step, "The step of the checkpoint.", at_least(1));
  }
  std::string text() const override { return "the newest checkpoint is damaged"; }
  std::int64_t acts_after() const override { return step + 1; }
  void act(FaultScene& scene) const override {
    scene.wait_for_checkpoints();
    if (scene.rank() == 0) damage_newest(scene.run_directory());
  }
};

struct FullDiskFault final : FaultOptions {
  Seconds time{10};
  std::optional<std::int64_t> saves;

  static Keys<FullDiskFault> keys() {
    return Keys<FullDiskFault>("full_disk", "Lets all writes of checkpoints and metrics fail, as on a full disk.")
        .required("step", &FullDiskFault::step, fault_step_meaning, at_least(1))
        .key("for", &FullDiskFault::time, "How long.", more_than(0))
        .key("saves", &FullDiskFault::saves,
             "Until this number of checkpoints could not be saved; if it is given, `for` has no effect.", at_least(1));
  }
  std::string text() const override {
    return saves ? format("the disk is full until {} failed",
                          *saves == 1 ? "a save has" : format("{} saves have", *saves))
                 : "the disk is full for " + to_string(time);
  }
  void act(FaultScene&) const override {
    if (saves) {
      rehearse_full_disk(*saves);
    } else {
      rehearse_full_disk(std::chrono::duration<double>(time.value));
    }
  }
};

}  // namespace

Section torn_checkpoint_section() { return TornCheckpointFault::keys(); }
Section full_disk_section() { return FullDiskFault::keys(); }

}  // namespace trainctl
