// Tests the progress that a run shows: the bar at every width, plain lines, and the summary.
#include "io/metrics/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/log.h"
#include "core/metrics/monitor.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::progress_test {
namespace {

ProgressState state() {
  ProgressState state;
  state.step = 1234;
  state.total_steps = 4690;
  state.steps_per_epoch = 938;
  state.epoch = 1234 / 938.0;
  state.loss = 0.123456;
  state.learning_rate = 0.1;
  state.samples_per_second = 45123.4;
  state.seconds_left = 72;
  return state;
}

}  // namespace

TEST_CASE("counts and times are formatted for people") {
  CHECK(count_text(0.5236) == "0.524");
  CHECK(count_text(12.34) == "12.3");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1000) == "1,000");
  CHECK(count_text(45123.4) == "45,123");
  CHECK(count_text(1234567) == "1,234,567");
  CHECK(time_text(0.52) == "0.5 s");
  CHECK(time_text(59.2) == "59 s");
  CHECK(time_text(59.6) == "1:00");
  CHECK(time_text(185) == "3:05");
  CHECK(time_text(7384) == "2:03:04");
}

TEST_CASE("the bar fits every width") {
  CHECK(bar_line(state(), 110) ==
        "epoch 2/5  1234/4690 [=======>                      ]  loss 0.1235  45,123 samples/s  ETA 1:12");
  CHECK(bar_line(state(), 75) == "epoch 2/5  1234/4690 [==>        ]  loss 0.1235  45,123 samples/s  ETA 1:12");
  CHECK(bar_line(state(), 50) == "epoch 2/5  1234/4690  loss 0.1235  ETA 1:12");
  for (int width = 0; width < 130; ++width) {
    const std::string line = bar_line(state(), width);
    CHECK(static_cast<int>(line.size()) <= width);
    if (width >= 9) CHECK(contains(line, "1234/4690"));
    if (width >= 22) CHECK(contains(line, "loss"));
  }
  ProgressState waiting = state();
  waiting.data_wait_share = 0.35;
  CHECK(contains(bar_line(waiting, 120), "waits 35 % for data"));
  waiting.total_steps = 0;
  waiting.seconds_left = -1;
  CHECK(bar_line(waiting, 120) == "1234  loss 0.1235  45,123 samples/s  waits 35 % for data");
}

TEST_CASE("the last step of an epoch belongs to it") {
  ProgressState at_end = state();
  at_end.step = 938;
  CHECK(bar_line(at_end, 80).find("epoch 1/5") == 0);
  at_end.step = 939;
  CHECK(bar_line(at_end, 80).find("epoch 2/5") == 0);
  at_end.step = 4690;
  CHECK(bar_line(at_end, 80).find("epoch 5/5") == 0);
  CHECK(contains(bar_line(at_end, 80), "=]"));
}

TEST_CASE("steps, epochs and the summary have their lines") {
  CHECK(step_line(state()) == "step 1234/4690  epoch 1.32  loss 0.1235  lr 0.1  45,123 samples/s");
  const EpochEvent epoch{2, 1876, {{"accuracy", 0.96115}, {"loss", 0.12345}}, {{"accuracy", 0.5}, {"loss", 2}}, 3.21};
  CHECK(epoch_line(epoch, 5) == "epoch 2/5  loss 0.1235  accuracy 0.9611  val_loss 2  val_accuracy 0.5  (3.2 s)");
  const EpochEvent part{0.0625, 2, {{"loss", 0.5}}, {}, 0.21};
  CHECK(epoch_line(part, 1) == "epoch 1/1, 6.2 % of it  loss 0.5  (0.2 s)");
  EndEvent early;
  early.status = "completed";
  early.reason = "early stopping: val_loss has not improved for 1 epoch";
  early.epoch = early.step = 1;
  CHECK(summary_lines(early, 0, "") ==
        std::vector<std::string>{"completed after 1 epoch, 1 step, 0.0 s", "  ended by     " + early.reason});
  EndEvent end;
  end.status = "completed";
  end.epoch = 5;
  end.step = 4690;
  end.seconds = 12.34;
  end.train = epoch.train;
  end.validation = epoch.validation;
  end.best_monitor = "val_accuracy";
  end.best_value = 0.75;
  end.best_step = 938;
  end.weights_sha256 = "0123abcd";
  CHECK(summary_lines(end, 45123, "runs/a/checkpoints/step-00004690") ==
        std::vector<std::string>{"completed after 5 epochs, 4,690 steps, 12 s, 45,123 samples/s",
                                 "  training     loss 0.1235  accuracy 0.9611", "  validation   loss 2  accuracy 0.5",
                                 "  best         val_accuracy 0.75 at step 938", "  weights      sha256 0123abcd",
                                 "  checkpoint   runs/a/checkpoints/step-00004690"});
}

