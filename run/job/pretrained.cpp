// Checks and loads the weights that a network begins with.
#include "run/job/pretrained.h"

#include "core/program/teachers.h"
#include "io/weights/load.h"
#include "run/job/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

Graph whole_network(const RunSpec& spec, const DataInfo& data) {
  Reader reader;
  Graph graph = build_model(spec.model, {.inputs = data.inputs, .training = false}, reader).graph;
  reader.throw_if_failed();
  return graph;
}

}  // namespace

void check_pretrained(const RunSpec& spec, const DataInfo& data) {
  if (spec.model.weights) check_weights(*spec.model.weights, whole_network(spec, data));
}

std::optional<LoadedWeights> load_pretrained(const RunSpec& spec, const DataInfo& data) {
  if (!spec.model.weights) return std::nullopt;
  const std::vector<ProgramSpec::Teacher> teachers = program_spec(spec, data).teachers;
  const auto followed = [&](const std::string& name) {
    std::string of;
    for (const ProgramSpec::Teacher& teacher : teachers) {
      if (of.empty()) of = followed_by(teacher, name);
    }
    return of;
  };
  return load_weights(*spec.model.weights, whole_network(spec, data), spec.seed, followed);
}

}  // namespace trainctl
