// Hand-written programs that only communicate, and the error that the communication check reports for them.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops/collectives.h"
#include "parallel/strategies/communication_check/check.h"
#include "test/catch.h"

namespace trainctl {

// The error that a check reports; empty if there is none.
struct Problem {
  std::string text;
  SourceLocation location;
};
template <class Check>
inline Problem problem_of(Check check) {
  try {
    check();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    return {error.what(), error.location()};
  }
  return {};
}
inline Problem problem_of(const Mesh& mesh, const std::vector<const Program*>& programs) {
  return problem_of([&] { check_communications(mesh, programs); });
}

// A hand-written program that only communicates.
class Script {
 public:
  explicit Script(std::string name = "step") {
    program_.name = std::move(name);
    program_.segments = {{Phase::forward, {}, {}}};
    program_.schedule = {{0, 0, 0}};
  }
  Script& reduce(const std::string& name, MeshAxis axis, std::int64_t count = 100, bool asynchronous = false) {
    return collective(name, std::make_shared<AllReduce>(axis, asynchronous), count, count);
  }
  Script& scatter(const std::string& name, MeshAxis axis, int ranks, std::int64_t count) {
    return collective(name, std::make_shared<ReduceScatter>(axis, ranks), ranks * count, count);
  }
  Script& gather(const std::string& name, MeshAxis axis, int ranks, std::int64_t count, DType dtype = DType::float32) {
    return collective(name, std::make_shared<AllGather>(axis, ranks), count, ranks * count, dtype);
  }
  Script& broadcast(const std::string& name, MeshAxis axis, int root, std::int64_t count) {
    return collective(name, std::make_shared<Broadcast>(axis, root, TensorType{{count}, DType::float32}), count, count);
  }
  Script& send(const std::string& name, MeshAxis axis, int peer, std::int64_t count = 100, bool asynchronous = false) {
    return collective(name, std::make_shared<Send>(axis, peer, asynchronous), count, count);
  }
  Script& receive(const std::string& name, MeshAxis axis, int peer, std::int64_t count = 100,
                  bool asynchronous = false) {
    const TensorType type{{count}, DType::float32};
    const TensorId y = program_.add(name, {count}, DType::float32, Role::activation);
    return add({std::make_shared<Receive>(axis, peer, type, true, asynchronous), {}, {y}, name, {"net.yaml", 7, 3}});
  }
  // Waits for the communication whose result is `name`.
  Script& wait(const std::string& name) {
    const auto made = std::find_if(program_.tensors.rbegin(), program_.tensors.rend(),
                                   [&](const Tensor& tensor) { return tensor.name == name; });
    const auto id = static_cast<TensorId>(program_.tensors.rend() - made) - 1;
    return add({std::make_shared<Wait>(), {id}, {id}, name, {}});
  }
  const Program& program() const { return program_; }

 private:
  Script& collective(const std::string& name, std::shared_ptr<const OpDef> def, std::int64_t from, std::int64_t to,
                     DType dtype = DType::float32) {
    const TensorId x = program_.add(name + "/x", {from}, dtype, Role::activation);
    const TensorId y = program_.add(name, {to}, dtype, Role::activation);
    return add({std::move(def), {x}, {y}, name, {"net.yaml", 7, 3}});
  }
  Script& add(Op op) {
    program_.segments[0].ops.push_back(std::move(op));
    return *this;
  }

  Program program_;
};

inline Problem problem_of(const Mesh& mesh, const std::vector<Script>& ranks) {
  std::vector<const Program*> programs;
  for (const Script& script : ranks) programs.push_back(&script.program());
  return problem_of(mesh, programs);
}

}  // namespace trainctl
