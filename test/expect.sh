# For test scripts: `expect NAME CODE ACTUAL FILE PATTERN...` checks an exit code and lines that FILE must have, and
# counts what fails in $failures. `soon COMMAND...` waits until the command succeeds, at most 30 s.
failures=0
expect() {
  local name=$1 code=$2 actual=$3 file=$4 good=yes
  shift 4
  [ "$actual" -eq "$code" ] || { good=no; echo "$name: exit code $actual in the place of $code"; }
  for pattern in "$@"; do
    grep -q -- "$pattern" "$file" || { good=no; echo "$name: '$pattern' is missing"; }
  done
  if [ "$good" = yes ]; then echo "$name: good"; else failures=$((failures + 1)); sed 's/^/  | /' "$file"; fi
}
soon() {
  for _ in $(seq 300); do "$@" && return 0; sleep 0.1; done
  return 1
}
