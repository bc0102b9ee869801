# What tools/cluster does on each machine. It sends this text to a shell there, in the middle of a command that first sets the
# variables and at last calls `probe` or `train`.
# shellcheck shell=bash disable=SC2154

# Sets `ours`, the processes that train into this output folder, and `theirs`, the tools/cluster of others that do. Workers
# are known by the variable DECENT_CLUSTER, "SESSION START OUTPUT", so that none is overlooked whatever became of the
# processes between this script and them.
find_processes() {
  local process variable variables mark
  ours=() theirs=''
  for process in /proc/[0-9]*; do
    [[ -O $process ]] || continue
    mapfile -d '' -t variables 2>/dev/null <"$process/environ" || continue
    for variable in "${variables[@]}"; do
      [[ $variable == DECENT_CLUSTER=*" $output" ]] || continue
      mark=${variable#*=}
      if [[ ${mark%% *} == "$session" ]]; then ours+=("${process#/proc/}"); else theirs=${mark%% *}; fi
    done
  done
}

# Whether the processes `ours` have ended. What nobody has waited for yet has no variables any more.
are_gone() {
  local process variables
  for process in "${ours[@]}"; do
    mapfile -d '' -t variables 2>/dev/null <"/proc/$process/environ" || continue
    [[ ${#variables[@]} -eq 0 ]] || return 1
  done
}

# wait_until_gone SECONDS
wait_until_gone() {
  local tenths
  for ((tenths = 0; tenths < $1 * 10; tenths += 2)); do
    are_gone && return
    sleep 0.2
  done
  are_gone
}

# Ends what is left of earlier starts, by `first_signal` (0: none, they end by themselves) and in the end by SIGKILL.
end_processes() {
  find_processes
  [[ ${#ours[@]} -gt 0 ]] || return 0
  if [[ $first_signal != 0 ]]; then
    echo "ended ${#ours[@]}"
    kill -s "$first_signal" "${ours[@]}" 2>/dev/null
  fi
  wait_until_gone "$patience" && return
  echo "ended ${#ours[@]}"
  kill -s KILL "${ours[@]}" 2>/dev/null
  wait_until_gone 5
}

# Says what the program makes of the recipe, which also shows that both are there.
read_recipe() {
  local text line code
  text=$("$program" "${flags[@]}" --print-config 2>&1 </dev/null)
  code=$?
  [[ $code -eq 0 ]] || { echo "fails ${text//$'\n'/ }"; return 1; }
  while IFS= read -r line; do
    case $line in
      output:*) line=${line#output: } line=${line#\"} output=${line%\"} ;;
      *' timeout_s: '*) echo "timeout ${line##*: }" ;;
      *' farewell_s: '*) echo "farewell ${line##*: }" ;;
    esac
  done <<<"$text"
  [[ -n $output ]] || { echo "fails $program --print-config says nothing of an output folder"; return 1; }
  output=$(realpath -m -- "$output")
}

# Something that changes whenever a checkpoint is saved.
saved_state() {
  local manifest
  for manifest in "$output"/checkpoints/step-*/manifest.json; do
    [[ -e $manifest ]] && stat -c '%n %i %y' -- "$manifest"
  done | cksum
}

# Answers line by line: here, what it knows, and at the end clean, if nothing of an earlier start is left.
probe() {
  local file
  echo here
  cd -- "$folder" 2>/dev/null || { echo "fails there is no folder '$folder'"; return; }
  export "${variables[@]}"
  [[ -n $output ]] || read_recipe || return
  echo "output $output"
  end_processes || { echo "fails process ${ours[*]} of an earlier start cannot be ended"; return; }
  if [[ -n $theirs ]]; then
    echo "fails '$output' is in use by another tools/cluster ($theirs). If that is gone, its workers stop within two minutes"
    return
  fi
  echo "saved $(saved_state)"
  for file in recipe.yaml metrics.jsonl checkpoints; do
    [[ ! -e $output/$file ]] || echo holds
  done
  echo clean
}

# The workers' signals come on standard input, and every few seconds a dot. Silence means that this machine is cut off, or
# that nobody would start the workers again: they stop with a checkpoint, as after the end of other launchers. Succeeds only
# in this case, because train ends it where it still listens.
listen() {
  local word
  while read -rt "$lease" word; do
    [[ $word != . ]] || continue
    find_processes
    kill -s "$word" "${ours[@]}" 2>/dev/null
  done
  trap 'exit 0' TERM
  find_processes
  kill -s TERM "${ours[@]}" 2>/dev/null
  wait_until_gone "$patience" || kill -s KILL "${ours[@]}" 2>/dev/null
}

# worst CODE..: what the exit codes of processes of one start come to: what the user can mend, a process that a signal ended,
# a bug, a loss, a stop.
worst() {
  local code rank least=9 result=0
  for code; do
    case $code in
      2 | 4 | 5 | 6) rank=0 ;;
      126 | 127) rank=0 code=2 ;; # the program cannot be started
      0) rank=6 ;;
      75) rank=5 ;;
      3) rank=4 ;;
      *) rank=$((code > 128 ? 2 : 3)) ;;
    esac
    if ((rank < least)); then least=$rank result=$code; fi
  done
  echo "$result"
}

# Runs this machine's workers. The result is that of all of them.
train() {
  local local_rank listener process threads processes=() codes=()
  cd -- "$folder" || return 2
  export "${variables[@]}"
  find_processes
  if [[ ${#ours[@]} -gt 0 || -n $theirs ]]; then
    echo "cluster: error: '$output' is in use on $(uname -n)" >&2
    return 2
  fi
  threads=$(($(nproc) / workers))
  [[ $workers -eq 1 || -v OMP_NUM_THREADS ]] || export OMP_NUM_THREADS=$((threads > 0 ? threads : 1))
  export WORLD_SIZE=$world LOCAL_WORLD_SIZE=$workers MASTER_ADDR=$address MASTER_PORT=$port
  for ((local_rank = 0; local_rank < workers; ++local_rank)); do
    DECENT_CLUSTER="$session $start $output" RANK=$((first_rank + local_rank)) LOCAL_RANK=$local_rank \
      "$program" "${flags[@]}" </dev/null &
    processes+=($!)
  done
  listen <&0 &
  listener=$!
  for process in "${processes[@]}"; do
    wait "$process" 2>/dev/null
    codes+=($?)
  done
  kill "$listener" 2>/dev/null
  wait "$listener" 2>/dev/null && return 255 # as ssh where a connection is lost
  return "$(worst "${codes[@]}")"
}
