// Hand-written steps of ops with given times and communications, and costs given as functions, for tests of the
// simulator.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/activations.h"
#include "parallel/plan/simulator.h"

namespace trainctl {

// One rank's step.
class HandWrittenStep {
 public:
  HandWrittenStep() {
    program_.segments = {{Phase::forward, {}, {}}};
    program_.schedule = {{0, 0, 0}};
  }
  HandWrittenStep& compute(double seconds) {
    const TensorId x = program_.add("x", {1}, DType::float32, Role::activation);
    const std::string name = "compute " + std::to_string(seconds_.size());
    seconds_[name] = seconds;
    return add({std::make_shared<Add>(), {x, x}, {x}, name, {}});
  }
  HandWrittenStep& reduce(const std::string& name, bool asynchronous, MeshAxis axis = MeshAxis::data) {
    const TensorId x = program_.add(name, {100}, DType::float32, Role::activation);
    return add({std::make_shared<AllReduce>(axis, asynchronous), {x}, {x}, name, {}});
  }
  HandWrittenStep& send(const std::string& name, int peer, bool asynchronous) {
    const TensorId x = program_.add(name, {100}, DType::float32, Role::activation);
    return add({std::make_shared<Send>(MeshAxis::pipeline, peer, asynchronous), {x}, {x}, name, {}});
  }
  HandWrittenStep& receive(const std::string& name, int peer, bool asynchronous) {
    const TensorType type{{100}, DType::float32};
    const TensorId y = program_.add(name, {100}, DType::float32, Role::activation);
    return add({std::make_shared<Receive>(MeshAxis::pipeline, peer, type, true, asynchronous), {}, {y}, name, {}});
  }
  HandWrittenStep& wait(const std::string& name) {
    TensorId made = no_tensor;
    for (std::size_t id = 0; id < program_.tensors.size(); ++id) {
      if (program_.tensors[id].name == name) made = static_cast<TensorId>(id);
    }
    return add({std::make_shared<Wait>(), {made}, {made}, name, {}});
  }

  const Program& program() const { return program_; }
  PlacedProgram placed() const {
    PlacedProgram placed;
    placed.program = program_;
    placed.program.segments.clear();
    placed.segments.push_back({});
    for (const Op& op : program_.segments[0].ops) placed.segments[0].ops.push_back({op, {}});
    placed.tensors.resize(program_.tensors.size());
    return placed;
  }
  double seconds_of(const std::string& name) const { return seconds_.at(name); }
  const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  HandWrittenStep& add(Op op) {
    program_.segments[0].ops.push_back(std::move(op));
    return *this;
  }

  Program program_;
  std::map<std::string, double> seconds_;
};

// Costs given as functions; a cost whose function is not set is 0.
struct GivenCosts final : Costs {
  std::function<double(const PlacedProgram&, int segment, int op)> op;
  std::function<TrafficSeconds(const Traffic&)> traffic;
  HostSeconds host;
  bool takes_cores = false;

  double op_seconds(const PlacedProgram& program, int segment, int number) const override {
    return op ? op(program, segment, number) : 0;
  }
  TrafficSeconds communication_seconds(const Traffic& of) const override {
    return traffic ? traffic(of) : TrafficSeconds{};
  }
  HostSeconds host_seconds(const PlacedProgram&) const override { return host; }
  bool communication_takes_cores() const override { return takes_cores; }
};

// Simulates the steps of the stages of a mesh, with one rank for each stage; each op takes the seconds given in its
// step.
inline SimulatedStep simulate(const Mesh& mesh, const std::vector<HandWrittenStep>& steps, GivenCosts costs = {},
                              int ranks_per_node = 1024, bool timeline = false) {
  costs.op = [&](const PlacedProgram& program, int segment, int op) {
    const std::string& name = program.op(segment, op).op.name;
    return steps[static_cast<std::size_t>(program.program.micro_batch_samples)].seconds_of(name);
  };
  std::vector<Program> programs;
  std::vector<PlacedProgram> placed;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    placed.push_back(steps[s].placed());
    placed.back().program.micro_batch_samples = static_cast<std::int64_t>(s);  // index of the step
  }
  std::vector<StageRank> ranks;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Mesh::Position position{mesh.data - 1, static_cast<int>(s), 0};
    ranks.push_back({&steps[s].program(), &placed[s], MeshRank(mesh, mesh.rank(position))});
  }
  return simulate_step(ranks, {ranks_per_node}, costs, timeline);
}

}  // namespace trainctl
