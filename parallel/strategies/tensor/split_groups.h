// Groups of layers that are split together, since split tensors connect them, and whether splitting them saves time.
#pragma once

#include <cstddef>
#include <vector>

namespace trainctl {

// The least number of multiply-adds per exchanged value for which a split saves time. It is about the number that a
// core computes while a value is moved from rank to rank through a host's memory.
inline constexpr double least_work = 32;

// The number of multiply-adds that take as long as the update of a parameter. A core moves about three values for an
// update.
inline constexpr double work_of_update = 3 * least_work;

struct SplitGroup {
  double work = 0;                  // multiply-adds of its layers, or an equivalent
  double exchanged = 0;             // number of values that the ranks exchange for the group, forward and backward
  std::vector<std::size_t> begins;  // numbers of the ops at which tensors become split

  bool is_worthwhile() const { return work >= least_work * exchanged; }
};

class SplitGroups {
 public:
  bool empty() const { return entries_.empty(); }
  // Returns the number of a new group.
  int add() {
    entries_.push_back({});
    return static_cast<int>(entries_.size()) - 1;
  }
  // Returns the group with this number, or the group that it was joined to. The reference is valid until the next
  // add().
  SplitGroup& operator[](int number) { return entry(root_of(number)).group; }

  void join(int one, int other) {
    one = root_of(one), other = root_of(other);
    if (one == other) return;
    SplitGroup &into = entry(one).group, &from = entry(other).group;
    into.work += from.work;
    into.exchanged += from.exchanged;
    into.begins.insert(into.begins.end(), from.begins.begin(), from.begins.end());
    entry(other).joined = one;
  }

  // Returns the ops that begin groups that do not save time.
  std::vector<std::size_t> not_worthwhile() const {
    std::vector<std::size_t> ops;
    for (const Entry& entry : entries_) {
      const std::vector<std::size_t>& begins = entry.group.begins;
      if (entry.joined < 0 && !entry.group.is_worthwhile()) ops.insert(ops.end(), begins.begin(), begins.end());
    }
    return ops;
  }

 private:
  struct Entry {
    SplitGroup group;
    int joined = -1;  // number of the group to which this one was joined; -1: not joined
  };
  Entry& entry(int number) { return entries_[static_cast<std::size_t>(number)]; }
  int root_of(int number) {
    while (entry(number).joined >= 0) number = entry(number).joined;
    return number;
  }

  std::vector<Entry> entries_;
};

}  // namespace trainctl
