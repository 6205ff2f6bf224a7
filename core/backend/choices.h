// KernelChoices: records the implementation that was chosen for each computation. Rank 0 times a choice once; all ranks
// and later runs reuse it.
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
  // The recorded implementation, if there is one. find() and record() mark the key as used (see used()).
  std::optional<std::string> find(std::string_view key);
  void record(const std::string& key, const std::string& implementation);

  // Forbids timing from now on. For a computation without a record a backend then uses its library's first
  // implementation, does not record it, and calls assume() if it had several to choose from.
  void stop_timing() { timing_ = false; }
  // Sets a function that is called before each timing, with the key of the computation.
  void watch_timing(std::function<void(const std::string&)> watcher) { watcher_ = std::move(watcher); }

  // Tells a backend whether it may time implementations for this key. If so, calls the watcher.
  bool may_time(const std::string& key) const {
    if (timing_ && watcher_) watcher_(key);
    return timing_;
  }
  void assume(const std::string& key) { assumed_.insert(key); }
  // The number of keys that were passed to assume().
  std::size_t assumed() const { return assumed_.size(); }

  bool empty() const { return choices_.empty(); }
  std::size_t size() const { return choices_.size(); }
  bool operator==(const KernelChoices& other) const { return choices_ == other.choices_; }
  // The choices that were found or recorded in the lifetime of this object: those of the programs that were lowered
  // with it.
  KernelChoices used() const;

  // One line for each choice, "key<tab>implementation", in the order of the keys.
  std::string text() const;
  // Adds the choices that text() wrote, replacing those with equal keys. Throws Error{data} on a malformed line.
  void add(std::string_view text);

  // The contents of a file: a line with a checksum, then text(). add_file() adds the choices of such contents; it
  // throws Error{data} and adds no choice if the checksum does not match.
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
