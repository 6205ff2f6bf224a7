// Tests batch scripts, the output of scontrol, and the names of an array's runs.
#include <array>
#include <cstdio>
#include <string>

#include "core/base/error.h"
#include "core/base/shell_words.h"
#include "parallel/launch/slurm/batch_script.h"
#include "parallel/launch/slurm/job.h"
#include "parallel/launch/slurm/lost_script.h"
#include "parallel/launch/slurm/nodes.h"
#include "test/catch.h"

namespace trainctl::slurm_test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

BatchJob some_job() {
  BatchJob job;
  job.name = "flowers";
  job.directory = "/home/ada/it's here";
  job.nodes = 2;
  job.ranks = 16;
  job.gpus_per_node = 8;
  job.time = "4:00:00";
  job.sbatch = {"partition=gpu"};
  job.command = {"/usr/bin/trainctl", "run", "my flowers.yaml"};
  job.written_by = {"trainctl", "launch", "slurm", "my\nflowers.yaml"};
  return job;
}

// The output of a script in a shell.
std::string printed_by_shell(const std::string& script) {
  std::string text;
  FILE* shell = popen(script.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), shell)) text.append(buffer.data(), count);
  pclose(shell);
  return text;
}

TEST_CASE("a shell reads a quoted word back unchanged") {
  for (const std::string word : {"plain", "two words", "it's", "$HOME `id` \"x\" \\ *", "", "a\nb", "train.lr=1e-3"}) {
    CAPTURE(word);
    CHECK(printed_by_shell("printf %s. " + shell_line({word, "end"})) == word + ".end.");
  }
  CHECK(shell_word("configs/a.yaml") == "configs/a.yaml");
  CHECK(one_line("a\nb\rc") == "a b c");
}

TEST_CASE("the tasks of an array are checked as sbatch checks them") {
  for (const char* good : {"0", "1-8", "1,3,7", "0-15:4", "1-3,7-9", "1-8%2", "4,5,9-12:2%1", "7-7"}) {
    CAPTURE(good);
    CHECK(is_task_list(good));
  }
  for (const char* bad : {"", "a", "8-1", "1-", "-1", "1,,2", "1,", "0-15:", "0-15:0", "1:2", "1-8%", "1-8%0", "1-2-3",
                          " 1", "1-8%2%3", "0-9:2:3", "1\n2"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_task_list(bad));
  }
}

