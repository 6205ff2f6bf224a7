# Functions for test scripts. `expect NAME CODE ACTUAL FILE PATTERN...` checks that the exit code ACTUAL is CODE and that
# FILE has a line for each PATTERN. $failures counts the failed checks. `soon COMMAND...` repeats the command until it
# succeeds, for at most 30 s.
failures=0
expect() {
  local name=$1 code=$2 actual=$3 file=$4 good=yes
  shift 4
  [ "$actual" -eq "$code" ] || { good=no; echo "$name: exit code $actual instead of $code"; }
  for pattern in "$@"; do
    grep -q -- "$pattern" "$file" || { good=no; echo "$name: '$pattern' is missing"; }
  done
  if [ "$good" = yes ]; then echo "$name: good"; else failures=$((failures + 1)); sed 's/^/  | /' "$file"; fi
}
soon() {
  for _ in $(seq 300); do "$@" && return 0; sleep 0.1; done
  return 1
}
