// A base for sources that wrap another source and only change next().
#pragma once

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

class ForwardedSource : public BatchSource {
 public:
  DataPosition position() const override { return source_.position(); }
  std::int64_t samples_per_epoch() const override { return source_.samples_per_epoch(); }
  std::int64_t batch_size() const override { return source_.batch_size(); }
  std::int64_t last_batch_size() const override { return source_.last_batch_size(); }
  std::int64_t batch_bytes() const override { return source_.batch_bytes(); }

 protected:
  // The source must outlive the object.
  explicit ForwardedSource(BatchSource& source) : source_(source) {}

  BatchSource& source_;
};

}  // namespace trainctl
