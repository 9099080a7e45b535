#!/bin/bash
# slurm.sh TROUPE: the batch script, on a Slurm of one node that is played here. A task is killed meanwhile.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$1" "$folder/troupe"
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
chmod +x "$folder"/*
export PATH="$folder:$PATH" SLURM_JOB_NODELIST=127.0.0.1 SLURM_NTASKS=4
export XDG_RUNTIME_DIR=$folder
for try in 1 2 3; do
  export TROUPE_PORT=$((RANDOM % 20000 + 20000))
  # A worker is killed as soon as it serves.
  (
    for ((i = 0; i < 300; ++i)); do
      victim=$(pgrep -f "^troupe worker --resolve slurm --jobs ps=1,worker=3 --port $TROUPE_PORT" | tail -n 1) || true
      [ -z "$victim" ] || { sleep 0.5; kill -KILL "$victim"; exit 0; }
      sleep 0.1
    done
  ) &
  sh examples/deploy/slurm/cluster.sbatch examples/tensorflow_graphs/while_v1.pbtxt \
    --feed 'x=[2,9,1e6]' --fetch root --steps 60000 >"$folder/out" 2>"$folder/log" && break
  grep -q 'cannot listen' "$folder/log" || break # somebody else has one of the ports
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
