#!/usr/bin/env python3
"""Checks the output of `trainctl launch kubernetes` against the definition of MPIJob by Kubeflow's operator:
manifest_test.py TRAINCTL. The definition is mpijob-crd.yaml in the folder TRAINCTL_DATA; without it, the exit code is
77 (skipped)."""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("skipped: PyYAML is not installed (apt-get install python3-yaml)")
    sys.exit(77)

DEFINITION = pathlib.Path(os.environ.get("TRAINCTL_DATA", "data")) / "mpijob-crd.yaml"
CONFIG = """
data: {dataset: synthetic, shape: [6], classes: 3, samples: 96}
model: {layers: [{dense: {units: 3, activation: softmax}}]}
train: {batch_size: 48, epochs: 2, loss: sparse_categorical_crossentropy, optimizer: sgd}
cluster: {hosts: {a: 8, b: 8}}
"""
KINDS = {"string": str, "boolean": bool, "object": dict, "array": list, "integer": int, "number": (int, float)}


def problems(value, schema, path="$"):
    """Returns what a strict server refuses: wrong types, unknown and missing fields, values outside of enumerations."""
    if schema.get("x-kubernetes-int-or-string"):
        good = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        if good and isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            good = False
        return [] if good else [f"{path}: {value!r} is no quantity"]
    kind = schema.get("type")
    if kind and (not isinstance(value, KINDS[kind]) or (kind != "boolean" and isinstance(value, bool))):
        return [f"{path}: {value!r} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        found += [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            inner = known.get(key, others)
            if inner is None:
                found.append(f"{path}: unknown field {key}")
            else:
                found += problems(item, inner, f"{path}.{key}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += problems(item, schema["items"], f"{path}[{i}]")
        keys = schema.get("x-kubernetes-list-map-keys", [])
        if keys and all(isinstance(item, dict) for item in value):
            names = [tuple(item.get(key) for key in keys) for item in value]
            found += [f"{path}: {name} occurs twice" for name in set(names) if names.count(name) > 1]
    return found


def check(condition, what):
    print(f"{what}: {'good' if condition else 'BAD'}")
    return 0 if condition else 1


def launch(folder, *options, code=0):
    done = subprocess.run([TRAINCTL, "launch", "kubernetes", *options], cwd=folder, text=True, capture_output=True)
    if done.returncode != code:
        sys.exit(f"{options} ends with {done.returncode}: {done.stderr}")
    return done.stdout if code == 0 else done.stderr


def pod(job, role):
    spec = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    return spec, spec["containers"][0]


def check_contents(job):
    failures = 0
    launcher_pod, launcher = pod(job, "Launcher")
    worker_pod, worker = pod(job, "Worker")
    failures += check(job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2, "two workers")
    failures += check(job["spec"]["slotsPerWorker"] == 4, "a slot for each GPU")
    failures += check(job["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady", "the launcher waits")
    failures += check("readinessProbe" in worker, "workers report when they are ready")
    failures += check(worker["resources"]["limits"]["nvidia.com/gpu"] == 4, "GPUs of a worker")
    failures += check("nvidia.com/gpu" not in json.dumps(launcher), "no GPU for the launcher")
    failures += check(all(p["securityContext"]["runAsNonRoot"] and p["securityContext"]["runAsUser"] != 0
                          for p in (launcher_pod, worker_pod)), "no pod runs as root")
    mounts = {mount["mountPath"]: mount["name"] for mount in worker["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in worker_pod["volumes"]}
    failures += check(volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory", "shared memory")
    failures += check(volumes[mounts["/workspace"]]["persistentVolumeClaim"]["claimName"] == "my-claim", "the volume")
    failures += check(launcher["image"] == worker["image"] == "registry.example/a:1", "the image")
    failures += check(launcher["command"][:3] == ["trainctl", "run", "jobs/it's Ada's.yaml"], "the command")
    return failures


def check_end_of_worker(job, folder):
    """Runs a worker's preStop command in a process namespace: it sends SIGUSR1 to each trainctl and waits."""
    words = pod(job, "Worker")[1]["lifecycle"]["preStop"]["exec"]["command"]
    rank = folder / "trainctl"
    rank.write_text("#!/bin/bash\ntrap 'sleep 1; echo saved; exit 75' USR1\nwhile :; do sleep 0.1; done\n")
    rank.chmod(0o755)
    script = '"$0" & rank=$!; sleep 0.3; "$@"; echo waited; wait $rank; echo $?'
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "bash", "-c", script, str(rank), *words], text=True,
                          capture_output=True)
    if "unshare" in done.stderr:
        print("skipped: the end of a worker needs a process namespace: " + done.stderr.strip())
        return 0
    return check(done.stdout.split() == ["saved", "waited", "75"], "a worker lives until its ranks have saved")


def check_schema(job, schema):
    failures = check(not problems(job, schema), "the manifest fits the operator's definition")
    for line in problems(job, schema):
        print("  " + line)

    def broken(change, what):
        other = copy.deepcopy(job)
        change(other)
        return check(problems(other, schema), f"{what} would be noticed")

    failures += broken(lambda j: j["spec"].update(slotPerWorker=2), "an unknown field")
    failures += broken(lambda j: j["spec"].update(slotsPerWorker="2"), "a text instead of a number")
    failures += broken(lambda j: pod(j, "Worker")[0].pop("containers"), "a missing field")
    failures += broken(lambda j: pod(j, "Worker")[1]["resources"]["limits"].update(cpu="many"), "an invalid quantity")
    failures += broken(lambda j: j["spec"].update(mpiImplementation="PVM"), "a value outside of its enumeration")
    return failures


def check_dockerfile(text):
    failures = check(text.count("\nFROM ") == 1 and "USER trainctl\n" in text, "the image's user is not root")
    failures += check("--uid 1000" in text and "trainctl_*.deb" in text, "the image installs the .deb")
    for command in re.findall(r"^RUN (.*?[^\\])$", text, re.M | re.S):
        syntax = subprocess.run(["sh", "-n", "-c", command.replace("\\\n", "")], capture_output=True, text=True)
        failures += check(syntax.returncode == 0, "a command of the Dockerfile has shell syntax")
    return failures


TRAINCTL = str(pathlib.Path(sys.argv[1]).resolve())
if not DEFINITION.exists():
    print(f"skipped: there is no {DEFINITION}")
    sys.exit(77)
version = yaml.safe_load(DEFINITION.read_text())["spec"]["versions"][0]
assert version["name"] == "v2beta1"
schema = version["schema"]["openAPIV3Schema"]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "jobs").mkdir()
    (folder / "jobs/it's Ada's.yaml").write_text("name: Flowers_2\n" + CONFIG)
    options = ["jobs/it's Ada's.yaml", "--nodes", "2", "--gpus-per-node", "4", "--cpus-per-task", "8", "--volume", "my-claim",
               "--image", "registry.example/a:1", "--set", "seed=3"]
    job = yaml.safe_load(launch(folder, *options))
    failed = check_contents(job) + check_schema(job, schema) + check_end_of_worker(job, folder)
    failed += check(job["metadata"]["name"] == "flowers-2", "a name that Kubernetes accepts")
    failed += check_dockerfile(launch(folder, *options, "--dockerfile"))
    both = json.loads(launch(folder, *options, "--json"))
    failed += check(yaml.safe_load(both["manifest"]) == job and "FROM" in both["dockerfile"], "--json has both")
    cpus = yaml.safe_load(launch(folder, *options[:3], "--ranks", "4"))
    failed += check(not problems(cpus, schema) and cpus["spec"]["slotsPerWorker"] == 2, "a job without GPUs")
    failed += check("cannot be divided" in launch(folder, *options[:3], "--ranks", "3", code=2), "unequal workers are refused")
    outside = launch(folder / "jobs", "../jobs/it's Ada's.yaml", "--ranks", "2", code=2)
    failed += check("is not below" in outside, "a config outside of the volume is refused")
sys.exit(failed > 0)
