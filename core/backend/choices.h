// KernelChoices: which implementation was chosen for which computation, so that a choice is timed once, by rank 0, and
// then replayed by all ranks and runs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace trainctl {

// Keys name a computation ("conv2d 3x3 f32 64x32x32x16 ... threads=1"), values an implementation of the backend.
class KernelChoices {
 public:
  // The recorded implementation, if there is one. It counts as used from now on, as does what is recorded.
  std::optional<std::string> find(std::string_view key);
  void record(const std::string& key, const std::string& implementation);

  bool empty() const { return choices_.empty(); }
  std::size_t size() const { return choices_.size(); }
  bool operator==(const KernelChoices& other) const { return choices_ == other.choices_; }
  // Those that were looked up or recorded since the object began: what programs that were lowered with it need.
  KernelChoices used() const;

  // One line for each choice, "key<tab>implementation", in the order of the keys.
  std::string text() const;
  // Reads what text() wrote; adds to what is there, replacing equal keys. Throws Error{data} on a malformed line.
  void add(std::string_view text);

 private:
  std::map<std::string, std::string, std::less<>> choices_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace trainctl
