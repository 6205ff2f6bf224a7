// Tests the loader: every sample comes exactly once, and batches do not depend on the workers, the prefetched batches
// and the ranks.
#include "io/loader/batches/loader.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "core/base/flight_state.h"
#include "core/tensor/sample_numbers.h"
#include "io/datasets/synthetic.h"
#include "io/loader/batches/worker_tuning.h"
#include "io/loader/splits/split.h"
#include "test/catch.h"

namespace trainctl::loader_test {
namespace {

// A data set whose sample i is [i, i + 0.5, i + 1] and has class i % 7. Reading takes varying time, and fails for
// sample `broken`.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::int64_t n, std::int64_t broken = -1) : n_(n), broken_(broken) {
    info_.sample = {3};
    info_.classes = 7;
  }
  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return n_; }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t i) const override { return static_cast<std::int32_t>(i % 7); }
  std::string name_of(std::int64_t i) const override { return "number " + std::to_string(i); }
  void read(std::int64_t i, Sample& sample) const override {
    if (i == broken_) data_error(name_of(i), "is broken");
    if (i % 5 == 0) std::this_thread::yield();
    sample.shape = info_.sample;
    sample.dtype = DType::float32;
    sample.buffer.resize(3 * sizeof(float));
    auto* values = reinterpret_cast<float*>(sample.buffer.data());
    for (int k = 0; k < 3; ++k) values[k] = static_cast<float>(i) + 0.5f * static_cast<float>(k);
    sample.values = values;
  }

 private:
  std::int64_t n_, broken_;
  DatasetInfo info_;
};

std::shared_ptr<const DataSplit> split_of(std::shared_ptr<const Dataset> dataset, OnError on_error = OnError::stop,
                                          bool cache = false) {
  auto transform = std::make_shared<Transform>(dataset->info().sample, DType::float32, std::vector<GeometryStep>{},
                                               std::vector<GeometryStep>{}, Affine{{2.0}, {1.0}});
  const Subset all = Subset::all(dataset->size());
  return std::make_shared<DataSplit>(std::vector<DataSplit::Input>{{dataset, std::move(transform)}},
                                     DataSplit::Targets{{dataset}}, all,
                                     DataSplit::Options{1, on_error, cache ? memory_cache : MakeCache{}});
}

// A copy of a batch without its times.
struct Copy {
  std::vector<std::int64_t> samples;
  std::vector<float> inputs, weights;
  std::vector<std::int32_t> labels;
  std::int64_t global_count = 0;
  DataPosition position, position_after;
  bool last = false;

  bool operator==(const Copy&) const = default;
};

Copy copy_of(const Batch& batch, const BatchSource& source) {
  const auto* inputs = batch.inputs[0].as<float>();
  const auto* labels = batch.targets[0].as<std::int32_t>();
  REQUIRE(batch.inputs[0].count == 3 * batch.count);
  REQUIRE(batch.targets[0].dtype == DType::int32);
  Copy copy;
  copy.samples.assign(batch.samples.as<std::int64_t>(), batch.samples.as<std::int64_t>() + batch.count);
  copy.inputs.assign(inputs, inputs + batch.inputs[0].count);
  copy.weights.assign(batch.weights.as<float>(), batch.weights.as<float>() + batch.count);
  copy.labels.assign(labels, labels + batch.count);
  copy.global_count = batch.global_count;
  copy.position = batch.position;
  copy.position_after = source.position();
  copy.last = batch.last_of_epoch;
  return copy;
}

void append(Copy& to, const Copy& from) {
  to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
  to.inputs.insert(to.inputs.end(), from.inputs.begin(), from.inputs.end());
  to.weights.insert(to.weights.end(), from.weights.begin(), from.weights.end());
  to.labels.insert(to.labels.end(), from.labels.begin(), from.labels.end());
}

