"""Plays examples/deploy/kubernetes/cluster.yaml; see kubernetes.sh. Ends with status 0 if the client's steps ran, also
with a worker that was killed and started again meanwhile."""
import os, random, signal, subprocess, sys, tempfile, time

import yaml

troupe = sys.argv[1]
folder = tempfile.mkdtemp()
with open("examples/deploy/kubernetes/cluster.yaml") as file:
    objects = list(yaml.safe_load_all(file))
sets = [o for o in objects if o["kind"] == "StatefulSet"]
services = {o["metadata"]["name"]: o["spec"] for o in objects if o["kind"] == "Service"}
client = next(o for o in objects if o["kind"] == "Job")

# What the cluster's DNS does for pods whose StatefulSet names a headless Service that selects them.
pods, hosts = [], ["127.0.0.1 localhost"]
for s in sets:
    service = services[s["spec"]["serviceName"]]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"]
    assert service["selector"].items() <= s["spec"]["template"]["metadata"]["labels"].items()
    assert s["spec"]["selector"]["matchLabels"] == s["spec"]["template"]["metadata"]["labels"]
    for i in range(s["spec"]["replicas"]):
        name = f"{s['metadata']['name']}-{i}"
        pods.append((name, s["spec"]["template"]["spec"]["containers"][0]))
        hosts.append(f"127.0.1.{len(pods)} {name}.{s['spec']['serviceName']} {name}")
with open(f"{folder}/hosts", "w") as file:
    file.write("\n".join(hosts) + "\n")
subprocess.run(["mount", "--bind", f"{folder}/hosts", "/etc/hosts"], check=True)

# The Secret: as the manifest's comment makes it. A volume's files end up in a folder of their own.
with open(f"{folder}/cluster.json", "w") as file:
    file.write('{"ps": ["a:1"], "worker": ["b:1", "c:1", "d:1"]}')
subprocess.run([troupe, "certificates", f"{folder}/cluster.json", "--out", f"{folder}/tls"], check=True)
port = str(random.randrange(20000, 32000))  # none that the system gives to those who connect


def here(container, extra=()):
    """The container's command line, with this machine's files and port for those of the pod."""
    words = container["command"] + container["args"]
    words = [w.replace("/tls", f"{folder}/tls").replace("7000", port) for w in words]
    assert words[0] == "troupe"
    return [troupe] + words[1:] + list(extra)


def start(name, container):
    return subprocess.Popen(here(container), env={**os.environ, "HOSTNAME": name}, stdout=subprocess.PIPE, text=True)


running = {name: start(name, container) for name, container in pods}
try:
    arguments = here(client["spec"]["template"]["spec"]["containers"][0])
    # The graph of the ConfigMap, and what this one is fed.
    arguments = [a.replace("/graph/graph.pb", "examples/tensorflow_graphs/training_v1.pbtxt") for a in arguments]
    arguments += ["--feed", "x=[0,1,2,3]", "--feed", "y=[1,3,5,7]", "--fetch", "loss"]
    for attempt in range(5):  # restartPolicy: OnFailure
        result = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        print(result.stdout, result.stderr)
        if result.returncode == 0:
            break
        time.sleep(1)
    assert result.returncode == 0 and result.stdout.startswith("loss float [] "), "the client's steps did not run"
    # As a kubelet does: what has failed is started again, and is the same task.
    victim = pods[-1][0]
    running[victim].kill()
    running[victim].wait()
    running[victim] = start(*pods[-1])
    assert running[victim].stdout.readline().startswith("ready "), f"{victim} does not serve again"
    for attempt in range(30):
        result = subprocess.run(arguments + ["--steps", "1"], capture_output=True, text=True, timeout=120)
        if result.returncode == 0:
            break
        time.sleep(1)
    assert result.returncode == 0, result.stderr
finally:
    for process in running.values():
        process.send_signal(signal.SIGTERM)
    statuses = [process.wait(20) for process in running.values()]
assert statuses == [0] * len(pods), statuses
