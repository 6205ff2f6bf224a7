// Progress of work that is a number of like pieces: a bar on a terminal, lines elsewhere.
#pragma once

#include <string>

namespace trainctl {

class CountProgress {
 public:
  // "timing kernels 12/87"; `total` 0: unknown.
  CountProgress(std::string what, std::size_t total);
  ~CountProgress();  // leaves no bar behind
  CountProgress(const CountProgress&) = delete;
  CountProgress& operator=(const CountProgress&) = delete;

  // One more piece begins. On a terminal the bar is drawn ten times a second at most; elsewhere a line is logged after
  // two seconds, and then every ten.
  void next();

 private:
  std::string what_;
  std::size_t total_ = 0, count_ = 0;
  bool terminal_ = false, drawn_ = false;
  double due_ = 0;  // when something is shown next
};

}  // namespace trainctl
