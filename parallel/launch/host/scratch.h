// A folder for the temporary files of one run, which is removed at its end.
#pragma once

#include <string>

namespace trainctl {

// A private folder trainctl-<user>-XXXXXX. The constructor first removes the folders of earlier runs that were killed.
class ScratchFolder {
 public:
  // Throws Error{resource} if `parent` is not writable.
  explicit ScratchFolder(const std::string& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // lock of the folder, held while its owner runs
};

}  // namespace trainctl
