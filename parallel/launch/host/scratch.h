// A folder for one run's temporary files, which does not outlive it.
#pragma once

#include <string>

namespace trainctl {

// A private folder trainctl-<user>-XXXXXX. Those that runs before it left behind, because they were killed, go first.
class ScratchFolder {
 public:
  // Throws Error{resource} where nothing can be written to `parent`.
  explicit ScratchFolder(const std::string& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // held while the owner lives
};

}  // namespace trainctl