TEST_CASE("options of sbatch that trainctl sets itself are refused, and others are left alone") {
  for (const char* other :
       {"partition=gpu", "exclusive", "x11=batch", "gres=gpu:2", "mail-user=a@b.c", "nodelist=n1,n2"}) {
    CAPTURE(other);
    CHECK(own_option_for(other).empty());
  }
  CHECK(own_option_for("array=1-3") == "--array");
  CHECK(own_option_for("nodes=5") == "--nodes");
  CHECK(own_option_for("ntasks=4") == "--ranks");
  CHECK(own_option_for("time=1:00") == "--time");
  for (const char* wrong :
       {"=x", "", "--partition=gpu", "partition gpu", "N=5", "output=x.log", "signal=USR2@60", "job-name=a"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(own_option_for(wrong), Error);
  }
}

TEST_CASE("a batch script asks SLURM for what the job needs") {
  const std::string script = batch_script(some_job());
  for (const char* line :
       {"#SBATCH --job-name=flowers\n", "#SBATCH --nodes=2\n", "#SBATCH --ntasks=16\n", "#SBATCH --ntasks-per-node=8\n",
        "#SBATCH --gpus-per-node=8\n", "#SBATCH --time=4:00:00\n", "#SBATCH --signal=B:USR1@120\n",
        "#SBATCH --requeue\n", "#SBATCH --open-mode=append\n", "#SBATCH --partition=gpu\n",
        "#SBATCH --output=flowers-%j.log\n", "\n/usr/bin/trainctl run 'my flowers.yaml' &\n"}) {
    CAPTURE(line);
    CHECK(has(script, line));
  }
  CHECK_FALSE(has(script, "no-kill"));
  CHECK_FALSE(has(script, "cpus-per-task"));
  CHECK_FALSE(has(script, "--array"));
  // On one line, since further lines would be commands.
  CHECK(has(script, "# trainctl launch slurm 'my flowers.yaml'\n"));

  BatchJob other = some_job();
  other.ranks = 3;
  other.gpus_per_node = 0;
  other.cpus_per_task = 4;
  other.array = "1-8";
  other.time = "";
  other.survives_nodes = true;
  const std::string array = batch_script(other);
  CHECK(has(array, "#SBATCH --cpus-per-task=4\n"));
  CHECK(has(array, "#SBATCH --array=1-8\n"));
  CHECK(has(array, "#SBATCH --output=flowers-%A_%a.log\n"));
  CHECK(has(array, "#SBATCH --ntasks=3\n"));
  CHECK(has(array, "#SBATCH --no-kill\n"));
  CHECK_FALSE(has(array, "ntasks-per-node"));  // 3 ranks cannot be divided among 2 nodes
  CHECK_FALSE(has(array, "gpus"));
  CHECK_FALSE(has(array, "--time"));
}

TEST_CASE("only a process on a node of the job asks the other nodes") {
  const std::vector<std::string> nodes = {"n1", "n2", "n3"};
  CHECK(other_nodes(nodes, Variables{{"SLURMD_NODENAME", "n2"}}) == std::vector<std::string>{"n1", "n3"});
  CHECK(other_nodes(nodes, Variables{{"SLURMD_NODENAME", "login"}}).empty());
  CHECK(other_nodes(nodes, Variables()).empty());
}

TEST_CASE("time limits are read in every notation of SLURM") {
  CHECK(slurm_seconds("90") == 5400);
  CHECK(slurm_seconds("90:30") == 5430);
  CHECK(slurm_seconds("1:30:05") == 5405);
  CHECK(slurm_seconds("2-12") == 216000);
  CHECK(slurm_seconds("1-0:30") == 88200);
  CHECK(slurm_seconds("1-1:01:01") == 90061);
  for (const char* wrong : {"", "4 h", "x", "1:2:3:4", "1-", "-5", "0", "1--2", "99999999999", "1-1-1", "UNLIMITED"}) {
    CAPTURE(wrong);
    CHECK_FALSE(slurm_seconds(wrong));
  }
}

TEST_CASE("the signal to save comes early enough, and a job must be longer than this lead time") {
  CHECK(lead_from(0.1, 0.2, "runs/a").seconds == 60);
  CHECK(lead_from(4, 30, "runs/a").seconds == 130);  // 30 + 2 x 4 + 3 x 30 = 128
  CHECK(lead_from(1e9, 1, "runs/a").seconds == 86400);
  BatchJob job = some_job();
  job.lead = lead_from(4, 30, "runs/a");
  CHECK(has(batch_script(job), "--signal=B:USR1@130\n"));
  CHECK(has(batch_script(job), "in runs/a a step takes 4 s and a checkpoint 30 s"));
  job.time = "3:10";  // the signal may come 60 s earlier, at the beginning of the job
  CHECK_THROWS_AS(batch_script(job), Error);
  job.time = "3:11";
  CHECK_NOTHROW(batch_script(job));
}

TEST_CASE("the state of a job is read from scontrol's line") {
  const auto running = read_job_state(
      "JobId=7 JobName=a UserId=ada(1) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 "
      "ExitCode=0:0 RunTime=00:00:01\n");
  REQUIRE(running);
  CHECK(running->name == "RUNNING");
  CHECK(running->reason.empty());
  CHECK(running->restarts == 2);
  CHECK_FALSE(running->ended());
  const auto failed = read_job_state("JobId=7 JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=75:0");
  CHECK(failed->ended());
  CHECK(exit_code_of(*failed) == 75);
  CHECK(exit_code_of(*read_job_state("JobState=COMPLETED ExitCode=0:0")) == 0);
  CHECK(exit_code_of(*read_job_state("JobState=FAILED ExitCode=0:9")) == 137);
  // Jobs that SLURM ended: first with exit codes of their own, then without.
  for (const std::string state : {"CANCELLED", "PREEMPTED", "TIMEOUT", "DEADLINE", "NODE_FAIL"}) {
    INFO(state);
    CHECK(exit_code_of(*read_job_state("JobState=" + state + " ExitCode=75:0")) == 75);
    CHECK(exit_code_of(*read_job_state("JobState=" + state + " ExitCode=3:0")) == 3);
    CHECK(exit_code_of(*read_job_state("JobState=" + state + " ExitCode=0:15")) == 5);
    CHECK(exit_code_of(*read_job_state("JobState=" + state + " ExitCode=0:0")) == 5);
    CHECK(exit_code_of(*read_job_state("JobState=" + state)) == 5);
  }
  CHECK(exit_code_of(*read_job_state("JobState=OUT_OF_MEMORY ExitCode=0:125")) == 6);
  CHECK(read_job_state("JobState=PENDING Reason=PartitionNodeLimit")->may_never_start());
  CHECK_FALSE(read_job_state("JobState=PENDING Reason=Resources")->may_never_start());
  CHECK_FALSE(read_job_state("slurm_load_jobs error: Invalid job id specified"));
}

TEST_CASE("a job has lost its script if SLURM has taken the script's node away and the job still runs") {
  const auto lost = [](const std::string& fields, int restarts = 0) {
    const auto state = read_job_state("JobId=7 " + fields);
    REQUIRE(state);
    return has_lost_script(*state, restarts);
  };
  CHECK(lost("JobState=RUNNING Restarts=0 NodeList=n2 BatchHost=n1"));
  CHECK(lost("JobState=RUNNING Restarts=3 ReqNodeList=n1 ExcNodeList=(null) NodeList=n[02-17,19] BatchHost=n18", 3));
  CHECK_FALSE(lost("JobState=RUNNING Restarts=0 NodeList=n[1-2] BatchHost=n1"));
  CHECK_FALSE(lost("JobState=RUNNING Restarts=1 NodeList=n2 BatchHost=n1"));  // its processes are other ones
  CHECK_FALSE(lost("JobState=COMPLETING Restarts=0 NodeList=n2 BatchHost=n1"));
  CHECK_FALSE(lost("JobState=PENDING Restarts=0 NodeList= BatchHost=n1"));
  CHECK_FALSE(lost("JobState=RUNNING Restarts=0 NodeList=n2"));  // a job of salloc
}

TEST_CASE("tasks of a SLURM array have runs of their own") {
  CHECK(name_in_array("a", Variables()) == "a");
  CHECK(name_in_array("a", Variables{{"SLURM_ARRAY_TASK_ID", "12"}}) == "a-task-12");
}

}  // namespace
}  // namespace trainctl::slurm_test
