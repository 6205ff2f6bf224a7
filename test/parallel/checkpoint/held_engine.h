// An engine that computes nothing: it holds tensors in random shards, as a device would, and lets tests change them.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "core/exec/interfaces/step_engine.h"
#include "parallel/comm/host_memory.h"
#include "test/parallel/checkpoint/random_parts.h"

namespace trainctl::test {

class HeldEngine final : public StepEngine {
 public:
  HeldEngine(unsigned seed, int rank, int ranks)
      : weights_("", seed, rank, ranks), state_("adam/", seed + 1, rank, ranks) {
    for (const auto* tensors : {&weights(), &state()}) {
      for (const NamedTensor& tensor : *tensors) {
        device_[tensor.view.data].resize(static_cast<std::size_t>(tensor.view.count));
        std::fill_n(tensor.view.as<float>(), tensor.view.count, std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  // Trains: every element of the device's tensors becomes value_of(name, element) + step.
  void train_to(std::int64_t step) {
    for (const auto* tensors : {&weights(), &state()}) {
      for (const NamedTensor& tensor : *tensors) {
        std::size_t next = 0;
        std::vector<float>& values = device_.at(tensor.view.data);
        for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
          if (holds(tensor.extent, tensor.shape, i)) {
            values[next++] = value_of(tensor.name, i) + static_cast<float>(step);
          }
        }
      }
    }
  }

  void start(int, const Batch&, const StepInput&) override {}
  void finish(StepResult&) override {}
  int steps_at_once() const override { return 1; }
  void set_timing(bool) override {}
  const Phases& phases() const override { return phases_; }
  void set_observer(OpObserver*) override {}
  void download() override {
    for (const auto* tensors : {&weights(), &state()}) {
      for (const NamedTensor& tensor : *tensors) copy({&tensor, 1}, static_cast<std::byte*>(tensor.view.data));
    }
  }
  const std::vector<NamedTensor>& weights() const override { return weights_.tensors(); }
  const std::vector<NamedTensor>& state() const override { return state_.tensors(); }
  Memory allocate_host(std::int64_t bytes) override { return trainctl::allocate_host(bytes); }
  void copy(std::span<const NamedTensor> tensors, std::byte* to) override {
    for (const NamedTensor& tensor : tensors) {
      const auto* bytes = reinterpret_cast<const std::byte*>(device_.at(tensor.view.data).data());
      to = std::copy_n(bytes, tensor.view.bytes(), to);
    }
  }

 private:
  RankTensors weights_, state_;
  std::map<const void*, std::vector<float>> device_;  // by the address of the host's view
  Phases phases_;
};

}  // namespace trainctl::test
