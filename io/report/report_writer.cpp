// When report.html is written.
#include "io/report/report_writer.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/report/run_report.h"

namespace trainctl {
namespace {

constexpr double shortest_wait = 10;  // seconds between pages

}  // namespace

void ReportWriter::epoch(const EpochEvent&) {
  if (seconds_now() >= next_) write();
}

void ReportWriter::end(const EndEvent&) { write(); }

void ReportWriter::write() {
  const double begin = seconds_now();
  try {
    write_file(directory_ + "/report.html", run_page(load_run_report(directory_)));
  } catch (const Error& error) {
    if (!warned_) log::warning(format("no report of the run is written: {}", error.what()));
    warned_ = true;
  }
  const double end = seconds_now();
  next_ = end + std::max(shortest_wait, 100 * (end - begin));
}

}  // namespace trainctl
