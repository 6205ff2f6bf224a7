// Tests pipeline schedules: every pass and message occurs once and in order, few micro-batches are in flight, and there
// is no deadlock, even if a send waits for its receive.
#include "parallel/strategies/pipeline/events.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/format.h"
#include "test/parallel/strategies/communication_script.h"

namespace trainctl::pipeline_schedule_test {
namespace {

using Kind = PipelineEvent::Kind;

// The messages of stage `own`: every stage sends activations to the next one, with skips the first stage sends them to
// all, and in training gradients return.
std::vector<StageMessage> messages_of(int stages, int own, bool skips, bool training) {
  std::vector<StageMessage> messages;
  for (int from = 0; from < stages; ++from) {
    for (int to = from + 1; to < stages; ++to) {
      if (to != from + 1 && (!skips || from != 0)) continue;
      if (from != own && to != own) continue;
      messages.push_back({true, from, to});
      if (training) messages.push_back({false, to, from});
    }
  }
  std::reverse(messages.begin(), messages.end());  // the order must not matter
  return messages;
}

struct Case {
  PipelineSchedule schedule;
  int stages, micro_batches;
  bool skips, training;
};

template <class Check>
void for_all(const Check& check) {
  for (const PipelineSchedule schedule : {PipelineSchedule::one_forward_one_backward, PipelineSchedule::gpipe}) {
    for (int stages = 2; stages <= 4; ++stages) {
      for (int micro_batches = 1; micro_batches <= 8; ++micro_batches) {
        for (const bool skips : {false, true}) {
          for (const bool training : {false, true}) {
            CAPTURE(static_cast<int>(schedule), stages, micro_batches, skips, training);
            check(Case{schedule, stages, micro_batches, skips, training});
          }
        }
      }
    }
  }
}

std::vector<PipelineEvent> events_of(const Case& of, int own) {
  return pipeline_events(of.schedule, of.stages, own, of.micro_batches, of.training,
                         messages_of(of.stages, own, of.skips, of.training));
}

}  // namespace

TEST_CASE("a stage runs every pass and message once, receives before it computes and sends after it") {
  for_all([](const Case& of) {
    for (int own = 0; own < of.stages; ++own) {
      const auto messages = messages_of(of.stages, own, of.skips, of.training);
      std::set<std::pair<int, int>> exchanged;
      std::set<int> forward, backward;
      for (const PipelineEvent& event : events_of(of, own)) {
        const int i = event.micro_batch;
        if (event.kind == Kind::forward) {
          CHECK(i == static_cast<int>(forward.size()));  // in their order
          CHECK(forward.insert(i).second);
        } else if (event.kind == Kind::backward) {
          CHECK(i == static_cast<int>(backward.size()));
          CHECK(forward.contains(i));
          CHECK(backward.insert(i).second);
        } else {
          const StageMessage& message = messages[static_cast<std::size_t>(event.message)];
          CHECK(exchanged.insert({event.message, i}).second);
          const std::set<int>& passed = message.forward ? forward : backward;
          CHECK(passed.contains(i) == (message.from == own));
        }
      }
      CHECK(static_cast<int>(forward.size()) == of.micro_batches);
      CHECK(static_cast<int>(backward.size()) == (of.training ? of.micro_batches : 0));
      CHECK(exchanged.size() == messages.size() * static_cast<std::size_t>(of.micro_batches));
    }
  });
}

TEST_CASE("1F1B has at most one micro-batch in flight for its own and each later stage, gpipe has all") {
  for_all([](const Case& of) {
    if (!of.training) return;
    for (int own = 0; own < of.stages; ++own) {
      std::map<int, int> left;
      for (const PipelineEvent& event : events_of(of, own)) ++left[event.micro_batch];
      std::set<int> in_flight;
      std::size_t max_in_flight = 0;
      for (const PipelineEvent& event : events_of(of, own)) {
        in_flight.insert(event.micro_batch);
        max_in_flight = std::max(max_in_flight, in_flight.size());
        if (--left[event.micro_batch] == 0) in_flight.erase(event.micro_batch);
      }
      const bool gpipe = of.schedule == PipelineSchedule::gpipe;
      CHECK(static_cast<int>(max_in_flight) == std::min(of.micro_batches, gpipe ? of.micro_batches : of.stages - own));
    }
  });
}

TEST_CASE("the stages never wait for each other in a cycle") {
  for_all([](const Case& of) {
    std::vector<Script> scripts;
    for (int own = 0; own < of.stages; ++own) {
      const auto messages = messages_of(of.stages, own, of.skips, of.training);
      Script& script = scripts.emplace_back();
      for (const PipelineEvent& event : events_of(of, own)) {
        if (event.kind != Kind::message) continue;
        const StageMessage& message = messages[static_cast<std::size_t>(event.message)];
        // The count identifies the message, so that only the two ends of the same message match.
        const std::int64_t count = 1 + event.micro_batch + 10 * (message.from + 10 * message.to);
        const std::string name = format("{}-{} {}", message.from, message.to, event.micro_batch);
        message.from == own ? script.send(name, MeshAxis::pipeline, message.to, count)
                            : script.receive(name, MeshAxis::pipeline, message.from, count);
      }
    }
    CHECK(problem_of({1, of.stages, 1}, scripts).text.empty());
  });
}

}  // namespace trainctl::pipeline_schedule_test
