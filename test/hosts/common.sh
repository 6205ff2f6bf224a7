# What the tests on several hosts share: folders, a config, and functions that find ranks and agents on the hosts. The tests
# run inside scripts/test-hosts as test/hosts/NAME TEST_LAUNCH TRAINCTL: TEST_LAUNCH has the small trainer of
# test/parallel/launch/ranks.cpp, and TRAINCTL is the program.
program=$(realpath "$2")
trainer=("$(realpath "$1")" "trainer that starts its ranks like run")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
source "$(dirname "$0")/../expect.sh"

none_left() { ! runs_on h1 && ! runs_on h2 && ! runs_on h3; }
# Succeeds if a rank runs on the host.
runs_on() {
  local pid
  for pid in $(in-host "$1" 'ip netns pids $(ip netns identify)'); do
    { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep "^${trainer[0]} ${trainer[1]}" >/dev/null && return 0
  done
  return 1
}
# start NAME HOSTS: starts the trainer, which trains until it is stopped; returns when the ranks run.
start() {
  LAUNCH_TEST_TRAIN=1 LAUNCH_TEST_HOSTS=$2 timeout 90 "${trainer[@]}" >"$work/$1" 2>&1 &
  supervisor=$!
  soon grep -q "rank 0 of" "$work/$1"
}

cat >"$work/job.yaml" <<CONFIG
data:
  dataset: synthetic
  shape: [6]
  classes: 3
  samples: \${SAMPLES}
  validation: {split: 0.25}
model: {layers: [{dense: {units: 8, activation: tanh}}, {dense: {units: 3, activation: softmax}}]}
train: {batch_size: 12, epochs: 2, loss: sparse_categorical_crossentropy, optimizer: sgd}
CONFIG

pids_on() { in-host "$1" 'ip netns pids $(ip netns identify)'; }
# Succeeds if a launch agent runs on the host.
agent_on() {
  local pid
  for pid in $(pids_on "$1"); do grep -qa host-agent "/proc/$pid/cmdline" 2>/dev/null && return 0; done
  return 1
}
no_agents() { ! agent_on h1 && ! agent_on h2 && ! agent_on h3; }
# The addresses on which programs of the host listen.
listening() { in-host "$1" "ss -ltnH" | awk '{print $4}'; }