TEST_CASE("lines and summary show the GPUs") {
  ProgressState with_gpu = state();
  with_gpu.gpu_utilization = 0.966;
  with_gpu.gpu_memory_bytes = 31.24e9;
  CHECK(step_line(with_gpu) == "step 1234/4690  epoch 1.32  loss 0.1235  lr 0.1  45,123 samples/s  GPU 97 %, 31.2 GB");
  CHECK(contains(bar_line(with_gpu, 130), "GPU 97 %, 31.2 GB"));
  CHECK_FALSE(contains(bar_line(with_gpu, 60), "GPU"));
  with_gpu.gpu_memory_bytes = GpuReading::unknown;
  CHECK(step_line(with_gpu).ends_with("GPU 97 %"));

  StartEvent start;
  start.device = "NVIDIA H100 80GB HBM3, sm_90, CUDA 13.0";
  start.flops_per_sample = 12.3e9;
  start.peak_flops = 2 * 989.4e12;
  EndEvent end;
  end.gpus = {2, 0.957, 1180, 2.5e6, 40.5e9, 0x4};
  CHECK(device_lines(start, end, 40000) ==
        std::vector<std::string>{
            "  GPUs         2, 96 % busy, 1180 W, 0.6944 kWh, at most 40.5 GB of memory, throttled: power cap",
            "  MFU          24.9 % of 1979 TFLOP/s (NVIDIA H100 80GB HBM3, by its data sheet)"});
  end.gpus = {1, GpuReading::unknown, 300, 4500, GpuReading::unknown, 0};
  start.peak_flops = 0;
  CHECK(device_lines(start, end, 40000) == std::vector<std::string>{"  GPUs         1, 300 W, 4.5 kJ"});
  CHECK(device_lines(start, EndEvent{}, 40000).empty());
}

TEST_CASE("plain progress writes exactly the steps that are due, with the mean rate since the last line") {
  const TemporaryFolder folder;
  log::set_level(log::Level::off);
  log::add_file(folder / "log.txt");
  {
    Progress progress(ProgressStyle::plain, Duration::steps(10));
    StartEvent start;
    start.steps_per_epoch = 20;
    start.total_steps = 40;
    progress.start(start);
    for (int step = 1; step <= 25; ++step) {
      StepEvent event;
      event.step = step;
      event.epoch = step / 20.0;
      event.loss = 1;
      event.samples_per_second = step % 2 ? 100 : 300;  // the mean over equal steps is harmonic: 150
      progress.step(event);
    }
    progress.checkpoint({20, "there", 0, 0});
    EndEvent end;
    end.status = "stopped";
    end.epoch = 1.25;
    end.step = 25;
    progress.end(end);
  }
  log::set_level(log::Level::info);
  std::vector<std::string> lines;
  std::istringstream text(read_text(folder / "log.txt"));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  REQUIRE(lines.size() == 4);
  CHECK(contains(lines[0], "step 10/40  epoch 0.50  loss 1.0000  lr 0  150 samples/s"));
  CHECK(contains(lines[1], "step 20/40  epoch 1.00"));
  CHECK(contains(lines[2], "stopped after 25 steps, in epoch 2, "));
  CHECK(contains(lines[3], "checkpoint   there"));
}

TEST_CASE("step lines come immediately at first, then every few seconds, and once a minute in a long run") {
  LineRate rate;
  std::vector<double> lines;
  for (int step = 0; step < 200000; ++step) {  // ten steps a second
    if (const double now = 100 + step / 10.0; rate(now)) lines.push_back(now - 100);
  }
  CHECK(lines[9] == Approx(0.9));
  CHECK(lines[10] == Approx(5.9));
  for (std::size_t i = 11; i < lines.size(); ++i) {
    const double interval = lines[i] - lines[i - 1];
    CHECK(interval >= 4.9);
    CHECK(interval <= 60.2);
  }
  CHECK(lines.back() - lines[lines.size() - 2] > 59);
  CHECK(lines.size() < 450);
}

TEST_CASE("the bar is as wide as the terminal is when it is drawn") {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  REQUIRE(grantpt(master) == 0);
  REQUIRE(unlockpt(master) == 0);
  const std::string path = ptsname(master);
  const int slave = open(path.c_str(), O_RDWR | O_NOCTTY);
  const int before = dup(STDERR_FILENO);
  const auto drawn = [&](const std::string& terminal, unsigned short columns) {
    const winsize size{24, columns, 0, 0};
    ioctl(master, TIOCSWINSZ, &size);
    std::string text(4096, '\0');
    {
      ProgressBar bar({100, terminal});
      dup2(slave, STDERR_FILENO);
      bar.draw(state());
      dup2(before, STDERR_FILENO);
      const winsize narrow{24, static_cast<unsigned short>(columns / 2), 0, 0};
      ioctl(master, TIOCSWINSZ, &narrow);
      text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(master, text.data(), text.size()))));
      dup2(slave, STDERR_FILENO);
      bar.draw(state());
      dup2(before, STDERR_FILENO);
    }
    std::string second(4096, '\0');
    second.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(master, second.data(), second.size()))));
    return std::pair(text, second);
  };
  for (const std::string& terminal : {path, std::string()}) {
    const auto [wide, narrow] = drawn(terminal, 80);
    CHECK(contains(wide, bar_line(state(), 79)));
    CHECK(contains(narrow, bar_line(state(), 39)));
    CHECK_FALSE(contains(narrow, "samples/s"));
  }
  for (int descriptor : {master, slave, before}) close(descriptor);
}

TEST_CASE("the name of a monitored metric decides which value is better") {
  CHECK(mode_of("val_accuracy") == MonitorMode::maximum);
  CHECK(mode_of("top_k_categorical_accuracy") == MonitorMode::maximum);
  CHECK(mode_of("val_auc") == MonitorMode::maximum);
  CHECK(mode_of("val_loss") == MonitorMode::minimum);
  CHECK(mode_of("mean_absolute_error") == MonitorMode::minimum);
  CHECK(is_better(0.9, 0.8, MonitorMode::maximum));
  CHECK_FALSE(is_better(0.8, 0.8, MonitorMode::maximum));
  CHECK(is_better(0.7, 0.8, MonitorMode::minimum));
  CHECK_FALSE(is_better(0.75, 0.8, MonitorMode::minimum, 0.1));
  CHECK_FALSE(is_better(std::nan(""), 0.8, MonitorMode::minimum));
  CHECK(is_better(5, std::nan(""), MonitorMode::minimum));
}

}  // namespace trainctl::test::progress_test