// The next global batch, joined from all ranks.
Copy next_of(std::vector<std::unique_ptr<BatchSource>>& ranks, const std::vector<double>& speeds = {}) {
  Copy all;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Batch& batch = ranks[r]->next();
    const Copy copy = copy_of(batch, *ranks[r]);
    const BatchDivision division(replica(static_cast<int>(r), static_cast<int>(ranks.size())), speeds);
    const Share share = share_of(batch.global_count, division);
    CHECK(batch.count == share.count);
    if (r == 0) {
      all = copy;
    } else {
      CHECK(copy.position == all.position);
      CHECK(copy.position_after == all.position_after);
      append(all, copy);
    }
  }
  return all;
}

std::vector<std::unique_ptr<BatchSource>> sources(const std::shared_ptr<const DataSplit>& split, LoaderOptions options,
                                                  int ranks, const std::vector<double>& speeds = {}) {
  std::vector<std::unique_ptr<BatchSource>> result;
  for (int rank = 0; rank < ranks; ++rank) {
    options.rank = {replica(rank, ranks), speeds};
    result.push_back(make_loader(split, options));
  }
  return result;
}

}  // namespace

TEST_CASE("batches contain the samples of the data set") {
  const auto split = split_of(std::make_shared<Numbers>(100));
  const auto source = make_loader(split, {.batch_size = 7, .start = {3, 0, 0}, .workers = 2});
  for (int k = 0; k < 30; ++k) {
    const Batch& batch = source->next();
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const std::int64_t sample = batch.samples.as<std::int64_t>()[i];
      CHECK(batch.targets[0].as<std::int32_t>()[i] == sample % 7);
      CHECK(batch.weights.as<float>()[i] == 1);
      for (int c = 0; c < 3; ++c) {
        CHECK(batch.inputs[0].as<float>()[3 * i + c] ==
              2 * (static_cast<float>(sample) + 0.5f * static_cast<float>(c)) + 1);
      }
    }
  }
  CHECK(source->samples_per_epoch() == 100);
  CHECK(source->batch_size() == 7);
  CHECK(source->last_batch_size() == 2);
}

TEST_CASE("every epoch has every sample exactly once, in an order of its own, on any number of ranks") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const std::int64_t n = static_cast<std::int64_t>(random() % 90) + 1;
    LoaderOptions options{.batch_size = static_cast<std::int64_t>(random() % 24) + 1, .start = {random(), 0, 0}};
    options.workers = static_cast<int>(random() % 5);
    options.prefetch = {static_cast<int>(random() % 3) + 1};
    const int ranks = static_cast<int>(random() % 5) + 1;
    const auto split = split_of(std::make_shared<Numbers>(n), OnError::stop, trial % 3 == 0);
    std::vector<double> speeds;  // set in every other trial
    for (int r = 0; r < ranks && trial % 2 == 1; ++r) speeds.push_back(1.0 + static_cast<double>(random() % 40) / 7);
    auto all = sources(split, options, ranks, speeds);
    std::vector<std::vector<std::int64_t>> epochs(3);
    for (auto& epoch : epochs) {
      for (bool last = false; !last;) {
        const Copy batch = next_of(all, speeds);
        CHECK(static_cast<std::int64_t>(batch.samples.size()) == batch.global_count);
        epoch.insert(epoch.end(), batch.samples.begin(), batch.samples.end());
        last = batch.last;
      }
      CHECK(static_cast<std::int64_t>(epoch.size()) == n);
      CHECK(static_cast<std::int64_t>(std::set<std::int64_t>(epoch.begin(), epoch.end()).size()) == n);
    }
    if (n > 20) CHECK(epochs[0] != epochs[1]);
  }
}

