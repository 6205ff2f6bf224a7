// Collectives as kernels.
#include "core/exec/collectives.h"

#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

class AllReduceKernel final : public Kernel {
 public:
  AllReduceKernel(int bucket, View data, CollectiveStreams& streams)
      : bucket_(bucket), data_(data), streams_(streams) {}
  void run(Stream& stream, const Slot&) override { streams_.all_reduce(bucket_, data_, stream); }

 private:
  int bucket_;
  View data_;
  CollectiveStreams& streams_;
};

class WaitKernel final : public Kernel {
 public:
  WaitKernel(int bucket, CollectiveStreams& streams) : bucket_(bucket), streams_(streams) {}
  void run(Stream& stream, const Slot&) override { streams_.wait(bucket_, stream); }

 private:
  int bucket_;
  CollectiveStreams& streams_;
};

}  // namespace

CollectiveStreams::CollectiveStreams(Backend& backend, Communicator& communicator, Stream& communication, int buckets)
    : communicator_(communicator), communication_(communication) {
  for (int bucket = 0; bucket < buckets; ++bucket) {
    ready_.push_back(backend.event());
    reduced_.push_back(backend.event());
  }
}

void CollectiveStreams::all_reduce(int bucket, View data, Stream& compute) {
  const auto b = static_cast<std::size_t>(bucket);
  if (&compute != &communication_) {
    ready_[b]->record(compute);
    ready_[b]->wait(communication_);
  }
  communicator_.all_reduce(data, Reduction::sum, communication_);
  if (&compute != &communication_) reduced_[b]->record(communication_);
}

void CollectiveStreams::wait(int bucket, Stream& compute) {
  if (&compute != &communication_) reduced_[static_cast<std::size_t>(bucket)]->wait(compute);
}

std::unique_ptr<Kernel> bind_collective(const Op& op, View gradients, CollectiveStreams& streams) {
  if (const auto* wait = op.get_if<WaitBucket>()) return std::make_unique<WaitKernel>(wait->bucket, streams);
  const auto& reduce = op.as<AllReduce>();
  return std::make_unique<AllReduceKernel>(reduce.bucket, gradients.part(reduce.offset, reduce.count), streams);
}

}  // namespace trainctl
