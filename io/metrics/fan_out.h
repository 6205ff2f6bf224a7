// One sink that hands every event to several.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

class MetricsFanOut final : public MetricsSink {
 public:
  void add(std::unique_ptr<MetricsSink> sink) { sinks_.push_back(std::move(sink)); }

  void start(const StartEvent& event) override {
    each([&](MetricsSink& sink) { sink.start(event); });
  }
  void step(const StepEvent& event) override {
    each([&](MetricsSink& sink) { sink.step(event); });
  }
  void epoch(const EpochEvent& event) override {
    each([&](MetricsSink& sink) { sink.epoch(event); });
  }
  void checkpoint(const CheckpointEvent& event) override {
    each([&](MetricsSink& sink) { sink.checkpoint(event); });
  }
  void end(const EndEvent& event) override {
    each([&](MetricsSink& sink) { sink.end(event); });
  }

 private:
  template <class Hand>
  void each(const Hand& hand) {
    for (const auto& sink : sinks_) hand(*sink);
  }

  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

}  // namespace trainctl