TEST_CASE("batches do not depend on the workers, the prefetched batches, the cache and the ranks") {
  for (const std::int64_t batch_size : {1, 5, 16}) {
    const auto dataset = std::make_shared<Numbers>(53);
    std::vector<Copy> expected;
    for (int workers : {0, 1, 2, 4}) {
      for (int prefetch : {1, 2, 5}) {
        for (int ranks : {1, 2, 3, 5}) {
          const auto split = split_of(dataset, OnError::stop, (workers + ranks) % 2 == 0);
          LoaderOptions options{.batch_size = batch_size, .start = {8, 1, 11}, .workers = workers};
          options.tuned = prefetch == 2;
          options.prefetch = {prefetch};
          auto all = sources(split, options, ranks);
          for (std::size_t k = 0; k < 30; ++k) {
            const Copy batch = next_of(all);
            if (expected.size() <= k) {
              expected.push_back(batch);
            } else {
              REQUIRE(batch == expected[k]);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("workers are added while steps wait for data, up to the number needed or allowed") {
  // A worker reads a batch in `reading` seconds and a step computes for `computing` seconds; steps wait if reading is
  // slower. Returns the number of workers after all steps.
  const auto workers_after = [](double reading, double computing, int limit, int steps) {
    WorkerTuning tuning(limit, 3);
    double now = 5;
    for (int i = 0; i < steps; ++i) {
      const double waited = std::max(0.0, reading / tuning.workers() - computing);
      now += computing + waited;
      const int before = tuning.workers();
      const bool more = tuning.add(waited, now);
      CHECK(more == (tuning.workers() > before));
      CHECK(tuning.workers() >= before);
    }
    return tuning.workers();
  };
  CHECK(workers_after(0.01, 0.01, 8, 500) == 1);
  CHECK(workers_after(0.01, 0.0099, 8, 500) == 1);  // a wait of a hundredth of a step adds no worker
  CHECK(workers_after(0.1, 0.025, 8, 500) == 4);
  CHECK(workers_after(0.1, 0.025, 2, 500) == 2);
  CHECK(workers_after(0.1, 0, 16, 30) == 16);
  CHECK(workers_after(0.1, 0, 16, 3) == 1);  // the first steps do not count, since they read prefetched batches
  const int just_enough = workers_after(3e-4, 1e-4, 8, 1000);
  CHECK((just_enough == 3 || just_enough == 4));  // rounding may add one more
  CHECK(workers_after(1, 0, 1, 100) == 1);
}

TEST_CASE("a loader that tunes itself wakes sleeping workers, and can end while workers sleep") {
  const auto slow = split_of(std::make_shared<Numbers>(64));
  LoaderOptions options{.batch_size = 8, .start = {1, 0, 0}, .workers = 6};
  options.tuned = true;
  auto source = make_loader(slow, options);
  source->next();
  source.reset();
  source = make_loader(slow, options);
  for (int i = 0; i < 3000; ++i) source->next();
}

TEST_CASE("a resume with other ranks and workers sees every remaining sample exactly once") {
  std::mt19937 random(6);
  for (int trial = 0; trial < 40; ++trial) {
    const std::int64_t n = static_cast<std::int64_t>(random() % 100) + 10;
    const auto split = split_of(std::make_shared<Numbers>(n));
    LoaderOptions options{.batch_size = static_cast<std::int64_t>(random() % 12) + 1, .start = {random(), 0, 0}};
    options.workers = static_cast<int>(random() % 3);
    auto before = sources(split, options, static_cast<int>(random() % 4) + 1);
    auto undisturbed = sources(split, options, 1);
    DataPosition position;
    std::multiset<std::int64_t> seen;
    const int steps = static_cast<int>(random() % 8);
    std::vector<Copy> expected;
    for (int k = 0; k < 60; ++k) expected.push_back(next_of(undisturbed));
    position = options.start;
    for (int k = 0; k < steps; ++k) position = next_of(before).position_after;
    options.start = position;
    options.workers = static_cast<int>(random() % 3);
    auto after = sources(split, options, static_cast<int>(random() % 4) + 1);
    for (int k = steps; k < 60; ++k) REQUIRE(next_of(after) == expected[static_cast<std::size_t>(k)]);
  }
}

TEST_CASE("evaluation reads the split in its order, repeatedly") {
  const auto split = split_of(std::make_shared<Numbers>(10));
  auto all = sources(split, {.batch_size = 4, .start = {1, 0, 0}, .training = false, .workers = 2}, 3);
  for (int pass = 0; pass < 3; ++pass) {
    CHECK(next_of(all).samples == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK(next_of(all).samples == std::vector<std::int64_t>{4, 5, 6, 7});
    const Copy last = next_of(all);
    CHECK(last.samples == std::vector<std::int64_t>{8, 9});
    CHECK(last.last);
  }
}

TEST_CASE("without shuffling an epoch keeps the order of the data set") {
  const auto split = split_of(std::make_shared<Numbers>(6));
  const auto source = make_loader(split, {.batch_size = 6, .start = {1, 0, 0}, .shuffle = false});
  for (int epoch = 0; epoch < 2; ++epoch)
    CHECK(copy_of(source->next(), *source).samples == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("an error in a worker is thrown to the caller at its batch") {
  for (int workers : {0, 1, 3}) {
    const auto split = split_of(std::make_shared<Numbers>(40, 29));
    const auto source = make_loader(
        split, {.batch_size = 8, .start = {1, 0, 0}, .shuffle = false, .workers = workers, .prefetch = {4}});
    for (int k = 0; k < 3; ++k) CHECK(source->next().count == 8);
    try {
      source->next();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      CHECK(std::string(error.what()).find("number 29") != std::string::npos);
    }
  }
}

TEST_CASE("a skipped sample has weight 0, and in training another sample replaces it") {
  const auto split = split_of(std::make_shared<Numbers>(9, 4), OnError::skip);
  std::vector<float> replacements;  // by epoch, the same for any number of ranks
  for (const int ranks : {1, 3}) {
    std::vector<float> of_epochs;
    const auto source = make_loader(
        split, {.batch_size = 9, .rank = MeshRank({ranks, 1, 1}, ranks / 2), .start = {1, 0, 0}, .shuffle = false});
    for (int epoch = 0; epoch < 20; ++epoch) {
      const Copy batch = copy_of(source->next(), *source);
      const std::size_t first = ranks == 1 ? 0 : 3;  // first sample of the rank's share
      for (std::size_t i = 0; i < batch.weights.size(); ++i) {
        const bool skipped = first + i == 4;
        CHECK(batch.weights[i] == (skipped ? 0 : 1));
        CHECK(batch.samples[i] == (skipped ? skipped_sample(4) : static_cast<std::int64_t>(first + i)));
      }
      of_epochs.push_back(batch.inputs[3 * (4 - first)]);
      CHECK(std::count(batch.inputs.begin(), batch.inputs.end(), 0.0f) == 0);
    }
    if (ranks == 1) replacements = of_epochs;
    CHECK(of_epochs == replacements);
  }
  CHECK(std::set<float>(replacements.begin(), replacements.end()).size() > 3);  // other samples in other epochs
  const auto evaluated = make_loader(split, {.batch_size = 9, .start = {1, 0, 0}, .training = false, .shuffle = false});
  const Copy batch = copy_of(evaluated->next(), *evaluated);
  CHECK(batch.inputs[12] == 0);
  CHECK(batch.weights[4] == 0);
}

TEST_CASE("a source may be destroyed at any moment") {
  const auto split = split_of(std::make_shared<Numbers>(1000));
  for (int k = 0; k < 40; ++k) {
    const auto source =
        make_loader(split, {.batch_size = 16, .start = {1, 0, 0}, .workers = k % 5, .prefetch = {1 + k % 3}});
    for (int i = 0; i < k % 7; ++i) source->next();
  }
}

TEST_CASE("a batch is no larger than the data") {
  const auto split = split_of(std::make_shared<Numbers>(5));
  const auto source = make_loader(split, {.batch_size = 64, .start = {1, 0, 0}});
  CHECK(source->batch_size() == 5);
  CHECK(source->next().last_of_epoch);
  CHECK(source->position() == DataPosition{1, 1, 0});
}

namespace {

// A data set whose reads of the samples from `first` on block until release().
class Hanging final : public Dataset {
 public:
  explicit Hanging(std::int64_t first) : inner_(100), first_(first) {}
  const DatasetInfo& info() const override { return inner_.info(); }
  std::int64_t size() const override { return inner_.size(); }
  bool in_memory() const override { return false; }
  std::int32_t label(std::int64_t i) const override { return inner_.label(i); }
  std::string name_of(std::int64_t i) const override { return inner_.name_of(i); }
  void read(std::int64_t i, Sample& sample) const override {
    if (i >= first_) hangs_.wait(true);
    inner_.read(i, sample);
  }
  void release() const {
    hangs_ = false;
    hangs_.notify_all();
  }

 private:
  Numbers inner_;
  std::int64_t first_;
  mutable std::atomic<bool> hangs_{true};
};

}  // namespace

TEST_CASE("if reads hang, batches after a request to stop are incomplete and the loader does not wait") {
  for (int workers : {0, 1, 3}) {
    const auto dataset = std::make_shared<Hanging>(30);
    std::atomic<bool> requested{false};
    std::thread user;
    {
      const auto source = make_loader(split_of(dataset), {.batch_size = 10,
                                                          .rank = replica(1, 2),
                                                          .start = {1, 0, 0},
                                                          .shuffle = false,
                                                          .workers = workers,
                                                          .stop_requested = [&] { return requested.load(); }});
      for (int k = 0; k < 3; ++k) CHECK(source->next().complete);
      const DataPosition position_after = source->position();
      CHECK(position_after == DataPosition{1, 0, 30});
      user = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        requested = true;
      });
      for (int k = 3; k < 6; ++k) {
        const Batch& batch = source->next();
        CHECK_FALSE(batch.complete);
        CHECK(batch.position.offset == 10 * k);
        REQUIRE(batch.count == 5);
        for (int i = 0; i < 5; ++i) {
          CHECK(std::isnan(batch.weights.as<float>()[i]));
          CHECK(batch.targets[0].as<std::int32_t>()[i] == 0);
          CHECK(batch.inputs[0].as<float>()[3 * i] == 0);
        }
        CHECK(source->position() == position_after);
      }
    }
    user.join();
    dataset->release();  // so that the abandoned workers end
  }
}

TEST_CASE("a sample for which next() waits is named in the flight record, until it has been read") {
  std::string folder = (std::filesystem::temp_directory_path() / "loader-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  for (int workers : {0, 1, 3}) {
    FlightRecord record(folder, 0, 1, "here");
    record.set_step(4);
    const auto dataset = std::make_shared<Hanging>(35);
    const auto source = make_loader(
        split_of(dataset), {.batch_size = 10, .start = {1, 0, 0}, .shuffle = false, .workers = workers, .flight = [&] {
                              return &record;
                            }});
    for (int k = 0; k < 3; ++k) source->next();
    CHECK(read_flight_record(record.path()).lines.size() == 1);  // these batches came at once
    std::thread user([&] {
      std::optional<FlightEvent> reading;
      for (int i = 0; i < 100 && !reading; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        for (const FlightHistory& line : read_flight_record(record.path()).lines) {
          if (line.thread == FlightThread::data && !line.events.empty()) reading = line.events.back();
        }
        // A worker that was interrupted may have been reading an earlier sample.
        if (reading && reading->text < "number 35") reading.reset();
      }
      dataset->release();
      CHECK((reading && reading->under_way() && reading->step == 4));
      // Another worker reads a later sample of the batch, and the third one reads the next batch.
      CHECK((reading && reading->text >= "number 35" && reading->text <= "number 39"));
    });
    source->next();
    user.join();
    CHECK_FALSE(read_flight_record(record.path()).lines.at(1).events.back().under_way());
  }
  std::filesystem::remove_all(folder);
}

}  // namespace trainctl::loader_test
