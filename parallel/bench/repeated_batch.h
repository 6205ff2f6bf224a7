// A source whose every batch is the first one of another source: steps that never wait for data.
#pragma once

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

class RepeatedBatch final : public BatchSource {
 public:
  // Takes one batch of the source, which outlives the object and is not used otherwise.
  explicit RepeatedBatch(BatchSource& source) : source_(source), batch_(source.next()) { batch_.waited_seconds = 0; }

  const Batch& next() override { return batch_; }
  DataPosition position() const override { return source_.position(); }
  std::int64_t samples_per_epoch() const override { return source_.samples_per_epoch(); }
  std::int64_t batch_size() const override { return source_.batch_size(); }
  std::int64_t last_batch_size() const override { return source_.last_batch_size(); }
  std::int64_t batch_bytes() const override { return source_.batch_bytes(); }

 private:
  BatchSource& source_;
  Batch batch_;
};

}  // namespace trainctl
