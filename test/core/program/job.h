// Makes the programs of a small job that is written in YAML, for tests.
#pragma once

#include <string>

#include "core/layers/model/model_options.h"
#include "core/metrics/choices.h"
#include "core/metrics/metric.h"
#include "core/optim/choices.h"
#include "core/optim/optimizer.h"
#include "core/program/build.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"

namespace trainctl {

struct TestJob {
  ModelOptions model;
  ProgramSpec spec;

  explicit TestJob(const std::string& network, const std::string& optimizer = "adam",
                   const std::string& loss = "sparse_categorical_crossentropy",
                   const std::string& metric = "accuracy") {
    Reader reader;
    const Node node = expand_preset(parse_yaml(network, "test.yaml", ".", reader), load_preset, reader);
    section_of<ModelOptions>().read(node, reader, &model);
    spec.model = &model;
    spec.inputs[0].sample = {8, 8, 2};
    read_choice(loss_choices(), parse_yaml(loss, "", ".", reader), reader, spec.outputs[0].loss);
    read_choices(metric_choices(), parse_yaml("[" + metric + "]", "", ".", reader), reader, spec.outputs[0].metrics);
    read_choice(optimizer_choices(), parse_yaml(optimizer, "", ".", reader), reader, spec.optimizer);
    reader.throw_if_failed();
  }
  Program training(std::int64_t samples, int micro_batches = 1) const {
    Reader reader;
    Program program = training_program(spec, {samples / micro_batches, micro_batches}, reader);
    reader.throw_if_failed();
    return program;
  }
  // The error of the training program; "" if there is none.
  std::string error(std::int64_t samples) const {
    try {
      static_cast<void>(training(samples));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  Program evaluation(std::int64_t samples) const {
    Reader reader;
    Program program = evaluation_program(spec, samples, reader);
    reader.throw_if_failed();
    return program;
  }
  Program prediction(std::int64_t samples) const {
    Reader reader;
    Program program = prediction_program(spec, samples, reader);
    reader.throw_if_failed();
    return program;
  }
};

}  // namespace trainctl
