// Shows the progress of work that consists of equal pieces: a bar on a terminal, lines elsewhere.
#pragma once

#include <string>

namespace trainctl {

class CountProgress {
 public:
  // Shows texts such as "timing kernels 12/87". If `total` is 0, the total is unknown.
  CountProgress(std::string what, std::size_t total);
  ~CountProgress();  // erases the bar
  CountProgress(const CountProgress&) = delete;
  CountProgress& operator=(const CountProgress&) = delete;

  // Counts one more piece that begins. On a terminal the bar is drawn at most ten times a second; elsewhere a line is
  // logged after two seconds, and then every ten seconds.
  void next();

 private:
  std::string what_;
  std::size_t total_ = 0, count_ = 0;
  bool terminal_ = false, drawn_ = false;
  double due_ = 0;  // time of the next output
};

}  // namespace trainctl
