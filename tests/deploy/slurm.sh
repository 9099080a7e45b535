#!/bin/bash
# slurm.sh TROUPE: the batch script, on a Slurm of one node that is played here. A task is killed
# while the client's steps run.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
export TROUPE_PROGRAM=$1 TROUPE_FOLDER=$folder

# What the scripts know: how many times tasks have come to serve.
cat >"$folder/wait-for-serving" <<'END'
#!/bin/bash
for ((i = 0; i < 1200; ++i)); do
  [ "$(grep -c ' serves at ' "$TROUPE_FOLDER/log")" -lt "$1" ] || exit 0
  sleep 0.05
done
echo "$1 tasks have not come to serve" >>"$TROUPE_FOLDER/log"
exit 1
END
# The client: when its steps have run, the task that was killed meanwhile is waited for.
cat >"$folder/troupe" <<'END'
#!/bin/bash
[ "$1" = run ] || exec -a troupe "$TROUPE_PROGRAM" "$@"
"$TROUPE_PROGRAM" "$@" && wait-for-serving 5
END
printf '#!/bin/sh\necho 127.0.0.1\n' >"$folder/scontrol" # "show hostnames"
# The processes of a step, numbered as Slurm does it; the step ends with a signal, and they with it.
cat >"$folder/srun" <<'END'
#!/bin/bash
shift # --kill-on-bad-exit=0
export SLURM_STEP_NODELIST=127.0.0.1 SLURM_STEP_TASKS_PER_NODE=$SLURM_NTASKS
for ((i = 0; i < SLURM_NTASKS; ++i)); do
  SLURM_PROCID=$i setsid "$@" &
  processes+=($!)
done
trap 'for p in "${processes[@]}"; do kill -- -$p; done; wait; exit 143' TERM
wait
END
# The last worker, on which the client's steps do not depend, is killed once all tasks serve.
cat >"$folder/kill-worker" <<'END'
#!/bin/bash
wait-for-serving 4 || exit 1
sleep 0.5 # the client's session is made, most likely; if not, it waits for the worker
for process in $(pgrep -f "^troupe worker --resolve slurm .*--port $TROUPE_PORT"); do
  tr '\0' '\n' <"/proc/$process/environ" | grep -qx "SLURM_PROCID=$((SLURM_NTASKS - 1))" || continue
  kill -KILL "$process"
  exit 0
done
echo "there is no worker to be killed" >>"$TROUPE_FOLDER/log"
END
chmod +x "$folder"/*
export PATH="$folder:$PATH" SLURM_JOB_NODELIST=127.0.0.1 SLURM_NTASKS=4
export XDG_RUNTIME_DIR=$folder
for try in 1 2 3; do
  export TROUPE_PORT=$((RANDOM % 12000 + 20000)) # none that the system gives to those who connect
  : >"$folder/log"
  kill-worker &
  sh examples/deploy/slurm/cluster.sbatch examples/tensorflow_graphs/while_v1.pbtxt \
    --feed 'x=[2,9,1e6]' --fetch root --steps 30000 >"$folder/out" 2>>"$folder/log" && break
  grep -q 'cannot listen' "$folder/log" || break # somebody else has one of the ports
  kill $! 2>/dev/null || true
done
cat "$folder/log"
grep '^root double \[3\] \[1.4142135623' "$folder/out"
# The one that was killed served again.
[ "$(grep -c ' serves at ' "$folder/log")" -ge 5 ]
# They drain.
for ((i = 0; i < 100; ++i)); do
  pgrep -f "troupe worker --resolve slurm .*--port $TROUPE_PORT" >/dev/null || exit 0
  sleep 0.1
done
echo "tasks are left over"
exit 1
