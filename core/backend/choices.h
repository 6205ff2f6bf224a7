// KernelChoices: which implementation was chosen for which computation, so that a choice is timed once, by rank 0, and
// then replayed by all ranks and runs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace trainctl {

// Keys name a computation ("conv2d 3x3 f32 64x32x32x16 ... threads=1"), values an implementation of the backend.
class KernelChoices {
 public:
  // The recorded implementation, if there is one. It counts as used from now on, as does what is recorded.
  std::optional<std::string> find(std::string_view key);
  void record(const std::string& key, const std::string& implementation);

  // From now on nothing is timed: for what is not recorded a backend takes what its library puts first, does not record
  // it, and says so by assume() where there was a choice.
  void stop_timing() { timing_ = false; }
  // Calls back before each timing, with the key of what is timed.
  void watch_timing(std::function<void(const std::string&)> watcher) { watcher_ = std::move(watcher); }

  // For backends: whether they may time the ways to compute this, which is then watched.
  bool may_time(const std::string& key) const {
    if (timing_ && watcher_) watcher_(key);
    return timing_;
  }
  void assume(const std::string& key) { assumed_.insert(key); }
  // How many choices were assumed.
  std::size_t assumed() const { return assumed_.size(); }

  bool empty() const { return choices_.empty(); }
  std::size_t size() const { return choices_.size(); }
  bool operator==(const KernelChoices& other) const { return choices_ == other.choices_; }
  // Those that were looked up or recorded since the object began: what programs that were lowered with it need.
  KernelChoices used() const;

  // One line for each choice, "key<tab>implementation", in the order of the keys.
  std::string text() const;
  // Reads what text() wrote; adds to what is there, replacing equal keys. Throws Error{data} on a malformed line.
  void add(std::string_view text);

  // The same behind a line with a checksum, for a file of its own. add_file() throws Error{data} where anything of it
  // is not as it was written, and has added nothing then.
  std::string file_text() const;
  void add_file(std::string_view text);

 private:
  std::map<std::string, std::string, std::less<>> choices_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> assumed_;
  std::function<void(const std::string&)> watcher_;
  bool timing_ = true;
};

}  // namespace trainctl
